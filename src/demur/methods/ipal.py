"""IPAL: neighbours reconstruct an instance, and confidences in labels flow along the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from demur._kernels import in_ranges, kernel
from demur._parameters import check_number, check_whole
from demur.base import Judgement, PartialLabelClassifier
from demur.candidates import CandidateSets
from demur.neighbors import build_index
from demur.state import check_array, check_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

ROUNDING = 2.0**-52


class Ipal(PartialLabelClassifier):
    r"""Instance-based partial-label learning by iterative label propagation.

    The weights :math:`w_{ij} \ge 0` with which the neighbours :math:`x_j` of an instance
    :math:`x_i` reconstruct it best,
    :math:`\min_w \lVert x_i - \sum_j w_{ij} x_j \rVert^2`, say how much its neighbours'
    labels count; neighbours at the same point, which the problem cannot tell apart, share
    theirs evenly. Confidences start uniform on the candidates, :math:`P`, and are renewed by

    .. math:: F \leftarrow \alpha H F + (1 - \alpha) P

    where :math:`H` has the weights with rows that sum to 1; after each step they are cut to
    the candidates and rows are made to sum to 1 again. The label of a training instance is
    the candidate with the most confidence once each class is scaled so that its confidences
    add up to what they added up to at the start (class mass normalisation).

    A new instance is reconstructed by its neighbours in the same way. It gets the class
    whose neighbours alone, with their weights, leave the smallest error
    :math:`e_y = \lVert x - \sum_{j: \hat y_j = y} w_j x_j \rVert`. The probability of a
    class is proportional to :math:`\max(0, \lVert x \rVert - e_y)`, which is how much of
    the instance the class accounts for; where no class accounts for anything, the
    neighbours vote with equal weight.

    Parameters
    ----------
    n_neighbors : int, default=10
    alpha : float, default=0.95
        How much of a confidence comes from the neighbours; in [0, 1).
    n_iterations : int, default=100
    n_jobs : int or None, default=None
        Threads; None for all that the process may use. The results are the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    accept_threshold_ : float
        0.9.
    confidences_ : ndarray of shape (n_training_instances, n_classes)
        Final confidences in the candidates, before class mass normalisation.
    transduction_ : ndarray of shape (n_training_instances,)

    References
    ----------
    M.-L. Zhang, F. Yu: Solving the partial label learning problem: An instance-based
    approach. IJCAI, 2015.

    Examples
    --------
    >>> from demur.methods.ipal import Ipal
    >>> X = [[1.0, 0.1], [1.1, 0.2], [0.9, 0.1], [0.1, 1.0], [0.2, 1.1], [0.1, 0.9]]
    >>> S = [["ant"], ["ant", "bee"], ["ant", "bee"], ["ant", "bee"], ["bee"], ["bee"]]
    >>> clf = Ipal(n_neighbors=2).fit(X, S)
    >>> clf.transduction_.tolist()
    ['ant', 'ant', 'ant', 'bee', 'bee', 'bee']
    >>> clf.predict([[1.0, 0.0], [0.0, 1.0]]).tolist()
    ['ant', 'bee']
    """

    accept_threshold_ = 0.9

    def __init__(
        self,
        n_neighbors: int = 10,
        alpha: float = 0.95,
        n_iterations: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_iterations = n_iterations
        self.n_jobs = n_jobs

    def _fit(self, X: Floats, sets: CandidateSets) -> None:
        check_number("alpha", self.alpha)
        check_whole("n_iterations", self.n_iterations, 0)
        if not 0 <= self.alpha < 1:
            raise ValueError(f"alpha must be at least 0 and less than 1; got {self.alpha}.")
        self._index = build_index(X, self.n_neighbors)
        _, neighbors = self._index.query_self(self.n_neighbors, n_jobs=self.n_jobs)
        weights = _reconstruct(X, X, neighbors, self.n_jobs)
        candidates = sets.to_indicator()
        self.confidences_ = _propagate(
            _row_stochastic(neighbors, weights), candidates, self.alpha, self.n_iterations
        )
        self._labels = _most_confident(self.confidences_, candidates)

    def _restored(self) -> None:
        n, n_classes = len(self._index.X), len(self.classes_)
        check_array(self._index.X, "f", (n, self.n_features_in_), "its points")
        check_array(self.confidences_, "f", (n, n_classes), "its confidences")
        check_columns(self._labels, n_classes, n, "its labels")

    def _judge(self, X: Floats) -> Judgement:
        _, neighbors = self._index.query(X, self.n_neighbors, n_jobs=self.n_jobs)
        weights = _reconstruct(self._index.X, X, neighbors, self.n_jobs)
        proba = np.zeros((len(X), len(self.classes_)))

        def judge(start: int, stop: int) -> None:
            rows = slice(start, stop)
            _explain(
                self._index.X, X[rows], neighbors[rows], weights[rows], self._labels, proba[rows]
            )

        in_ranges(judge, len(X), self.n_jobs)
        return Judgement.of_proba(proba)

    def _transduce(self) -> Ints:
        return self._labels


# ------------------------------------------------------------------- flow of confidences


def _row_stochastic(neighbors: Ints, weights: Floats) -> Any:
    """The weights as a sparse matrix whose rows sum to 1, or 0 where all weights are 0."""
    n, k = neighbors.shape
    total = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return sp.csr_array((shares.ravel(), neighbors.ravel(), np.arange(0, n * k + 1, k)), (n, n))


def _propagate(flow: Any, candidates: Flags, alpha: float, n_iterations: int) -> Floats:
    uniform = candidates / candidates.sum(axis=1, keepdims=True)
    confidences = uniform
    for _ in range(n_iterations):
        confidences = alpha * (flow @ confidences) + (1 - alpha) * uniform
        confidences *= candidates
        confidences /= confidences.sum(axis=1, keepdims=True)
    return np.asarray(confidences)


def _most_confident(confidences: Floats, candidates: Flags) -> Ints:
    """Class mass normalisation, then the best candidate."""
    before = (candidates / candidates.sum(axis=1, keepdims=True)).sum(axis=0)
    after = confidences.sum(axis=0)
    scale = np.divide(before, after, out=np.zeros_like(before), where=after > 0)
    return np.asarray((confidences * scale).argmax(axis=1))


# ------------------------------------------------------------------------ reconstruction


def _reconstruct(
    X: Floats,
    Q: Floats,
    neighbors: Ints,
    n_jobs: int | None,
) -> Floats:
    """Non-negative weights with which each row of Q is best made of its neighbours in X."""
    weights = np.zeros(neighbors.shape)

    def solve(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _nnls_rows(X, Q[rows], neighbors[rows], weights[rows])

    in_ranges(solve, len(Q), n_jobs)
    return weights


@kernel
def _nnls_rows(X: Floats, Q: Floats, neighbors: Ints, weights: Floats) -> None:
    k = neighbors.shape[1]
    d = X.shape[1]
    columns = np.empty((k + 1, d))  # the neighbours, then the query
    for row in range(len(Q)):
        largest = 0.0
        for f in range(d):
            for j in range(k):
                columns[j, f] = X[neighbors[row, j], f]
                largest = max(largest, abs(columns[j, f]))
            columns[k, f] = Q[row, f]
            largest = max(largest, abs(Q[row, f]))
        if largest > 0:
            columns /= largest  # weights stay the same, and no square overflows
            if d > k + 1:
                _triangularise(columns, k)
            _nnls(columns[:, : min(d, k + 1)], weights[row])
            _share_among_identical(X, neighbors[row], weights[row])


@kernel
def _share_among_identical(X: Floats, neighbors: Ints, weights: Floats) -> None:
    """Spread a weight evenly over neighbours at the same point, which it cannot tell apart."""
    k = len(neighbors)
    shared = np.zeros(k, dtype=np.bool_)
    group = np.empty(k, dtype=np.intp)
    for j in range(k):
        if shared[j]:
            continue
        size, total = 0, 0.0
        for other in range(j, k):
            f = 0
            while f < X.shape[1] and X[neighbors[j], f] == X[neighbors[other], f]:
                f += 1
            if f == X.shape[1]:
                group[size] = other
                size += 1
                total += weights[other]
        for member in group[:size]:
            weights[member] = total / size
            shared[member] = True


@kernel
def _triangularise(columns: Floats, n_pivots: int) -> None:
    """Householder reflections that zero the first columns below the diagonal, in place."""
    n_columns, n_rows = columns.shape
    for p in range(min(n_pivots, n_rows)):
        mirror = columns[p]
        norm = 0.0
        for i in range(p, n_rows):
            norm += mirror[i] * mirror[i]
        if norm == 0:
            continue
        pivot = -np.sqrt(norm) if mirror[p] > 0 else np.sqrt(norm)
        half = norm - pivot * mirror[p]  # half the squared length of the mirror's normal
        mirror[p] -= pivot
        for j in range(p + 1, n_columns):
            along = 0.0
            for i in range(p, n_rows):
                along += mirror[i] * columns[j, i]
            along /= half
            for i in range(p, n_rows):
                columns[j, i] -= along * mirror[i]
        mirror[p] = pivot
        mirror[p + 1 :] = 0.0


@kernel
def _nnls(columns: Floats, weights: Floats) -> None:
    """Lawson and Hanson's active sets; the last column is the target, weights start at 0.

    Each least-squares problem is solved by reflections, not by normal equations, which
    would square the condition number: neighbours are often nearly collinear.
    """
    k, n_rows = len(columns) - 1, columns.shape[1]
    used = np.empty(k, dtype=np.intp)  # columns with a positive weight, oldest first
    n_used = 0
    barred = np.zeros(k, dtype=np.bool_)
    tolerance = 10 * max(k, n_rows) * ROUNDING * np.sqrt((columns[k] * columns[k]).sum())
    residual = columns[k].copy()
    solution = np.empty(k)
    work = np.empty(columns.shape)
    for _ in range(10 * k):  # a handful does; the bound is for cycles made by rounding
        best, steepest = -1, 0.0
        for j in range(k):
            if weights[j] == 0 and not barred[j]:
                gradient = 0.0
                norm = 0.0
                for i in range(n_rows):
                    gradient += columns[j, i] * residual[i]
                    norm += columns[j, i] * columns[j, i]
                if gradient > max(steepest, tolerance * np.sqrt(norm)):
                    best, steepest = j, gradient
        if best < 0:
            return
        used[n_used] = best
        n_used += 1
        independent = _least_squares(columns, used[:n_used], work, solution)
        if not independent or solution[n_used - 1] <= 0:
            n_used -= 1
            barred[best] = True  # steep by rounding only
            continue
        while solution[:n_used].min() <= 0:
            step = 1.0
            for u in range(n_used):
                if solution[u] <= 0:
                    old = weights[used[u]]
                    step = min(step, old / (old - solution[u]))
            kept = 0
            for u in range(n_used):
                j = used[u]
                old = weights[j]
                stops_here = solution[u] <= 0 and old / (old - solution[u]) <= step
                weights[j] = 0.0 if stops_here else old + step * (solution[u] - old)
                if weights[j] > 0:
                    used[kept] = j
                    kept += 1
                else:
                    weights[j] = 0.0
            n_used = kept
            _least_squares(columns, used[:n_used], work, solution)
        for u in range(n_used):
            weights[used[u]] = solution[u]
        for i in range(n_rows):
            residual[i] = columns[k, i]
            for u in range(n_used):
                residual[i] -= solution[u] * columns[used[u], i]
        barred[:] = False


@kernel
def _least_squares(columns: Floats, used: Ints, work: Floats, solution: Floats) -> bool:
    """Solve for the used columns; False if the last of them depends on the others."""
    n_used, n_rows = len(used), columns.shape[1]
    if n_used > n_rows:
        return False
    for u in range(n_used):
        work[u] = columns[used[u]]
    work[n_used] = columns[-1]
    _triangularise(work[: n_used + 1], n_used)
    last = work[n_used - 1]
    if abs(last[n_used - 1]) <= 10 * n_rows * ROUNDING * np.abs(last[:n_used]).max():
        return False
    for u in range(n_used - 1, -1, -1):
        value = work[n_used, u]
        for v in range(u + 1, n_used):
            value -= work[v, u] * solution[v]
        solution[u] = value / work[u, u]
    return True


@kernel
def _explain(
    X: Floats, Q: Floats, neighbors: Ints, weights: Floats, labels: Ints, proba: Floats
) -> None:
    """How much of each query each class accounts for, as shares; ``proba`` starts at 0."""
    k = neighbors.shape[1]
    d = X.shape[1]
    for row in range(len(Q)):
        largest = np.abs(Q[row]).max()
        scale = largest if largest > 0 else 1.0
        length = np.sqrt(((Q[row] / scale) ** 2).sum())
        total = 0.0
        for j in range(k):
            label = labels[neighbors[row, j]]
            if proba[row, label] > 0 or weights[row, j] == 0:
                continue
            error = 0.0
            for f in range(d):
                left = Q[row, f]
                for other in range(k):
                    if labels[neighbors[row, other]] == label:
                        left -= weights[row, other] * X[neighbors[row, other], f]
                error += (left / scale) ** 2
            proba[row, label] = max(0.0, length - np.sqrt(error))
            total += proba[row, label]
        if total > 0:
            for label in range(proba.shape[1]):
                proba[row, label] /= total
        else:
            for j in range(k):
                proba[row, labels[neighbors[row, j]]] += 1.0 / k
