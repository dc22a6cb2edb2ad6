"""What a dataset's neighbourhoods hold, and how much their size matters to a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

from demur.candidates import CandidateSets
from demur.methods import METHODS
from demur.methods import method as class_of
from demur.metrics import coverage
from demur.neighbors import build_index

KS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)


@dataclass(frozen=True, eq=False)
class KSensitivity:
    """How a method does with k neighbours, for several k, in cross-validation.

    Attributes
    ----------
    ks : ndarray of shape (n_ks,)
    mcc : ndarray of shape (n_ks, n_folds)
        Matthews correlation coefficient of all predictions on each test fold.
    accepted : ndarray of shape (n_ks, n_folds)
        Share of the predictions that the method accepts by its own threshold.
    mcc_accepted : ndarray of shape (n_ks, n_folds)
        The coefficient of these; NaN where fewer than two labels are among them, as there is
        nothing to correlate.
    """

    ks: NDArray[np.int64]
    mcc: NDArray[np.float64]
    accepted: NDArray[np.float64]
    mcc_accepted: NDArray[np.float64]


def k_sensitivity(
    X: ArrayLike,
    candidates: Any,
    y: ArrayLike,
    ks: Sequence[int] = KS,
    *,
    method: str = METHODS[0],
    n_folds: int = 5,
    seed: int = 0,
) -> KSensitivity:
    """Cross-validate a method of neighbours for several numbers of neighbours.

    Features are scaled to 0..1 by each training part. Folds are the same for every k.

    Parameters
    ----------
    X : array-like of shape (n, d)
    candidates : anything that `CandidateSets` reads, with n rows
    y : array-like of shape (n,)
        True labels, for judging only.
    ks : sequence of int
        Numbers of neighbours.
    method : str
        Name of a method with the parameter ``n_neighbors``; by default the registry's first.
    n_folds : int, default=5
    seed : int, default=0
        Decides the folds, and what the method draws.

    Returns
    -------
    KSensitivity
    """
    features, sets, truth = _checked(X, candidates, y)
    wanted = list(ks)
    if not wanted:
        raise ValueError("ks is empty; name at least one number of neighbours.")
    parameters = class_of(method)().get_params()
    if "n_neighbors" not in parameters:
        raise ValueError(f"{method} has no parameter n_neighbors, so k means nothing to it.")
    chance = {"random_state": seed} if "random_state" in parameters else {}
    splits = list(KFold(n_folds, shuffle=True, random_state=seed).split(features))
    smallest = min(len(train) for train, _ in splits)
    if max(wanted) > smallest - 1:
        raise ValueError(
            f"{max(wanted)} neighbours are asked for, but a training part has {smallest} "
            f"instances; k may be {smallest - 1} at most."
        )
    found = np.full((3, len(wanted), n_folds), np.nan)
    for fold, (train, test) in enumerate(splits):
        scaler = MinMaxScaler().fit(features[train])
        seen, unseen = scaler.transform(features[train]), scaler.transform(features[test])
        for place, k in enumerate(wanted):
            estimator = class_of(method)(n_neighbors=k, **chance).fit(seen, sets[train])
            judged = estimator.judge(unseen)
            predicted = estimator.classes_[judged.top]
            kept = judged.accept > estimator.accept_threshold_
            found[:, place, fold] = (
                _mcc(truth[test], predicted),
                coverage(kept),
                _mcc(truth[test][kept], predicted[kept]),
            )
    return KSensitivity(np.asarray(wanted, dtype=np.int64), *found)


def _mcc(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    if len(np.union1d(truth, predicted)) < 2:
        return float("nan")
    return float(matthews_corrcoef(truth, predicted))


@dataclass(frozen=True, eq=False)
class NeighborCandidates:
    """Which labels are candidates in the neighbourhoods of each class.

    Attributes
    ----------
    classes : ndarray of shape (l,)
    counts : ndarray of shape (l, l)
        Number of pairs of an instance of the row's class and one of its neighbours that has the
        column's class among its candidates.
    n_pairs : ndarray of shape (l,)
        Number of all pairs of an instance of the class and a neighbour.
    """

    classes: NDArray[Any]
    counts: NDArray[np.int64]
    n_pairs: NDArray[np.int64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of the neighbours with the candidate; NaN for a class without instances."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts / self.n_pairs[:, None])


def neighbor_candidates(
    X: ArrayLike, candidates: Any, y: ArrayLike, n_neighbors: int = 10
) -> NeighborCandidates:
    """Count the candidates of the neighbours, by the true class of the instance.

    Features are scaled to 0..1. An instance is not its own neighbour.

    Parameters
    ----------
    X : array-like of shape (n, d)
    candidates : anything that `CandidateSets` reads, with n rows
    y : array-like of shape (n,)
        True labels.
    n_neighbors : int, default=10

    Examples
    --------
    >>> from demur.bench.neighborhoods import neighbor_candidates
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> found = neighbor_candidates(
    ...     X, [["a", "b"], ["a"], ["b"], ["b", "c"]], ["a", "a", "b", "c"], n_neighbors=1
    ... )
    >>> found.counts.tolist()
    [[2, 1, 0], [0, 1, 1], [0, 1, 0]]
    """
    features, sets, truth = _checked(X, candidates, y)
    index = build_index(MinMaxScaler().fit_transform(features), n_neighbors)
    neighbors = index.query_self(n_neighbors)[1]
    held = sets.to_indicator()[neighbors].sum(axis=1, dtype=np.int64)
    place = {label: i for i, label in enumerate(sets.classes.tolist())}
    rows = np.array([place[label] for label in truth.tolist()])
    counts = np.zeros((sets.n_classes, sets.n_classes), dtype=np.int64)
    np.add.at(counts, rows, held)
    sizes = np.bincount(rows, minlength=sets.n_classes)
    return NeighborCandidates(sets.classes, counts, sizes * neighbors.shape[1])


def _checked(
    X: ArrayLike, candidates: Any, y: ArrayLike
) -> tuple[NDArray[np.float64], CandidateSets, NDArray[Any]]:
    features, truth = np.asarray(X, dtype=np.float64), np.asarray(y)
    sets = CandidateSets(candidates)
    if not len(features) == len(sets) == len(truth):
        raise ValueError(
            f"X has {len(features)} rows, there are {len(sets)} candidate sets and "
            f"{len(truth)} true labels; each instance needs one of each."
        )
    unknown = set(truth.tolist()).difference(sets.classes.tolist())
    if unknown:
        raise ValueError(
            f"y holds {sorted(unknown, key=str)[0]!r}, which is none of the classes of the "
            "candidate sets; use the same labels in both."
        )
    return features, sets, truth
