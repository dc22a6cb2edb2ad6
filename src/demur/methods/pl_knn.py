"""PL-KNN: nearest neighbours vote for each of their candidates, the nearer the louder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from demur._kernels import in_ranges, kernel
from demur.base import Judgement, PartialLabelClassifier
from demur.candidates import CandidateSets
from demur.neighbors import build_index
from demur.state import check_array, check_words


class PlKnn(PartialLabelClassifier):
    """Each of the k nearest neighbours votes for all its candidates.

    A neighbour's vote weighs ``1 - distance / (sum of the k distances)``. Probabilities are
    the votes divided by their sum; a prediction is accepted when it has over half of them.

    Parameters
    ----------
    n_neighbors : int, default=10
    metric : {"euclidean", "manhattan"}, default="euclidean"
    algorithm : {"auto", "kd_tree", "brute"}, default="auto"
        How neighbours are searched; the answers are the same.
    n_jobs : int or None, default=None
        Threads; None for all that the process may use. The results are the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    accept_threshold_ : float
        0.5.
    transduction_ : ndarray of shape (n_training_instances,)
        The candidate for which an instance's own neighbours vote most.

    References
    ----------
    E. Hüllermeier, J. Beringer: Learning from ambiguously labeled examples.
    Intelligent Data Analysis, 2006.

    Examples
    --------
    >>> from demur import PlKnn
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> S = [["a"], ["a", "b"], ["a", "c"], ["b"], ["b"], ["b", "c"]]
    >>> model = PlKnn(n_neighbors=3).fit(X, S)
    >>> model.predict([[0.1], [5.1]]).tolist()
    ['a', 'b']
    >>> model.decide([[0.1], [5.1], [2.6]]).tolist()
    ['a', 'b', None]
    """

    accept_threshold_ = 0.5

    def __init__(
        self,
        n_neighbors: int = 10,
        metric: str = "euclidean",
        algorithm: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.algorithm = algorithm
        self.n_jobs = n_jobs

    def _fit(self, X: NDArray[np.float64], sets: CandidateSets) -> None:
        self._index = build_index(X, self.n_neighbors, metric=self.metric, algorithm=self.algorithm)
        self._words = sets.words

    def _restored(self) -> None:
        check_array(self._index.X, "f", (len(self._words), self.n_features_in_), "its points")
        check_words(self._words, len(self.classes_))

    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        votes = self._vote(*self._index.query(X, self.n_neighbors, n_jobs=self.n_jobs))
        return Judgement.of_proba(votes / votes.sum(axis=1, keepdims=True))

    def judge_left_out(self) -> Judgement:
        """Judge each training instance by the others alone, as if it were new."""
        check_is_fitted(self)
        votes = self._vote(*self._index.query_self(self.n_neighbors, n_jobs=self.n_jobs))
        return Judgement.of_proba(votes / votes.sum(axis=1, keepdims=True))

    def _transduce(self) -> NDArray[np.intp]:
        votes = self._vote(*self._index.query_self(self.n_neighbors, n_jobs=self.n_jobs))
        candidates = CandidateSets._packed(self._words, self.classes_).to_indicator()
        return np.asarray(np.where(candidates, votes, -1.0).argmax(axis=1))

    def _vote(
        self, distances: NDArray[np.float64], neighbors: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        total = distances.sum(axis=1, keepdims=True)
        weights = 1.0 - np.divide(distances, total, out=np.zeros_like(distances), where=total > 0)
        # A single neighbour, or the only one at a distance, would have no vote at all.
        weights[weights.sum(axis=1) == 0] = 1.0
        votes = np.zeros((len(neighbors), len(self.classes_)))

        def work(start: int, stop: int) -> None:
            rows = slice(start, stop)
            _add_votes(self._words, neighbors[rows], weights[rows], votes[rows])

        in_ranges(work, len(neighbors), self.n_jobs)
        return votes


@kernel
def _add_votes(
    words: NDArray[np.uint64],
    neighbors: NDArray[np.intp],
    weights: NDArray[np.float64],
    votes: NDArray[np.float64],
) -> None:
    for row in range(len(neighbors)):
        for j in range(neighbors.shape[1]):
            for y in range(votes.shape[1]):
                word = words[neighbors[row, j], y // 64]
                if (word >> np.uint64(y % 64)) & np.uint64(1):
                    votes[row, y] += weights[row, j]
