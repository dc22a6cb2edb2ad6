"""A classifier that says what its features tell it to, and data with known truth for it."""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from demur import CandidateSets
from demur.base import Judgement


class Told(ClassifierMixin, BaseEstimator):
    """Features are (name, accept score, predicted column); the score is its probability."""

    def fit(self, X, y):
        self.classes_ = y.classes if isinstance(y, CandidateSets) else np.unique(y)
        return self

    def judge(self, X):
        X = np.asarray(X, dtype=np.float64)
        top, score = X[:, 2].astype(np.intp), X[:, 1]
        l = len(self.classes_)
        proba = np.repeat((1 - score)[:, None] / (l - 1), l, axis=1)
        proba[np.arange(len(X)), top] = score
        return Judgement(top, proba, score)


class Sample(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    S: np.ndarray


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def draw():
    """Draws instances of three classes whose prediction is wrong with chance ``1 - score``."""

    def draw(n, seed=0, *, low=0.5, extra=0.3, first=0):
        rng = np.random.default_rng([n, seed])
        score = rng.uniform(low, 1.0, n)
        top = rng.integers(3, size=n)
        wrong = rng.random(n) < 1 - score
        y = np.where(wrong, (top + rng.integers(1, 3, size=n)) % 3, top)
        S = rng.random((n, 3)) < extra
        S[np.arange(n), y] = True
        return Sample(np.column_stack([first + np.arange(n), score, top]), y, S)

    return draw
