"""DST-PLL: neighbours give evidence, and a prediction is accepted only if nothing rivals it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from demur._parameters import check_number, check_whole
from demur.base import Judgement, PartialLabelClassifier, check_features, one_instance
from demur.candidates import CandidateSets, unpack
from demur.evidence.combine import MAX_NEIGHBORS, Evidence, combine, focal_sets
from demur.methods.explanation import Explanation, NeighborEvidence
from demur.neighbors import build_index
from demur.state import check_array, check_words


class InstanceEvidence(NamedTuple):
    """Combined evidence of a batch, one row an instance, labels in the order of ``classes_``.

    Attributes
    ----------
    belief, plausibility : ndarray of shape (n, n_classes)
    conflict : ndarray of shape (n,)
        Mass that contradicting neighbours put on no label at all; it goes to the frame.
    ignorance : ndarray of shape (n,)
        Mass of the frame, the conflict included.
    top_set : ndarray of bool, shape (n, n_classes)
        The focal set of the most mass.
    top_mass : ndarray of shape (n,)
    """

    belief: NDArray[np.float64]
    plausibility: NDArray[np.float64]
    conflict: NDArray[np.float64]
    ignorance: NDArray[np.float64]
    top_set: NDArray[np.bool_]
    top_mass: NDArray[np.float64]


class DstPll(PartialLabelClassifier):
    """Nearest neighbours whose candidate sets are combined by Yager's rule, with a reject option.

    Each of the k nearest neighbours supports its candidates with mass ``1 - alpha`` and
    leaves ``alpha`` undecided. The label whose singleton gets the most mass is predicted;
    where none gets any, a label of the heaviest focal set. Equals are told apart by
    plausibility, then by chance; the draw depends on ``random_state`` and the instance,
    not on the batch it came in. The accept score is

        Delta = bel(prediction) - largest pl(other label),

    and the prediction is accepted when Delta > 0: then every probability measure that the
    evidence allows ranks the prediction first.

    Parameters
    ----------
    n_neighbors : int, default=10
        From 1 to 64.
    alpha : float, default=0.5
        Mass that a neighbour leaves undecided, between 0 and 1.
    metric : {"euclidean", "manhattan"}, default="euclidean"
    algorithm : {"auto", "kd_tree", "brute"}, default="auto"
        How neighbours are searched; the answers are the same.
    random_state : int, RandomState or None, default=None
        For the ties that plausibility leaves.
    n_jobs : int or None, default=None
        Threads; None for all that the process may use. The results are the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    accept_threshold_ : float
        0.
    transduction_ : ndarray of shape (n_training_instances,)
        The same rule with each training instance's own candidates as frame, worked out
        when first asked for.

    References
    ----------
    T. Fuchs, F. Kalinke, K. Böhm: Partial-Label Learning with a Reject Option.
    Transactions on Machine Learning Research, 2025.

    Examples
    --------
    >>> from demur import DstPll
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> S = [["a"], ["a", "b"], ["a", "c"], ["b"], ["b"], ["b", "c"]]
    >>> model = DstPll(n_neighbors=3).fit(X, S)
    >>> model.predict([[0.1], [5.1]]).tolist()
    ['a', 'b']
    >>> model.accept_score([[0.1], [5.1]]).tolist()
    [0.375, 0.5]
    >>> model.decide([[0.1], [5.1]], threshold=0.4).tolist()
    [None, 'b']
    """

    accept_threshold_ = 0.0

    def __init__(
        self,
        n_neighbors: int = 10,
        alpha: float = 0.5,
        metric: str = "euclidean",
        algorithm: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.metric = metric
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: NDArray[np.float64], sets: CandidateSets) -> None:
        check_number("alpha", self.alpha)
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, both excluded; got {self.alpha}.")
        check_whole("n_neighbors", self.n_neighbors, 1)
        if self.n_neighbors > MAX_NEIGHBORS:
            raise ValueError(
                f"n_neighbors must be at most {MAX_NEIGHBORS}, beyond which masses are too "
                f"small to tell apart; got {self.n_neighbors}."
            )
        self._index = build_index(X, self.n_neighbors, metric=self.metric, algorithm=self.algorithm)
        self._words = sets.words
        self._draw_seed = int(check_random_state(self.random_state).randint(2**31 - 1))

    def _restored(self) -> None:
        check_array(self._index.X, "f", (len(self._words), self.n_features_in_), "its points")
        check_words(self._words, len(self.classes_))
        if not 0 <= self._draw_seed < 2**63:
            raise ValueError("not the arrays of a fitted model: its seed is no seed.")

    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        return self._decide_by(X, self._combine(X, top_sets=False))

    def judge_with_evidence(self, X: Any) -> tuple[Judgement, Evidence]:
        """Judge, and tell the evidence that led to it, with one search for neighbours.

        The heaviest focal sets are looked for only where the judgement needs them.
        """
        check_is_fitted(self)
        features = check_features(self, X, reset=False)
        evidence = self._combine(features, top_sets=False)
        return self._decide_by(features, evidence), evidence

    def _transduce(self) -> NDArray[np.intp]:
        _, neighbors = self._index.query_self(self.n_neighbors, n_jobs=self.n_jobs)
        evidence = combine(
            self._words, neighbors, self._words, len(self.classes_),
            alpha=self.alpha, top_sets=False, n_jobs=self.n_jobs,
        )  # fmt: skip
        return self._decide_by(self._index.X, evidence).top

    def judge_left_out(self) -> Judgement:
        """Judge each training instance by the others alone, as if it were new.

        The frame is all labels: within its own candidates, as in `transduction_`, a
        prediction could never turn out to lie outside them.
        """
        check_is_fitted(self)
        _, neighbors = self._index.query_self(self.n_neighbors, n_jobs=self.n_jobs)
        evidence = combine(
            self._words, neighbors, self._full_frame(), len(self.classes_),
            alpha=self.alpha, top_sets=False, n_jobs=self.n_jobs,
        )  # fmt: skip
        return self._decide_by(self._index.X, evidence)

    def _full_frame(self) -> NDArray[np.uint64]:
        return CandidateSets(np.ones((1, len(self.classes_)), dtype=bool)).words

    def _combine(self, X: NDArray[np.float64], *, top_sets: bool) -> Evidence:
        _, neighbors = self._index.query(X, self.n_neighbors, n_jobs=self.n_jobs)
        return combine(
            self._words, neighbors, self._full_frame(), len(self.classes_),
            alpha=self.alpha, top_sets=top_sets, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _decide_by(self, X: NDArray[np.float64], evidence: Evidence) -> Judgement:
        belief, plausibility = evidence.belief, evidence.plausibility
        rows = np.arange(len(X))
        top = belief.argmax(axis=1)
        best = belief[rows, top]
        total = belief.sum(axis=1)
        proba = np.divide(
            belief, total[:, None], out=np.zeros_like(belief), where=total[:, None] > 0
        )
        massless = np.flatnonzero(best == 0)
        if len(massless):
            heaviest = unpack(evidence.top_set[massless], len(self.classes_))
            proba[massless] = heaviest / heaviest.sum(axis=1, keepdims=True)
        tied = np.flatnonzero((proba == proba[rows, top][:, None]).sum(axis=1) > 1)
        tied = np.union1d(tied, massless)
        if len(tied):
            top[tied] = self._break_ties(X[tied], proba[tied], plausibility[tied])
            # The last bit tells which of the equals was taken, so that argmax finds it too.
            proba[tied, top[tied]] = np.nextafter(proba[tied, top[tied]], 1.0)
        rival = plausibility.copy()
        rival[rows, top] = 0.0
        return Judgement(top, proba, belief[rows, top] - rival.max(axis=1))

    def _break_ties(
        self,
        X: NDArray[np.float64],
        proba: NDArray[np.float64],
        plausibility: NDArray[np.float64],
    ) -> NDArray[np.intp]:
        """Among the most probable labels one of the most plausible, by chance."""
        best = proba == proba.max(axis=1, keepdims=True)
        likely = np.where(best, plausibility, -1.0)
        best &= likely == likely.max(axis=1, keepdims=True)
        chosen = np.floor(_draws(X, self._draw_seed) * best.sum(axis=1)).astype(np.intp)
        return np.asarray(np.argmax(np.cumsum(best, axis=1) > chosen[:, None], axis=1))

    def evidence(self, X: Any) -> InstanceEvidence:
        """Combined evidence for each instance.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        evidence : InstanceEvidence
        """
        check_is_fitted(self)
        found = self._combine(check_features(self, X, reset=False), top_sets=True)
        return InstanceEvidence(
            found.belief,
            found.plausibility,
            found.conflict,
            found.ignorance,
            unpack(found.top_set, len(self.classes_)),
            found.top_mass,
        )

    def explain(self, x: Any) -> Explanation:
        """Why one instance is predicted as it is, and accepted or not.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)

        Returns
        -------
        explanation : Explanation
            Prints well in a terminal and in a notebook.
        """
        check_is_fitted(self)
        X = check_features(self, one_instance(x), reset=False)
        distances, neighbors = self._index.query(X, self.n_neighbors, n_jobs=self.n_jobs)
        evidence = self._combine(X, top_sets=True)
        judgement = self._decide_by(X, evidence)
        frame = self._full_frame()
        candidates = CandidateSets._packed(self._words[neighbors[0]], self.classes_).to_lists()
        everything = self.classes_.tolist()
        listed = focal_sets(self._words, neighbors[0], frame[0], alpha=self.alpha)
        return Explanation(
            classes=everything,
            prediction=everything[judgement.top[0]],
            accept_score=float(judgement.accept[0]),
            threshold=self.accept_threshold_,
            belief=evidence.belief[0],
            plausibility=evidence.plausibility[0],
            conflict=float(evidence.conflict[0]),
            ignorance=float(evidence.ignorance[0]),
            neighbors=[
                NeighborEvidence(int(row), float(distance), labels, len(labels) < len(everything))
                for row, distance, labels in zip(
                    neighbors[0], distances[0], candidates, strict=True
                )
            ],
            focal_sets=None
            if listed is None
            else [
                (labels, float(mass))
                for labels, mass in zip(
                    CandidateSets._packed(listed[0], self.classes_).to_lists(),
                    listed[1],
                    strict=True,
                )
            ],
        )


def _draws(X: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, which depends on the row and the seed alone."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)  # + 0.0 makes -0.0 the zero it equals
    state = np.full(len(X), seed, dtype=np.uint64)
    for column in bits.T:
        # One round of the splitmix64 generator stirs each feature in.
        state = (state ^ column) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
