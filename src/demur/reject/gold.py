"""Gold labels are refused where a certificate by them would not mean what it says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, poisson

from demur.candidates import is_missing
from demur.reject.scores import fingerprints

Prints = NDArray[np.uint64]

UNLIKELY = 1e-3  # so many copies of training rows do not come by chance


def gold_columns(y_gold: Any, classes: NDArray[Any], n: int | None = None) -> NDArray[np.intp]:
    """The columns of the gold labels, each of which must be one of the classes."""
    labels = np.asarray(y_gold)
    if labels.ndim != 1:
        raise ValueError(
            f"gold labels are one true label a row; got an array of shape {labels.shape}."
        )
    if n is not None and len(labels) != n:
        raise ValueError(f"there are {n} gold instances but {len(labels)} gold labels.")
    place = {label: i for i, label in enumerate(classes.tolist())}
    listed = labels.tolist()
    for row, label in enumerate(listed):
        if is_missing(label):
            raise ValueError(f"the gold label is missing (None or NaN) at row {row}.")
        if label not in place:
            shown = ", ".join(map(repr, classes.tolist()[:10]))
            raise ValueError(
                f"gold label {label!r} at row {row} is not one of the classes that the model "
                f"knows ({shown}{', ...' if len(classes) > 10 else ''}). If it is the true label, "
                "to leave the row out would make the certificate wrong: fit with classes that "
                "hold it."
            )
    return np.asarray([place[label] for label in listed], dtype=np.intp)


@dataclass(frozen=True)
class Seen:
    """What gold must not be: instances that were learned from, or verified in an earlier test.

    Instances are told by their ids where both sides have some, else by their features. How
    often two different instances have the same features is told by the training instances.

    Attributes
    ----------
    prints : ndarray of shape (n,)
        Fingerprints of the features.
    ids, groups : ndarray of shape (n,), or None
    copied : float
        Share of the training instances whose features another one has too.
    paired : float
        Share of the pairs of training instances that have the same features.
    used : str
        What for, to be told in messages.
    """

    prints: Prints
    ids: NDArray[Any] | None
    groups: NDArray[Any] | None
    copied: float
    paired: float
    used: str = "in fit"

    @classmethod
    def of(cls, X: Any, *, ids: Any, groups: Any, learned: bool) -> Self:
        """Training instances; those that nothing was learned from only tell of chance."""
        prints = fingerprints(X)
        n = len(prints)
        for name, given in (("ids", ids), ("groups", groups)):
            if given is not None and len(given) != n:
                raise ValueError(f"X has {n} rows but there are {len(given)} {name}.")
        counts = np.unique(prints, return_counts=True)[1]
        return cls(
            prints if learned else prints[:0],
            np.asarray(ids) if ids is not None and learned else None,
            np.asarray(groups) if groups is not None and learned else None,
            float(counts[counts > 1].sum() / max(n, 1)),
            float((counts * (counts - 1)).sum() / max(n * (n - 1), 1)),
        )

    def refuse(self, prints: Prints, *, ids: Any, what: str, where: str, why: str) -> None:
        """Refuse instances that were seen: any known id, or more copies than by chance."""
        n = len(prints)
        if ids is not None and len(ids) != n:
            raise ValueError(f"there are {n} {what} instances but {len(ids)} ids.")
        if ids is not None and self.ids is not None:
            names = np.asarray(ids)
            known = np.flatnonzero(np.isin(names, self.ids))
            if len(known):
                raise ValueError(
                    f"{what} row {known[0]} (id {names[known[0]].item()!r}; {len(known)} such "
                    f"row(s)) was used {self.used}; {why}"
                )
            return
        copies = np.flatnonzero(np.isin(prints, self.prints))
        if len(copies) and binom.sf(len(copies) - 1, n, self.copied) < UNLIKELY:
            raise ValueError(
                f"{len(copies)} of {n} {what} rows (the first is row {copies[0]}) are copies of "
                f"rows used {self.used}, where about {self.copied * n:.1f} would be so by chance; "
                f"{why} If they are others with the same features, give ids= in fit and in "
                f"{where}."
            )

    def refuse_twice(self, prints: Prints, *, ids: Any) -> None:
        """Refuse gold that holds one instance several times."""
        if ids is not None:
            worst, count = _most_frequent(ids)
            if count > 1:
                raise ValueError(
                    f"the gold instance with id {worst!r} is given {count} times; each counts once."
                )
            return
        n = len(prints)
        repeated = n - len(np.unique(prints))
        expected = self.paired * n * (n - 1) / 2
        if repeated and poisson.sf(repeated - 1, expected) < UNLIKELY:
            raise ValueError(
                f"{repeated} of {n} gold rows repeat another gold row, where about {expected:.1f} "
                "would by chance; each instance counts once. If they are others with the same "
                "features, give ids= of the gold."
            )

    def refuse_groups(self, groups: Any, n: int) -> None:
        """Refuse gold that depends on itself or on the training data by its groups."""
        if groups is None:
            if self.groups is not None:
                raise ValueError(
                    "the model was fitted with groups; give groups= of the gold instances too, "
                    "one instance a group."
                )
            return
        if len(groups) != n:
            raise ValueError(f"there are {n} gold instances but {len(groups)} groups.")
        worst, count = _most_frequent(groups)
        if count > 1:
            raise ValueError(
                f"group {worst!r} has {count} gold instances, which depend on each other; "
                "draw one of each group at most, as plan(X, groups=...) does."
            )
        if self.groups is not None:
            known = np.flatnonzero(np.isin(np.asarray(groups), self.groups))
            if len(known):
                raise ValueError(
                    f"group {np.asarray(groups)[known[0]].item()!r} of gold row {known[0]} "
                    f"({len(known)} such row(s)) was used {self.used}; draw gold from groups that "
                    "the model has never seen."
                )

    def tested(self, prints: Prints, *, ids: Any, groups: Any) -> Self:
        """The same for gold that was tested: a later test needs other instances."""
        return replace(
            self,
            prints=prints,
            ids=None if ids is None else np.asarray(ids),
            groups=None if groups is None else np.asarray(groups),
            used="in an earlier test",
        )

    def holds(self, prints: Prints, *, ids: Any, groups: Any) -> NDArray[np.bool_]:
        """Which instances of a batch were seen, or depend on such."""
        if groups is not None and self.groups is not None:
            return np.isin(np.asarray(groups), self.groups)
        if ids is not None and self.ids is not None:
            return np.isin(np.asarray(ids), self.ids)
        return np.isin(prints, self.prints)


def _most_frequent(names: Any) -> tuple[Any, int]:
    """The name that is given most often, and how often."""
    known, counts = np.unique(np.asarray(names), return_counts=True)
    return (known[counts.argmax()].item(), int(counts.max())) if len(known) else (None, 0)
