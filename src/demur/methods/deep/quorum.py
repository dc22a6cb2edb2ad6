"""Quorum: networks and neighbours decide together."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from demur.base import Judgement, check_features, one_instance
from demur.methods.deep.estimator import DeepClassifier, Strategy
from demur.methods.deep.proden import ProdenStrategy
from demur.methods.deep.quorum_explanation import NeighborVoice, QuorumExplanation
from demur.neighbors import NeighborIndex, build_index
from demur.state import check_array

FLOOR = 1e-3  # added to every probability, so that one side cannot veto a label alone
SHARPNESS = 3.0  # how quickly neighbours fall silent with distance; docs/quorum.md


class QuorumStrategy(ProdenStrategy):
    """PRODEN's targets, for several networks of each run."""

    def __init__(self, networks: int) -> None:
        self.networks = networks


class QuorumEvidence(NamedTuple):
    """What the networks and the neighbours say of a batch, labels in the order of ``classes_``.

    Attributes
    ----------
    networks : ndarray of shape (n_networks, n, n_classes)
        Probabilities by each network.
    neighbors : ndarray of shape (n, n_classes)
        Labels that the networks make out for the nearest training instances, the nearer the
        louder.
    belief, plausibility : ndarray of shape (n, n_classes)
        The least and the largest probability that one of the two sides, the mean of the
        networks or the neighbours, gives to a label.
    conflict : ndarray of shape (n,)
        Total variation between the two sides, from 0 (they agree) to 1.
    """

    networks: NDArray[np.float64]
    neighbors: NDArray[np.float64]
    belief: NDArray[np.float64]
    plausibility: NDArray[np.float64]
    conflict: NDArray[np.float64]


class Quorum(DeepClassifier):
    """Networks and neighbours, which decide together and demur where they disagree.

    Five networks learn from targets that follow their own view of the candidates, as PRODEN's
    do, with dropout. Their mean probabilities, restricted to the candidates of each training
    instance, say which candidate is its label and how sure that is. For a new instance the
    neighbours' side is the mean of these weights over the nearest training instances, the
    nearer the louder; the networks' side is the mean of the networks. The probabilities are
    the logarithmic pool of both sides: the normalised product of their powers.

    Where networks err because they have seen too much in few instances, neighbours seldom err
    in the same way: where the two differ, the pool is flat and the instance rejected.

    Parameters
    ----------
    n_networks : int, default=5
    n_neighbors : int, default=10
        Found by the Euclidean distance of the features as they are given; scale them.
    dropout : float, default=0.2
        Share of each hidden layer that a training step leaves out; from 0 to under 1.
    network_weight : float, default=0.6
        Share of the say that the networks have in the pool, from 0 to 1; the rest is the
        neighbours'.
    n_epochs : int, default=100
    batch_size : int, optional
        By default 256.
    **parameters
        Those of :class:`~demur.methods.deep.estimator.DeepClassifier`, and its attributes.

    Attributes
    ----------
    accept_threshold_ : float
        0.9: accepted when networks and neighbours together give the label more than nine
        tenths of the probability.

    Examples
    --------
    >>> from demur.methods.deep import Quorum
    >>> X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [["a"], ["a", "b"], ["b"], ["b", "c"]] * 8
    >>> model = Quorum(n_networks=2, n_epochs=50, random_state=0).fit(X, S)
    >>> model.predict([[0, 0], [1, 0]]).tolist()
    ['a', 'b']
    >>> print(model.explain([1, 1]).reason)
    Demurs: c has 0.8... only (networks 0.8..., neighbours 0.8...).
    """

    default_batch_size = 256
    least = MappingProxyType({**DeepClassifier.least, "n_networks": 1, "n_neighbors": 1})
    numbers = (*DeepClassifier.numbers, "dropout", "network_weight")

    def __init__(
        self,
        *,
        n_networks: int = 5,
        n_neighbors: int = 10,
        dropout: float = 0.2,
        network_weight: float = 0.6,
        n_epochs: int = 100,
        **parameters: Any,
    ) -> None:
        super().__init__(n_epochs=n_epochs, **parameters)
        self.n_networks = n_networks
        self.n_neighbors = n_neighbors
        self.dropout = dropout
        self.network_weight = network_weight

    def strategy(self) -> Strategy:
        """PRODEN's targets, of each network its own."""
        return QuorumStrategy(self.n_networks)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.dropout >= 1:
            raise ValueError(f"dropout must be under 1; got {self.dropout!r}.")
        if self.network_weight > 1:
            raise ValueError(f"network_weight must be at most 1; got {self.network_weight!r}.")

    def _settle(self, X: NDArray[np.float32], candidates: NDArray[np.bool_]) -> None:
        """Weigh each training instance's candidates, and make ready to find neighbours."""
        rows = X.reshape(len(X), -1).astype(np.float64)
        self._index = build_index(rows, self.n_neighbors)
        held = np.where(candidates, self._ask_networks(rows).mean(axis=0), 0.0)
        total = held.sum(axis=1, keepdims=True)
        # Candidates that all vanish are equal again.
        held = np.where(total > 0, held, candidates)
        self._weights = held / held.sum(axis=1, keepdims=True)
        voice = self._voice(*self._index.query_self(self.n_neighbors))
        both = np.where(candidates, self._pool(self._weights, voice), -1.0)
        self._transduced = both.argmax(axis=1)

    def _restored(self) -> None:
        super()._restored()
        n = len(self._transduced)
        if not isinstance(self._index, NeighborIndex):
            raise ValueError("not the arrays of a fitted model: it has no neighbours.")
        check_array(self._index.X, "f", (n, self.n_features_in_), "its points")
        check_array(self._weights, "f", (n, len(self.classes_)), "its weights")

    def _judge(self, X: NDArray[np.float64]) -> Judgement:
        networks, neighbors = self._hear(X)
        return Judgement.of_proba(self._pool(networks.mean(axis=0), neighbors))

    def _hear(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities by each network, and by the neighbours."""
        return self._ask_networks(X), self._voice(*self._nearest(X))

    def _voice(
        self, distances: NDArray[np.float64], neighbors: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """What neighbours say: the mean of their weights, the nearer the louder."""
        loudness = _loudness(distances)
        total = np.zeros((len(neighbors), len(self.classes_)))
        for column, share in zip(neighbors.T, loudness.T, strict=True):  # holds no large array
            total += share[:, None] * self._weights[column]
        return total

    def _pool(
        self, networks: NDArray[np.float64], neighbors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The logarithmic pool of the two sides, neither of which may rule a label out."""
        w = self.network_weight
        pooled = (networks + FLOOR) ** w * (neighbors + FLOOR) ** (1 - w)
        return np.asarray(pooled / pooled.sum(axis=1, keepdims=True), dtype=np.float64)

    def _nearest(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        rounded = X.astype(np.float32).astype(np.float64)  # as the training instances are
        return self._index.query(rounded, self.n_neighbors)

    def evidence(self, X: Any) -> QuorumEvidence:
        """What each network and the neighbours say of each instance.

        Parameters
        ----------
        X : array-like of shape (n, n_features), or images as in `fit`

        Returns
        -------
        evidence : QuorumEvidence
        """
        check_is_fitted(self)
        features = check_features(self, self._as_rows(X, self.image_shape_), reset=False)
        networks, neighbors = self._hear(features)
        mean = networks.mean(axis=0)
        return QuorumEvidence(
            networks,
            neighbors,
            np.minimum(mean, neighbors),
            np.maximum(mean, neighbors),
            np.abs(mean - neighbors).sum(axis=1) / 2,
        )

    def explain(self, x: Any) -> QuorumExplanation:
        """Why one instance is predicted as it is, and accepted or not.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features), or one image as in `fit`

        Returns
        -------
        explanation : QuorumExplanation
            Which networks and which neighbours say what; prints well in a terminal.
        """
        check_is_fitted(self)
        rows = self._as_rows(one_instance(x), self.image_shape_)
        X = check_features(self, rows, reset=False)
        distances, neighbors = self._nearest(X)
        networks, voice = self._ask_networks(X), self._voice(distances, neighbors)
        judged = Judgement.of_proba(self._pool(networks.mean(axis=0), voice))
        classes = self.classes_.tolist()
        weights = self._weights[neighbors[0]]
        return QuorumExplanation(
            classes=classes,
            prediction=classes[judged.top[0]],
            accept_score=float(judged.accept[0]),
            threshold=self.accept_threshold_,
            proba=judged.proba[0],
            by_network=networks[:, 0],
            by_neighbors=voice[0],
            neighbors=[
                NeighborVoice(
                    int(row), float(distance), float(share), classes[own.argmax()], float(own.max())
                )
                for row, distance, share, own in zip(
                    neighbors[0], distances[0], _loudness(distances)[0], weights, strict=True
                )
            ],
        )


def _loudness(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of the say: a Gaussian of the distance, measured by the mean distance."""
    mean = distances.mean(axis=1, keepdims=True)
    relative = np.divide(distances, mean, out=np.zeros_like(distances), where=mean > 0)
    shares = np.exp(-SHARPNESS * relative**2)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)
