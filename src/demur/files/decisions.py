"""Decisions on a batch: label, accepted or not and why not, and what is known of the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from demur.base import PartialLabelClassifier

SHOWN_LABELS = 3


class Decisions(NamedTuple):
    """What a model decides on some rows.

    Attributes
    ----------
    classes : list of str
    top, rival : ndarray of shape (n,)
        Columns of the predicted label and of the one that comes closest to it.
    accept : ndarray of shape (n,)
        Accept scores.
    threshold : float
    proba : ndarray of shape (n, n_classes)
    belief, plausibility : ndarray of shape (n, n_classes), or None
        Of methods that combine evidence.
    reason : ndarray of shape (n,)
        Index of ``REASONS``; 0 where accepted.
    """

    classes: list[str]
    top: NDArray[np.intp]
    rival: NDArray[np.intp]
    accept: NDArray[np.float64]
    threshold: float
    proba: NDArray[np.float64]
    belief: NDArray[np.float64] | None
    plausibility: NDArray[np.float64] | None
    reason: NDArray[np.intp]

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """Whether each label is safe by the threshold."""
        return self.accept > self.threshold

    def reasons(self) -> pa.Array:
        """Why each rejected row was rejected, as text; empty for the others."""
        l = len(self.classes)
        codes, inverse = np.unique(
            (self.reason * l + self.top) * l + np.where(self.reason > 0, self.rival, 0),
            return_inverse=True,
        )
        texts = [
            REASONS[code // l**2].format(
                top=self.classes[code // l % l], rival=self.classes[code % l]
            )
            for code in codes.tolist()
        ]
        return pa.array(texts, pa.string()).take(pa.array(inverse.ravel()))

    def plausible(self, row: int) -> list[str]:
        """Labels to offer a person for a row, the likeliest first; three at most."""
        if self.belief is None or self.plausibility is None:
            order = np.argsort(-self.proba[row], kind="stable")
            likely = self.proba[row] >= self.proba[row].max() / 4
        else:
            order = np.lexsort((-self.plausibility[row], -self.belief[row]))
            # What cannot be ruled out: it may be as probable as the top is for sure.
            likely = self.plausibility[row] >= self.belief[row].max()
            likely &= self.plausibility[row] > self.plausibility[row].min()
        kept = [int(y) for y in order[:SHOWN_LABELS] if likely[y]]
        first = int(self.top[row])
        return [self.classes[y] for y in [first, *(y for y in kept if y != first)][:SHOWN_LABELS]]

    def table(self) -> pa.Table:
        """The decisions as columns."""
        names = pa.array(self.classes, pa.string())
        columns: dict[str, Any] = {
            "label": names.take(pa.array(self.top)),
            "accepted": pa.array(self.accepted),
            "accept_score": pa.array(self.accept),
            "threshold": pa.array(np.full(len(self.top), self.threshold)),
        }
        rows = np.arange(len(self.top))
        if self.belief is not None and self.plausibility is not None:
            columns["belief"] = pa.array(self.belief[rows, self.top])
            columns["plausibility"] = pa.array(self.plausibility[rows, self.top])
        else:
            order = np.argsort(-self.proba, axis=1, kind="stable")
            for j in range(min(SHOWN_LABELS, len(self.classes))):
                columns[f"label_{j + 1}"] = names.take(pa.array(order[:, j]))
                columns[f"probability_{j + 1}"] = pa.array(self.proba[rows, order[:, j]])
        columns["reason"] = self.reasons()
        return pa.table(columns)


REASONS = (
    "",
    "conflict: neighbours contradict each other ({top} or {rival})",
    "ignorance: too little speaks for {top} or any other label",
    "too close: {top} and {rival}",
    "ignorance: many labels are possible ({top} is the likeliest)",
    "below the threshold: {top} or else {rival}",
)
_CONFLICT, _IGNORANCE, _CLOSE, _SPREAD, _BELOW = range(1, 6)


def decide(
    method: PartialLabelClassifier, X: NDArray[np.float64], threshold: float | None = None
) -> Decisions:
    """Decide on features that are on the method's scale.

    A method that combines evidence says why it rejects by what stands in the way: without
    the conflict it would accept; or without the rest of the ignorance; or else another label
    has support of its own, unless the threshold alone is what rejects. For other methods the
    probabilities of the top two tell.
    """
    limit = method.accept_threshold_ if threshold is None else float(threshold)
    classes = [str(label) for label in method.classes_.tolist()]
    if hasattr(method, "judge_with_evidence"):
        judged, evidence = method.judge_with_evidence(X)
        rival = _rival(evidence.plausibility, judged.top)
        rows = np.arange(len(X))
        missing = judged.accept + evidence.conflict <= limit  # even without the conflict
        close = judged.accept + evidence.ignorance <= limit
        # A label that the method itself would accept is not close to another.
        rest = np.where(judged.accept > method.accept_threshold_, _BELOW, _CLOSE)
        reason = np.where(missing, np.where(close, rest, _IGNORANCE), _CONFLICT)
        reason[evidence.belief[rows, judged.top] == 0] = _IGNORANCE
        known = evidence.belief, evidence.plausibility
    else:
        judged = method.judge(X)
        rival = _rival(judged.proba, judged.top)
        rows = np.arange(len(X))
        first, second = judged.proba[rows, judged.top], judged.proba[rows, rival]
        spread = second < 1 - first - second
        reason = np.where(second >= first / 2, _CLOSE, np.where(spread, _SPREAD, _BELOW))
        known = None, None
    reason[judged.accept > limit] = 0
    return Decisions(classes, judged.top, rival, judged.accept, limit, judged.proba, *known, reason)


def _rival(values: NDArray[np.float64], top: NDArray[np.intp]) -> NDArray[np.intp]:
    others = values.copy()
    others[np.arange(len(top)), top] = -1.0
    return np.asarray(others.argmax(axis=1))
