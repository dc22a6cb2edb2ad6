"""PL-SVM: the best candidate is to beat the best other label by a margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from demur._kernels import kernel
from demur._parameters import check_number, check_whole
from demur.base import Judgement, PartialLabelClassifier
from demur.candidates import CandidateSets
from demur.state import check_array, check_columns

MIN_STEPS = 100_000
MIN_PASSES = 10
LARGEST_STEP = 1e150


class PlSvm(PartialLabelClassifier):
    r"""Maximum margin between candidates and other labels, by Pegasos.

    With one weight vector :math:`w_y` a class and no intercept, it seeks the least

    .. math:: \frac{\lambda}{2} \sum_y \lVert w_y \rVert^2 + \frac{1}{n} \sum_i
        \max\bigl(0, 1 - \max_{y \in s_i} w_y x_i + \max_{y \notin s_i} w_y x_i\bigr)

    by stochastic subgradient steps: step t takes one training instance at random, the
    step size :math:`1 / (\lambda t)`, and then puts the weights back into the ball of
    radius :math:`1 / \sqrt\lambda`, where the optimum lies. An instance that has every
    label as a candidate asks for no margin. Features should be of similar size, say
    scaled to [0, 1].

    Probabilities are the softmax of the scores :math:`w_y x`. The ball keeps scores close
    together, so for small features and :math:`\lambda = 1` even the largest probability
    is far below 0.9, and the method accepts only at a threshold chosen for it.

    Parameters
    ----------
    regularization : float, default=1.0
        :math:`\lambda`.
    n_steps : int or None, default=None
        None for ten a training instance, and 100,000 at least.
    random_state : int, RandomState or None, default=None
        Draws the instances.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    accept_threshold_ : float
        0.9.
    coef_ : ndarray of shape (n_classes, n_features)
        The weights; 0 for a class that never is a candidate, which is never predicted.
    transduction_ : ndarray of shape (n_training_instances,)
        The candidate with the largest score.

    References
    ----------
    N. Nguyen, R. Caruana: Classification with partial labels. KDD, 2008.

    S. Shalev-Shwartz, Y. Singer, N. Srebro: Pegasos: Primal estimated sub-gradient solver
    for SVM. ICML, 2007.

    Examples
    --------
    >>> from demur.methods.pl_svm import PlSvm
    >>> X = [[0.9, 0.1], [0.8, 0.0], [1.0, 0.2], [0.1, 0.9], [0.0, 0.8], [0.2, 1.0]]
    >>> S = [["ant"], ["ant", "bee"], ["ant"], ["bee"], ["ant", "bee"], ["bee"]]
    >>> model = PlSvm(regularization=0.1, random_state=0).fit(X, S)
    >>> model.predict([[1.0, 0.0], [0.0, 1.0]]).tolist()
    ['ant', 'bee']
    >>> model.transduction_.tolist()
    ['ant', 'ant', 'ant', 'bee', 'bee', 'bee']
    """

    accept_threshold_ = 0.9

    def __init__(
        self,
        regularization: float = 1.0,
        n_steps: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.regularization = regularization
        self.n_steps = n_steps
        self.random_state = random_state

    def _fit(self, X: NDArray[np.float64], sets: CandidateSets) -> None:
        check_number("regularization", self.regularization)
        if not self.regularization > 0:
            raise ValueError(f"regularization must be over 0; got {self.regularization}.")
        if self.n_steps is not None:
            check_whole("n_steps", self.n_steps, 1)
        largest = float(np.abs(X).max())
        if largest > LARGEST_STEP * min(1.0, self.regularization):
            raise ValueError(
                f"features as large as {largest:.3g} make steps whose square is no number; "
                "scale them, for instance to [0, 1]."
            )
        n_steps = self.n_steps or max(MIN_STEPS, MIN_PASSES * len(X))
        order = check_random_state(self.random_state).randint(len(X), size=n_steps)
        candidates = sets.to_indicator()
        self._seen = candidates.any(axis=0)
        weights = _pegasos(X, candidates[:, self._seen], order, float(self.regularization))
        self.coef_ = np.zeros((sets.n_classes, X.shape[1]))
        self.coef_[self._seen] = weights.T
        self._labels = np.asarray(np.where(candidates, self._scores(X), -np.inf).argmax(axis=1))

    def _restored(self) -> None:
        n_classes = len(self.classes_)
        check_array(self.coef_, "f", (n_classes, self.n_features_in_), "its weights")
        check_array(self._seen, "b", (n_classes,), "its list of classes")
        check_columns(self._labels, n_classes, len(self._labels), "its labels")

    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        return Judgement.of_proba(softmax(self._scores(X), axis=1))

    def _transduce(self) -> NDArray[np.intp]:
        return self._labels

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.where(self._seen, X @ self.coef_.T, -np.inf))


@kernel
def _pegasos(
    X: NDArray[np.float64],
    candidates: NDArray[np.bool_],
    order: NDArray[np.int64],
    regularization: float,
) -> NDArray[np.float64]:
    """Weights, features by classes: the inner loops then run over neighbouring cells."""
    d, n_classes = X.shape[1], candidates.shape[1]
    weights = np.zeros((d, n_classes))
    scores = np.empty(n_classes)
    squares = np.empty(n_classes)
    for step in range(len(order)):
        row = order[step]
        x = X[row]
        scores[:] = 0.0
        for f in range(d):
            for y in range(n_classes):
                scores[y] += weights[f, y] * x[f]
        inside, outside = -1, -1
        for y in range(n_classes):
            if candidates[row, y]:
                if inside < 0 or scores[y] > scores[inside]:
                    inside = y
            elif outside < 0 or scores[y] > scores[outside]:
                outside = y
        weights *= step / (step + 1)
        if outside < 0 or scores[inside] - scores[outside] >= 1:
            continue  # shrinking leaves no ball
        size = 1 / (regularization * (step + 1))
        squares[:] = 0.0
        for f in range(d):
            weights[f, inside] += size * x[f]
            weights[f, outside] -= size * x[f]
            for y in range(n_classes):
                squares[y] += weights[f, y] * weights[f, y]
        square = regularization * squares.sum()
        if square > 1:
            weights /= np.sqrt(square)
    return weights
