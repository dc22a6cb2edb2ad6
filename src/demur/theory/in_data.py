"""How well the assumption holds in data: p1, p2, p3, the dominance of the true label, masses."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from sklearn.utils.validation import check_array

from demur.candidates import CandidateSets
from demur.evidence.combine import combine
from demur.neighbors import build_index
from demur.theory.assumption import CONFUSED, TRUE, Assumption
from demur.theory.closed_form import expected_masses
from demur.theory.report import AssumptionReport, Neighborhoods

Ints = NDArray[np.intp]


def check_assumption(
    X: Any,
    S: Any,
    y: ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: str = "euclidean",
    n_jobs: int | None = None,
) -> AssumptionReport:
    """Estimate p1, p2 and p3 from data, and say how well the assumption holds there.

    Looks at the nearest neighbours of each instance among the others.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    S : anything that `CandidateSets` reads, with n rows
    y : array-like of shape (n,)
        True labels.
    n_neighbors : int, default=10
        From 1 to 64.
    metric : {"euclidean", "manhattan"}, default="euclidean"
    n_jobs : int, optional

    Returns
    -------
    report : AssumptionReport

    Examples
    --------
    >>> import numpy as np
    >>> from demur.noise import class_dependent_noise
    >>> from demur.theory import check_assumption
    >>> y = np.repeat(["ant", "bee", "cat", "dog"], 25)
    >>> X = np.repeat([[0.0], [10.0], [20.0], [30.0]], 25, axis=0)
    >>> S = class_dependent_noise(y, share=0.6, random_state=0)
    >>> report = check_assumption(X, S, y, n_neighbors=5)
    >>> report.confused["ant"], report.overall.dominance, report.overall.p3
    ('dog', 1.0, 0.0)
    """
    features = check_array(X, dtype=np.float64, order="C", input_name="X")
    sets = S if isinstance(S, CandidateSets) else CandidateSets(S)
    if len(sets) != len(features):
        raise ValueError(
            f"X has {len(features)} rows but there are {len(sets)} candidate sets; "
            "each instance needs one set."
        )
    if len(features) < 2:
        raise ValueError("neighbours are looked at, so at least 2 instances are needed; got 1.")
    index = build_index(features, n_neighbors, metric=metric)
    _, neighbors = index.query_self(n_neighbors, n_jobs=n_jobs)
    return check_neighborhoods(sets, neighbors, y, y_neighbors=y, n_jobs=n_jobs)


def check_neighborhoods(
    S: Any,
    neighbors: ArrayLike,
    y: ArrayLike,
    *,
    y_neighbors: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> AssumptionReport:
    """Say how well the assumption holds in neighbourhoods that are known already.

    Parameters
    ----------
    S : anything that `CandidateSets` reads
        Candidates of those that are neighbours.
    neighbors : array-like of int, shape (n, k)
        Rows of S that are the neighbours of each instance; k is at most 64.
    y : array-like of shape (n,)
        True labels of the instances.
    y_neighbors : array-like, one a row of S, optional
        True labels of the neighbours.
    n_jobs : int, optional

    Returns
    -------
    report : AssumptionReport

    Notes
    -----
    The label that a true label is confused with is found for each class from all its
    neighbourhoods together: k sets of one instance would tell chance more than anything.
    """
    sets = S if isinstance(S, CandidateSets) else CandidateSets(S)
    if sets.n_classes < 3:
        raise ValueError(f"the assumption is on 3 classes or more; got {sets.n_classes}.")
    rows = np.asarray(neighbors)
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError("neighbors must be rows of S, as whole numbers of shape (n, k).")
    if rows.min() < 0 or rows.max() >= len(sets):
        raise ValueError(
            f"neighbors names row {rows.min() if rows.min() < 0 else rows.max()} of S, "
            f"which has rows 0 to {len(sets) - 1}."
        )
    rows = rows.astype(np.intp)
    truth = _read_truth("y", y, len(rows), sets.classes)
    their_own = (
        None if y_neighbors is None
        else _read_truth("y_neighbors", y_neighbors, len(sets), sets.classes)
    )  # fmt: skip
    look = _Look(sets, rows, their_own, n_jobs)
    found = {label: look.at_class(label, truth == label) for label in np.unique(truth).tolist()}
    names = sets.classes.tolist()
    return AssumptionReport(
        n_neighbors=rows.shape[1],
        n_classes=sets.n_classes,
        overall=_overall([one for one, _ in found.values()]),
        by_class={names[label]: one for label, (one, _) in found.items()},
        confused={
            names[label]: None if other is None else names[other]
            for label, (_, other) in found.items()
        },
    )


def _read_truth(name: str, y: ArrayLike, n: int, classes: NDArray[Any]) -> Ints:
    """The column of each true label."""
    labels = CandidateSets(np.asarray(y), classes=classes)
    if len(labels) != n or (labels.sizes != 1).any():
        raise ValueError(f"{name} must hold one true label for each of {n} rows.")
    return np.asarray(labels.to_indicator().argmax(axis=1))


class _Look:
    """What is worked out once for all classes."""

    def __init__(
        self, sets: CandidateSets, neighbors: Ints, their_own: Ints | None, n_jobs: int | None
    ) -> None:
        self.neighbors, self.their_own = neighbors, their_own
        self.held = sets.to_indicator()
        self.sizes = sets.sizes
        self.distinct, self.which = np.unique(self.held, axis=0, return_inverse=True)
        self.votes = np.zeros((len(neighbors), sets.n_classes), dtype=np.intp)
        for column in neighbors.T:
            self.votes += self.held[column]
        frame = CandidateSets(np.ones((1, sets.n_classes), dtype=bool)).words
        self.masses = combine(
            sets.words, neighbors, frame, sets.n_classes, top_sets=False, n_jobs=n_jobs
        ).belief

    def at_class(self, label: int, of_class: NDArray[np.bool_]) -> tuple[Neighborhoods, int | None]:
        """The neighbourhoods of one class, and the label that it is confused with."""
        n_rows, l = self.held.shape
        n, k = int(of_class.sum()), self.neighbors.shape[1]
        count = np.bincount(self.neighbors[of_class].ravel(), minlength=n_rows)
        useful = np.where(self.sizes < l, count, 0)
        own = self.held[:, label]
        company = (useful * own) @ self.held
        company[label] = -1
        confused = int(company.argmax())
        both = own & self.held[:, confused]
        amounts = [int(useful[group].sum()) for group in (both, own & ~both, ~own)]
        votes = self.votes[of_class]
        rivals = np.delete(votes, label, axis=1).max(axis=1)
        misleading = np.nan
        if self.their_own is not None:
            misleading = float(count[own & (self.their_own != label)].sum() / (n * k))
        result = Neighborhoods(
            n_instances=n,
            dominance=float((votes[:, label] > rivals).mean()),
            tied_dominance=float((votes[:, label] >= rivals).mean()),
            full_share=1 - sum(amounts) / (n * k),
            noise_share=misleading,
            mean_size=float(count @ self.sizes / (n * k)),
            uneven=_distance_from_even(np.delete(useful @ self.held, [label, confused])),
            true_mass=float(self.masses[of_class, label].mean()),
            confused_mass=float(self.masses[of_class, confused].mean()),
            **self._beside_assumption(amounts, count, label, confused),
        )
        return result, confused if company[confused] > 0 else None

    def _beside_assumption(
        self, amounts: list[int], count: Ints, label: int, confused: int
    ) -> dict[str, float]:
        total = sum(amounts)
        if total == 0:  # only sets with every class, which the assumption has not
            unknown = ("p1", "p2", "p3", "assumed_size", "chance_distance")
            masses_too = ("assumed_true_mass", "assumed_confused_mass")
            return {**dict.fromkeys(unknown + masses_too, np.nan), "distance": 1.0}
        p1, p2, p3 = (amount / total for amount in amounts)
        assumption = Assumption((p1, p2, p3), self.held.shape[1])
        masses = expected_masses(assumption, self.neighbors.shape[1])
        # A row that is a neighbour of many tells no more than once what sets there are.
        n_effective = round(int(count.sum()) ** 2 / int((count**2).sum()))
        return {
            "p1": p1,
            "p2": p2,
            "p3": p3,
            "assumed_size": assumption.mean_size,
            "assumed_true_mass": float(masses[TRUE]),
            "assumed_confused_mass": float(masses[CONFUSED]),
            "distance": self._distance(assumption, count, label, confused),
            "chance_distance": _chance_distance(assumption, n_effective),
        }

    def _distance(self, assumption: Assumption, count: Ints, label: int, confused: int) -> float:
        """Total variation between the sets counted and those assumed."""
        found = np.bincount(self.which, weights=count, minlength=len(self.distinct)) / count.sum()
        own, other = self.distinct[:, label], self.distinct[:, confused]
        u1, u2, u3 = map(float, assumption.per_set)
        assumed = np.where(own, np.where(other, u1, u2), u3)
        assumed[self.distinct.all(axis=1)] = 0.0
        # Where more was found than assumed; sets that were never found add nothing.
        return float(np.maximum(found - assumed, 0.0).sum())


def _distance_from_even(counts: NDArray[Any]) -> float:
    total = counts.sum()
    if total == 0:
        return np.nan
    return float(np.abs(counts / total - 1 / len(counts)).sum() / 2)


def _chance_distance(assumption: Assumption, n: int) -> float:
    """Expected distance between the assumption and n sets drawn from it."""
    total = 0.0
    for size, chance in zip(assumption.group_sizes, assumption.per_set, strict=True):
        # De Moivre's mean absolute deviation of a binomial count, for each set of the group
        share = float(chance)
        top = np.floor(n * share) + 1
        total += size * 2 * top * (1 - share) * float(binom.pmf(top, n, share)) / n
    return total / 2


def _overall(parts: list[Neighborhoods]) -> Neighborhoods:
    """Means over classes: by instances, those of p by the sets they are shares of."""
    sizes = np.array([part.n_instances for part in parts], dtype=np.float64)
    useful = sizes * (1 - np.array([part.full_share for part in parts]))
    means = {}
    for field in fields(Neighborhoods):
        values = np.array([getattr(part, field.name) for part in parts], dtype=np.float64)
        weights = np.where(
            np.isnan(values), 0.0, useful if field.name in ("p1", "p2", "p3") else sizes
        )
        known = weights.sum() > 0
        means[field.name] = (
            float(np.nan_to_num(values) @ weights / weights.sum()) if known else np.nan
        )
    means.pop("n_instances")
    return Neighborhoods(n_instances=int(sizes.sum()), **means)
