"""PL-SVM: the best candidate is to beat the best other label by a margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from demur._kernels import kernel
from demur.base import Judgement, PartialLabelClassifier
from demur.candidates import CandidateSets


class PlSvm(PartialLabelClassifier):
    def __init__(
        self, *, regularization: float = 1.0, n_steps: int | None = None, random_state: Any = None
    ) -> None:
        self.regularization = regularization
        self.n_steps = n_steps
        self.random_state = random_state

    def _fit(self, X: NDArray[np.float64], sets: CandidateSets) -> None:
        n_steps = max(100_000, 10 * len(X)) if self.n_steps is None else self.n_steps
        random_state = check_random_state(self.random_state)
        order = random_state.randint(len(X), size=n_steps)
        candidates = sets.to_indicator()
        weights = _pegasos(X, candidates, order, float(self.regularization))
        self.coef_ = np.ascontiguousarray(weights.T)
        scores = np.where(candidates, X @ weights, -np.inf)
        self._labels = scores.argmax(axis=1)

    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        return Judgement.of_proba(softmax(X @ self.coef_.T, axis=1))

    def _transduce(self) -> NDArray[np.intp]:
        return self._labels


@kernel
def _pegasos(X, candidates, order, regularization):  # type: ignore[no-untyped-def]
    n, d = X.shape
    l = candidates.shape[1]
    weights = np.zeros((d, l))
    scores = np.empty(l)
    for t in range(1, len(order) + 1):
        row = order[t - 1]
        x = X[row]
        scores[:] = 0.0
        for f in range(d):
            for label in range(l):
                scores[label] += weights[f, label] * x[f]
        inside, outside = -1, -1
        for label in range(l):
            if candidates[row, label]:
                if inside < 0 or scores[label] > scores[inside]:
                    inside = label
            elif outside < 0 or scores[label] > scores[outside]:
                outside = label
        weights *= 1 - 1 / t
        if outside >= 0 and scores[inside] - scores[outside] < 1:
            rate = 1 / (regularization * t)
            for f in range(d):
                weights[f, inside] += rate * x[f]
                weights[f, outside] -= rate * x[f]
        norm = np.sqrt((weights * weights).sum())
        if norm * np.sqrt(regularization) > 1:
            weights *= 1 / (norm * np.sqrt(regularization))
    return weights
