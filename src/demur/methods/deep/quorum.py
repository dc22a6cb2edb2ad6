"""Quorum: networks, neighbours and trees decide together."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from demur.base import Judgement, check_features, one_instance
from demur.methods.deep.estimator import DeepClassifier, Strategy, prepare
from demur.methods.deep.pool import learn_weights, pool
from demur.methods.deep.proden import ProdenStrategy
from demur.methods.deep.quorum_explanation import KERNEL, NeighborVoice, QuorumExplanation
from demur.methods.forest import ask_forest, check_forest, grow_forest
from demur.methods.kernel_machine import KernelBasis, ask_machine, check_machine
from demur.neighbors import NeighborIndex, build_index
from demur.state import check_array, check_columns

if TYPE_CHECKING:
    from demur.methods.deep.training import Result, Run

SHARPNESS = 3.0  # how quickly neighbours fall silent with distance; docs/quorum.md
FIRST_WEIGHTS = (0.5, 0.2, 0.5)  # of networks, neighbours and trees, where data say nothing
LEFT_OUT = 0.1  # share of the rows that a network does not see; other rows for each
ROUNDS = 6  # in which the sides make the labels out where there are no networks


class QuorumStrategy(ProdenStrategy):
    """PRODEN's targets, for several networks of each run, each of which leaves rows out."""

    leave_out = LEFT_OUT

    def __init__(self, networks: int) -> None:
        self.networks = networks


class QuorumEvidence(NamedTuple):
    """What the three sides say of a batch, labels in the order of ``classes_``.

    Attributes
    ----------
    networks : ndarray of shape (n_networks, n, n_classes)
        Probabilities by each network; without networks one, by the kernel machine.
    neighbors : ndarray of shape (n, n_classes)
        Labels that were made out for the nearest training instances, the nearer the
        louder.
    trees : ndarray of shape (n, n_classes)
        Mean of the trees.
    belief, plausibility : ndarray of shape (n, n_classes)
        The least and the largest probability that one of the sides, the mean of the networks
        being one, gives to a label.
    conflict : ndarray of shape (n,)
        The largest total variation between two sides, from 0 (they agree) to 1.
    """

    networks: NDArray[np.float64]
    neighbors: NDArray[np.float64]
    trees: NDArray[np.float64]
    belief: NDArray[np.float64]
    plausibility: NDArray[np.float64]
    conflict: NDArray[np.float64]


class Quorum(DeepClassifier):
    """Networks, neighbours and trees, which decide together and demur where they disagree.

    Five networks learn from targets that follow their own view of the candidates, as PRODEN's
    do, with dropout. Their mean, restricted to the candidates of a training instance, tells
    which candidate is its label and how sure that is. From these soft labels learn the other
    two sides: the nearest training instances, the nearer the louder, and a forest of
    extremely randomised trees. The probabilities are the logarithmic pool of the three sides:
    the normalised product of their powers. How loud each side is follows from the training
    data: each network leaves out a tenth of the instances, and of these there is an opinion of
    each side that has not seen them; the powers are those under which their candidate sets
    are likeliest.

    Networks, neighbours and trees seldom err in the same way: where they differ, the pool is
    flat and the instance rejected.

    Parameters
    ----------
    n_networks : int, default=5
        With 0 a kernel machine stands in for the networks and torch is not needed: the three
        sides begin at equal shares of the candidates and make the labels out in six rounds.
    n_neighbors : int, default=10
        Found by the Euclidean distance of the features as they are given; scale them.
    n_trees : int, default=100
    dropout : float, default=0.2
        Share of each hidden layer that a training step leaves out; from 0 to under 1.
    n_epochs : int, default=100
    batch_size : int, optional
        By default 256.
    **parameters
        Those of :class:`~demur.methods.deep.estimator.DeepClassifier`, and its attributes.

    Attributes
    ----------
    pool_weights_ : ndarray of shape (3,)
        The powers of networks, neighbours and trees.
    accept_threshold_ : float
        0.9: accepted when the three sides together give the label more than nine tenths of
        the probability.

    Examples
    --------
    >>> from demur.methods.deep import Quorum
    >>> X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [["a"], ["a", "b"], ["b"], ["b", "c"]] * 8
    >>> model = Quorum(n_networks=2, n_epochs=50, random_state=0).fit(X, S)
    >>> model.predict([[0, 0], [1, 0]]).tolist()
    ['a', 'b']
    >>> print(model.explain([1, 0]).reason)
    Accepted as b with 0.99... (networks 0.9..., neighbours ..., trees ...).
    """

    default_batch_size = 256
    least = MappingProxyType(
        {**DeepClassifier.least, "n_networks": 0, "n_neighbors": 1, "n_trees": 1}
    )
    numbers = (*DeepClassifier.numbers, "dropout")

    def __init__(
        self,
        *,
        n_networks: int = 5,
        n_neighbors: int = 10,
        n_trees: int = 100,
        dropout: float = 0.2,
        n_epochs: int = 100,
        **parameters: Any,
    ) -> None:
        super().__init__(n_epochs=n_epochs, **parameters)
        self.n_networks = n_networks
        self.n_neighbors = n_neighbors
        self.n_trees = n_trees
        self.dropout = dropout

    def strategy(self) -> Strategy:
        """PRODEN's targets, of each network its own."""
        return QuorumStrategy(self.n_networks)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.dropout >= 1:
            raise ValueError(f"dropout must be under 1; got {self.dropout!r}.")

    def _has_networks(self) -> bool:
        return bool(self.n_networks != 0)

    def _fit_without_networks(self, X: Any, y: Any) -> Self:
        """Begin at equal shares of the candidates, and let the three sides make them out."""
        for name in ("state_", "history_", "device_"):
            self.__dict__.pop(name, None)  # of an earlier fit, with networks
        try:
            points, candidates, seed = prepare(self, X, y)
            rows = _as_points(points)
            basis = KernelBasis(rows, seed)

            def kernel_machine(labels: NDArray[np.float64]) -> NDArray[np.float64]:
                self._machine, held_out = basis.fit(labels, candidates)
                return held_out

            equal = _restricted(np.ones(candidates.shape), candidates)
            self._learn_sides(rows, candidates, kernel_machine, equal, seed, rounds=ROUNDS)
        except BaseException:
            self.__dict__.pop("classes_", None)  # a fit that failed leaves no model behind
            raise
        return self

    def _settle(self, run: Run, result: Result) -> None:
        """Label the training instances, hear the other sides, and learn how loud each is."""
        self.__dict__.pop("_machine", None)  # of an earlier fit, without networks
        rows = _as_points(run.X)
        each = self._ask_networks(rows)
        mean = each.mean(axis=0)
        left_out = np.flatnonzero(result.unseen_by >= 0)
        networks = mean.copy()
        networks[left_out] = each[result.unseen_by[left_out], left_out]
        self._learn_sides(
            rows, run.candidates, lambda _: networks, _restricted(mean, run.candidates), run.seed,
            judged=left_out if len(left_out) else slice(None),
        )  # fmt: skip

    def _learn_sides(
        self,
        rows: NDArray[np.float64],
        candidates: NDArray[np.bool_],
        first_side: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        labels: NDArray[np.float64],
        seed: int,
        *,
        judged: Any = slice(None),
        rounds: int = 1,
    ) -> None:
        """Let the sides learn from soft labels; in each further round from their own pool.

        How loud they are is learned on the rows ``judged``.
        """
        self._index = build_index(rows, self.n_neighbors)
        nearest = self._index.query_self(self.n_neighbors)
        for _ in range(rounds):
            self._weights = labels
            self._forest, trees = grow_forest(rows, labels, self.n_trees, seed)
            opinions = np.stack([first_side(labels), self._voice(*nearest), trees])
            self.pool_weights_ = learn_weights(
                opinions[:, judged], candidates[judged], np.array(FIRST_WEIGHTS)
            )
            labels = _restricted(pool(opinions, self.pool_weights_), candidates)
        self._transduced = labels.argmax(axis=1)

    def _restored(self) -> None:
        n, l = len(self._transduced), len(self.classes_)
        if self.n_networks:
            super()._restored()
        else:
            check_columns(self._transduced, l, n, "its labels")
            check_machine(self._machine, self.n_features_in_, l)
        if not isinstance(self._index, NeighborIndex):
            raise ValueError("not the arrays of a fitted model: it has no neighbours.")
        check_array(self._index.X, "f", (n, self.n_features_in_), "its points")
        check_array(self._weights, "f", (n, l), "its weights")
        check_array(self.pool_weights_, "f", (len(FIRST_WEIGHTS),), "the weights of its pool")
        check_forest(self._forest, self.n_trees, self.n_features_in_, l)

    def _ask_networks(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.n_networks:
            return super()._ask_networks(X)
        return ask_machine(self._machine, _as_points(X))[None]

    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        networks, neighbors, trees = self._hear(X, self._nearest(X))
        return self._together(networks.mean(axis=0), neighbors, trees)

    def _together(self, *sides: NDArray[np.float64]) -> Judgement:
        return Judgement.of_proba(pool(np.stack(sides), self.pool_weights_))

    def _nearest(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Distances and rows of the nearest training instances."""
        return self._index.query(_as_points(X), self.n_neighbors)

    def _hear(
        self, X: NDArray[np.float64], nearest: tuple[NDArray[np.float64], NDArray[np.intp]]
    ) -> tuple[NDArray[np.float64], ...]:
        """Probabilities by each network, by the neighbours, and by the trees."""
        return self._ask_networks(X), self._voice(*nearest), ask_forest(self._forest, X)

    def _voice(
        self, distances: NDArray[np.float64], neighbors: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """What neighbours say: the mean of their weights, the nearer the louder."""
        loudness = _loudness(distances)
        total = np.zeros((len(neighbors), len(self.classes_)))
        for column, share in zip(neighbors.T, loudness.T, strict=True):  # holds no large array
            total += share[:, None] * self._weights[column]
        return total

    def evidence(self, X: Any) -> QuorumEvidence:
        """What each network, the neighbours and the trees say of each instance.

        Parameters
        ----------
        X : array-like of shape (n, n_features), or images as in `fit`

        Returns
        -------
        evidence : QuorumEvidence
        """
        check_is_fitted(self)
        features = check_features(self, self._as_rows(X, self.image_shape_), reset=False)
        networks, neighbors, trees = self._hear(features, self._nearest(features))
        sides = np.stack([networks.mean(axis=0), neighbors, trees])
        gaps = [np.abs(sides[i] - sides[i - 1]).sum(axis=1) / 2 for i in range(len(sides))]
        return QuorumEvidence(
            networks, neighbors, trees, sides.min(axis=0), sides.max(axis=0), np.max(gaps, axis=0)
        )

    def explain(self, x: Any) -> QuorumExplanation:
        """Why one instance is predicted as it is, and accepted or not.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features), or one image as in `fit`

        Returns
        -------
        explanation : QuorumExplanation
            Which networks, neighbours and trees say what; prints well in a terminal.
        """
        check_is_fitted(self)
        rows = self._as_rows(one_instance(x), self.image_shape_)
        X = check_features(self, rows, reset=False)
        distances, neighbors = nearest = self._nearest(X)
        networks, voice, trees = self._hear(X, nearest)
        judged = self._together(networks.mean(axis=0), voice, trees)
        classes = self.classes_.tolist()
        weights = self._weights[neighbors[0]]
        return QuorumExplanation(
            classes=classes,
            prediction=classes[judged.top[0]],
            accept_score=float(judged.accept[0]),
            threshold=self.accept_threshold_,
            proba=judged.proba[0],
            pool_weights=self.pool_weights_,
            networks=[f"network {i + 1}" for i in range(self.n_networks)] or [KERNEL],
            by_network=networks[:, 0],
            by_neighbors=voice[0],
            by_trees=trees[0],
            neighbors=[
                NeighborVoice(
                    int(row), float(distance), float(share), classes[own.argmax()], float(own.max())
                )
                for row, distance, share, own in zip(
                    neighbors[0], distances[0], _loudness(distances)[0], weights, strict=True
                )
            ],
        )


def _as_points(X: NDArray[Any]) -> NDArray[np.float64]:
    """Flat rows, rounded as the networks' training instances are."""
    return X.reshape(len(X), -1).astype(np.float32).astype(np.float64)


def _restricted(proba: NDArray[np.float64], candidates: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probabilities given that the label is a candidate; equal where all of these vanish."""
    held = np.where(candidates, proba, 0.0)
    held = np.where(held.sum(axis=1, keepdims=True) > 0, held, candidates)
    return np.asarray(held / held.sum(axis=1, keepdims=True), dtype=np.float64)


def _loudness(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of the say: a Gaussian of the distance, measured by the mean distance."""
    mean = distances.mean(axis=1, keepdims=True)
    relative = np.divide(distances, mean, out=np.zeros_like(distances), where=mean > 0)
    shares = np.exp(-SHARPNESS * relative**2)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)
