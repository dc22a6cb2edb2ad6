"""Judgements to set a threshold by: of instances that the model which judges has not seen."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from demur.base import Judgement
from demur.candidates import CandidateSets
from demur.reject.labels import LabelClassifier, class_proba

Floats = NDArray[np.float64]

DENSE_ROWS = 256  # of a sparse table, as many at once are written out


class Fresh(NamedTuple):
    """What is known of instances that the judging model has not learned from.

    Attributes
    ----------
    accept : ndarray of shape (n,)
        Accept scores.
    top : ndarray of shape (n,)
        Column of the predicted label.
    proba : ndarray of shape (n, n_classes)
    held : ndarray of bool, shape (n, n_classes), or None
        The candidate sets, if there are any.
    """

    accept: Floats
    top: NDArray[np.intp]
    proba: Floats
    held: NDArray[np.bool_] | None

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Where the prediction is not a candidate: surely wrong, if the truth always is one."""
        if self.held is None:
            return np.zeros(len(self.top), dtype=bool)
        return ~self.held[np.arange(len(self.top)), self.top]


def innermost(estimator: Any) -> Any:
    """What does the learning inside pipelines, searches and frozen estimators."""
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif hasattr(estimator, "judge") and not isinstance(estimator, FrozenEstimator):
            return estimator
        elif hasattr(estimator, "estimator") and not hasattr(estimator, "estimators_"):
            estimator = estimator.estimator
        else:
            return estimator


def learner_of(estimator: Any, labels: Any) -> Any:
    """An estimator that learns from candidate sets: itself, or wrapped if it cannot."""
    if isinstance(estimator, FrozenEstimator) or hasattr(innermost(estimator), "judge"):
        return clone(estimator)
    return LabelClassifier(clone(estimator), labels=labels)


def judge(model: Any, X: Any) -> tuple[NDArray[Any], Judgement]:
    """Classes and judgement of a fitted model, whatever is wrapped around it.

    Like `demur.metrics.judge`, which asks for accept scores; here a classifier that has none
    is judged by its largest probability.
    """
    while not hasattr(model, "judge"):
        check_is_fitted(model)
        if isinstance(model, Pipeline) and hasattr(model[-1], "judge"):
            X = model[:-1].transform(X) if len(model) > 1 else X
            model = model[-1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        else:
            return np.asarray(model.classes_), Judgement.of_proba(class_proba(model, X))
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    return np.asarray(model.classes_), model.judge(X)


def out_of_fold(
    learner: Any,
    fitted: Any,
    X: Any,
    sets: CandidateSets,
    *,
    cv: Any = 5,
    groups: Any = None,
    seed: int = 0,
) -> Fresh:
    """Judge every training instance by a model that has not seen it.

    A method that can leave one instance out by itself does (``judge_left_out``); with groups,
    and for all other methods, models are trained on folds.

    Parameters
    ----------
    learner : estimator
        Untrained; cloned for every fold.
    fitted : estimator
        Trained on all of X.
    X, sets
        What it was trained on.
    cv : int or splitter
        Number of shuffled folds, or an object with ``split(X, y, groups)``.
    groups : array-like of shape (n,), optional
        Instances of one group are never on both sides of a fold.
    seed : int
        Shuffles the folds.
    """
    n = len(sets)
    if groups is None and hasattr(fitted, "judge_left_out") and isinstance(cv, int):
        judged = fitted.judge_left_out()
        return Fresh(judged.accept, judged.top, judged.proba, sets.to_indicator())
    top = np.full(n, -1, dtype=np.intp)
    proba, accept = np.zeros((n, sets.n_classes)), np.zeros(n)
    for train, test in _folds(cv, n, groups, seed).split(np.zeros((n, 1)), None, groups):
        model = clone(learner).fit(_safe_indexing(X, train), sets[train])
        _, judged = judge(model, _safe_indexing(X, test))
        top[test], proba[test], accept[test] = judged.top, judged.proba, judged.accept
    if (top < 0).any():
        raise ValueError(
            f"cv leaves out {int((top < 0).sum())} of {n} instances; every one must be held out "
            "once, as KFold does."
        )
    return Fresh(accept, top, proba, sets.to_indicator())


def _folds(cv: Any, n: int, groups: Any, seed: int) -> Any:
    if hasattr(cv, "split") and not isinstance(cv, str):
        return cv
    n_units = n if groups is None else len(np.unique(np.asarray(groups)))
    what = "instances" if groups is None else "groups"
    if not isinstance(cv, int) or isinstance(cv, bool) or cv < 2:
        raise ValueError(f"cv must be a number of folds, 2 or more, or a splitter; got {cv!r}.")
    if n_units < cv:
        raise ValueError(f"cv asks for {cv} folds, but there are only {n_units} {what}.")
    if groups is None:
        return KFold(cv, shuffle=True, random_state=seed)
    return GroupKFold(cv, shuffle=True, random_state=seed)


def fingerprints(X: Any) -> NDArray[np.uint64]:
    """A number for each row that tells rows apart by their values alone.

    Examples
    --------
    >>> a = fingerprints([[1.0, 2.0], [3.0, 4.0]])
    >>> bool(a[0] == fingerprints([[1, 2]])[0]), bool(a[0] == a[1])
    (True, False)
    """
    if sp.issparse(X):
        table = sp.csr_array(X)
        rows = range(0, table.shape[0], DENSE_ROWS)
        parts = [fingerprints(table[i : i + DENSE_ROWS].toarray()) for i in rows]
        return np.concatenate([np.zeros(0, dtype=np.uint64), *parts])
    cells = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if cells.dtype.kind in "biuf":
        numbers = np.ascontiguousarray(cells, dtype=np.float64)
        pieces = [row.tobytes() for row in numbers + 0.0]  # -0.0 is the zero it equals
    else:
        pieces = [repr(row).encode() for row in cells.tolist()]
    digests = b"".join(hashlib.blake2b(piece, digest_size=8).digest() for piece in pieces)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def draws(prints: NDArray[np.uint64], seed: int) -> Floats:
    """A number in [0, 1) for each row that depends on the row and the seed alone."""
    with np.errstate(over="ignore"):
        # The mixing of the splitmix64 generator, started from both.
        state = prints ^ (np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15))
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)
