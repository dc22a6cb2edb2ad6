"""Let a scikit-learn classifier learn from candidate sets, by a declared way to labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from demur.base import Judgement
from demur.candidates import CandidateSets
from demur.neighbors import NeighborIndex

WAYS = ("majority", "first", "expand")
N_NEIGHBORS = 10


class LabelClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """An ordinary classifier, trained on labels made from the candidate sets.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba`` or ``decision_function``. It is cloned, not changed.
    labels : {"majority", "first", "expand"} or callable, default="majority"
        How a candidate set becomes a label to train on:

        - "majority": the candidate that most of the 10 nearest training instances hold too;
        - "first": the first candidate in the order of the classes;
        - "expand": every candidate, the instance once for each with weight 1 / (their
          number); the classifier's ``fit`` must take ``sample_weight``;
        - a callable ``(X, sets) -> labels``, such as one that looks up the majority of the
          annotators' answers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All classes of the candidate sets; those never trained on get probability 0.
    estimator_ : classifier
        The trained one.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> S = [["a"], ["a", "b"], ["a", "c"], ["b"], ["b"], ["b", "c"]]
    >>> model = LabelClassifier(LogisticRegression(), labels="expand").fit(X, S)
    >>> model.predict([[0.1], [5.1]]).tolist()
    ['a', 'b']
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: Any,
        labels: str | Callable[[Any, CandidateSets], Any] = "majority",
    ) -> None:
        self.estimator = estimator
        self.labels = labels

    def fit(self, X: Any, y: Any) -> Self:
        """Make labels of the candidate sets, and train on them."""
        sets = y if isinstance(y, CandidateSets) else CandidateSets(y)
        if callable(self.labels):
            chosen = np.asarray(self.labels(X, sets))
            inside = sets.contains(chosen)
            if not inside.all():
                raise ValueError(
                    f"labels() gave {chosen[~inside].tolist()[0]!r} for row "
                    f"{int(np.flatnonzero(~inside)[0])}, which is not one of its candidates."
                )
            self.estimator_ = clone(self.estimator).fit(X, chosen)
        elif self.labels == "first":
            self.estimator_ = clone(self.estimator).fit(X, _first(sets))
        elif self.labels == "majority":
            self.estimator_ = clone(self.estimator).fit(X, _majority(X, sets))
        elif self.labels == "expand":
            self.estimator_ = self._fit_expanded(X, sets)
        else:
            raise ValueError(
                f"labels must be one of {', '.join(map(repr, WAYS))} or a callable; "
                f"got {self.labels!r}."
            )
        self.classes_ = sets.classes
        return self

    def _fit_expanded(self, X: Any, sets: CandidateSets) -> Any:
        model = clone(self.estimator)
        last, path = model, ""
        while isinstance(last, Pipeline):
            step, last = last.steps[-1]
            path += f"{step}__"
        if not has_fit_parameter(last, "sample_weight"):
            raise ValueError(
                f"labels='expand' weighs instances, but {type(last).__name__}.fit takes no "
                "sample_weight; use labels='majority' or 'first'."
            )
        rows, columns = np.nonzero(sets.to_indicator())
        weights = {f"{path}sample_weight": 1.0 / sets.sizes[rows]}
        return model.fit(_safe_indexing(X, rows), sets.classes[columns], **weights)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the classifier."""
        return int(self.estimator_.n_features_in_)

    def judge(self, X: Any) -> Judgement:
        """Predictions, probabilities and the largest of these, in one pass."""
        check_is_fitted(self)
        return Judgement.of_proba(spread(class_proba(self.estimator_, X), self))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label."""
        return np.asarray(self.classes_[self.judge(X).top])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities, in the order of ``classes_``."""
        return self.judge(X).proba


def spread(proba: NDArray[np.float64], model: LabelClassifier) -> NDArray[np.float64]:
    """Probabilities of the classes that were trained on, in the columns of all classes."""
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    columns = [place[label] for label in model.estimator_.classes_.tolist()]
    wide = np.zeros((len(proba), len(model.classes_)))
    wide[:, columns] = proba
    return wide


def class_proba(classifier: Any, X: Any) -> NDArray[np.float64]:
    """Probabilities, or the softmax of the margins of a classifier that has none."""
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X), dtype=np.float64)
    if not hasattr(classifier, "decision_function"):
        raise ValueError(
            f"{type(classifier).__name__} has neither predict_proba nor decision_function, so "
            "nothing says how sure it is."
        )
    margins = np.asarray(classifier.decision_function(X), dtype=np.float64)
    if margins.ndim == 1:
        margins = np.column_stack([np.zeros_like(margins), margins])
    odds = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _first(sets: CandidateSets) -> NDArray[Any]:
    return np.asarray(sets.classes[sets.to_indicator().argmax(axis=1)])


def _majority(X: Any, sets: CandidateSets) -> NDArray[Any]:
    """The candidate that most of the nearest instances hold; among equals the first."""
    try:
        features = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "labels='majority' compares features, but X does not hold numbers only; "
            "use labels='expand' or 'first'."
        ) from None
    held = sets.to_indicator()
    _, neighbors = NeighborIndex(features.reshape(len(features), -1)).query_self(N_NEIGHBORS)
    votes = held[neighbors].sum(axis=1)
    return np.asarray(sets.classes[np.where(held, votes, -1).argmax(axis=1)])
