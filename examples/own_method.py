"""A method of your own: three functions, and it keeps the contract of all others.

python examples/own_method.py
"""

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

from demur.base import Judgement, PartialLabelClassifier
from demur.noise import class_dependent_noise


class NearestCenter(PartialLabelClassifier):
    """The nearest center of a class; each instance belongs to its nearest candidate."""

    accept_threshold_ = 0.9

    def __init__(self, n_rounds=10):
        self.n_rounds = n_rounds

    def _fit(self, X, sets):
        self._X, self._candidates = X, sets.to_indicator()
        share = self._candidates / sets.sizes[:, None]
        for _ in range(self.n_rounds):
            total = share.sum(axis=0)[:, None]
            centers = share.T @ X / np.where(total > 0, total, 1)
            self.centers_ = np.where(total > 0, centers, np.inf)  # never a candidate: never near
            share = np.eye(sets.n_classes)[self._transduce()]

    def _judge(self, X):
        return Judgement.of_proba(softmax(self._nearness(X), axis=1))

    def _transduce(self):
        return np.where(self._candidates, self._nearness(self._X), -np.inf).argmax(axis=1)

    def _nearness(self, X):
        return -((X[:, None, :] - self.centers_) ** 2).mean(axis=2)


if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    candidates = class_dependent_noise(y[:1400], share=0.7, random_state=0)
    model = NearestCenter().fit(X[:1400], candidates)
    decisions = model.decide(X[1400:])
    print(f"right: {model.score(X[1400:], y[1400:]):.1%} of all", end=", ")
    print(f"{(decisions == y[1400:]).mean():.1%} of the {decisions.count()} accepted")
    print("inside the sets of folds held out:", cross_val_score(model, X[:1400], candidates))
