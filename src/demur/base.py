"""The one contract that every method keeps: fit, predict, score how sure, decide or demur."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from demur import __version__
from demur.candidates import CandidateSets
from demur.state import pack, unpack


class Judgement(NamedTuple):
    """What a method says of a batch of instances.

    Attributes
    ----------
    top : ndarray of shape (n,)
        Column of the predicted label.
    proba : ndarray of shape (n, n_classes)
        Scores per label; rows sum to 1.
    accept : ndarray of shape (n,)
        How safe the prediction is; higher is safer.
    """

    top: NDArray[np.intp]
    proba: NDArray[np.float64]
    accept: NDArray[np.float64]

    @classmethod
    def of_proba(cls, proba: NDArray[np.float64]) -> Self:
        """Judge by probabilities alone: the largest one predicts, and says how safe it is."""
        top = proba.argmax(axis=1)
        return cls(top, proba, proba[np.arange(len(proba)), top])


class PartialLabelClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of all methods that learn from candidate labels and can demur.

    A method sets ``accept_threshold_`` (its own rule: accepted when the accept score is
    larger), and defines ``_fit``, ``_judge`` and ``_transduce``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in the order of the columns of ``predict_proba``.
    n_features_in_ : int
    accept_threshold_ : float
    transduction_ : ndarray of shape (n_training_instances,)
    """

    classes_: NDArray[Any]
    n_features_in_: int
    accept_threshold_: float

    @abstractmethod
    def _fit(self, X: NDArray[np.float64], sets: CandidateSets) -> None:
        """Learn from checked features and candidate sets."""

    @abstractmethod
    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        """Judge checked features."""

    @abstractmethod
    def _transduce(self) -> NDArray[np.intp]:
        """Columns of the labels given to the training instances, each a candidate."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from features and candidate labels.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : anything that `CandidateSets` reads, with n rows
            The candidates, S in the text; scikit-learn's tools want the name y.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "candidate labels are what it learns from."
            )
        features = check_features(self, X, reset=True)
        sets = y if isinstance(y, CandidateSets) else CandidateSets(y)
        if len(sets) != len(features):
            raise ValueError(
                f"X has {len(features)} rows but there are {len(sets)} candidate sets; "
                "each instance needs one set."
            )
        name = type(self).__name__
        if len(features) < 2:
            raise ValueError(f"{name} needs at least 2 training instances, got 1 sample.")
        if sets.n_classes < 2:
            raise ValueError(
                f"{name} needs at least 2 classes to choose from, but there is only "
                f"1 class ({sets.classes.tolist()[0]!r})."
            )
        self.classes_ = sets.classes
        self.__dict__.pop("_transduced", None)
        try:
            self._fit(features, sets)
        except BaseException:
            del self.classes_  # a fit that failed leaves no model behind
            raise
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "classes_" in self.__dict__

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict a label for every instance, however unsure."""
        top = self.judge(X).top
        return np.asarray(self.classes_[top])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Scores per label, in the order of ``classes_``; rows sum to 1."""
        return self.judge(X).proba

    def accept_score(self, X: Any) -> NDArray[np.float64]:
        """How safe each prediction is; higher is safer."""
        return self.judge(X).accept

    def decide(self, X: Any, threshold: float | None = None) -> np.ma.MaskedArray[Any, Any]:
        """Predict, but demur where the prediction is not safe.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        threshold : float, optional
            Accept scores over it; by default the method's own ``accept_threshold_``.

        Returns
        -------
        labels : masked array of shape (n,)
            Masked where the method demurs.
        """
        judgement = self.judge(X)
        limit = self.accept_threshold_ if threshold is None else float(threshold)
        if np.isnan(limit):
            raise ValueError("threshold is NaN; give a number, or None for the method's own.")
        return np.ma.MaskedArray(self.classes_[judgement.top], mask=~(judgement.accept > limit))

    def judge(self, X: Any) -> Judgement:
        """Predictions, probabilities and accept scores in one pass."""
        check_is_fitted(self)
        return self._judge(check_features(self, X, reset=False))

    @property
    def transduction_(self) -> NDArray[Any]:
        """Labels given to the training instances, each one of its candidates."""
        check_is_fitted(self)
        if "_transduced" not in self.__dict__:
            self._transduced = self._transduce()
        return np.asarray(self.classes_[self._transduced])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of predictions that lie inside the candidate set.

        With one true label a row, this is the accuracy.
        """
        sets = read_like(self.classes_, y)
        return float(np.average(sets.contains(self.predict(X)), weights=sample_weight))

    # ---------------------------------------------------------------------------- saving

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, as named arrays for `numpy.savez`; parameters are not among it.

        Every attribute that ``fit`` set is packed, so a method has nothing to declare: it
        keeps what `demur.state.pack` can pack, and checks in ``_restored`` what came back.
        Loading the arrays with ``numpy.load(path, allow_pickle=False)`` runs no code.
        """
        check_is_fitted(self)
        return pack({k: v for k, v in vars(self).items() if k not in self._get_param_names()})

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Take over what `to_arrays` gave; the parameters must be those of that model."""
        learned = unpack(arrays)
        lacking = {"classes_", "n_features_in_"} - set(learned)
        if lacking:
            raise ValueError(f"not the arrays of a fitted model; lacking: {sorted(lacking)}.")
        for name in learned:
            if name in self._get_param_names() or hasattr(type(self), name):
                raise ValueError(f"not the arrays of a fitted model: {name} is not learned.")
        classes, width = learned["classes_"], learned["n_features_in_"]
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            raise ValueError("not the arrays of a fitted model: there are no two classes.")
        if not isinstance(width, int) or width < 1:
            raise ValueError("not the arrays of a fitted model: it has no number of features.")
        before = dict(self.__dict__)
        self.__dict__.update(learned)
        try:
            self._restored()
        except (AttributeError, TypeError, ValueError) as error:
            self.__dict__ = before
            if isinstance(error, ValueError):
                raise
            raise ValueError(
                f"not the arrays of a fitted {type(self).__name__}: {error}"
            ) from error
        return self

    def _restored(self) -> None:
        """Check what `from_arrays` put back, and make again what is not kept."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_demur_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_demur_version", "an unknown version")
        if version != __version__:
            warnings.warn(
                f"this {type(self).__name__} was saved by demur {version} and is loaded by "
                f"{__version__}; its results may differ. Fit it again to be safe.",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)


def read_like(classes: NDArray[Any], y: Any) -> CandidateSets:
    """Candidate sets to judge predictions by: columns without names are those of ``classes``."""
    unnamed = sp.issparse(y) or (isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1)
    return CandidateSets(y, classes=classes if unnamed else None)


def one_instance(x: Any) -> Any:
    """A batch of one instance, which may be given as one row; a DataFrame keeps its names."""
    if not hasattr(x, "columns"):
        x = np.atleast_2d(np.asarray(x))
    if len(x) != 1:
        raise ValueError(f"explain takes one instance at a time; got {len(x)}.")
    return x


def check_features(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float64]:
    """Features as finite float64 in C order, or an error that names the first bad cell."""
    try:
        features: NDArray[np.float64] = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
        )
    except ValueError as error:
        cell = _first_text(X)
        if cell is None:
            raise
        row, column, value = cell
        raise ValueError(
            f"could not convert string to float: X holds {value!r} at row {row}, column "
            f"{column}; encode such columns as numbers first."
        ) from error
    finite = np.isfinite(features)
    if not finite.all():
        rows, columns = np.nonzero(~finite)
        value = features[rows[0], columns[0]]
        what = "NaN" if np.isnan(value) else "infinity"
        raise ValueError(
            f"Input X contains {what} at row {rows[0]}, column {columns[0]} "
            f"({len(rows)} value(s) in {len(np.unique(rows))} row(s) are NaN or infinite); "
            f"{type(estimator).__name__} needs finite numbers: drop or impute them."
        )
    return features


def _first_text(X: Any) -> tuple[int, int, Any] | None:
    """The first cell of a table that is not a number, if that is what is wrong with it."""
    cells = np.asarray(X, dtype=object) if hasattr(X, "__array__") or isinstance(X, list) else X
    if not isinstance(cells, np.ndarray) or cells.ndim != 2:
        return None
    for row, values in enumerate(cells):
        for column, value in enumerate(values):
            try:
                float(value)
            except ValueError:
                return row, column, value
            except TypeError:
                return None
    return None
