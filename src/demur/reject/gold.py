"""Gold labels are refused where a certificate by them would not mean what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from demur.candidates import is_missing

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
                f"knows ({shown}{', ...' if len(classes) > 10 else ''})."
            )
    return np.asarray([place[label] for label in listed], dtype=np.intp)


def refuse_known_ids(gold: Any, training: NDArray[Any]) -> None:
    """Refuse gold whose id is that of an instance the model learned from."""
    known = np.flatnonzero(np.isin(np.asarray(gold), training))
    if len(known):
        raise ValueError(
            f"gold row {known[0]} (id {np.asarray(gold)[known[0]].item()!r}; {len(known)} such "
            "row(s)) was used in fit; a certificate needs instances that the model has never "
            "seen, neither label nor candidate set."
        )


def refuse_copies(gold: NDArray[np.uint64], training: NDArray[np.uint64]) -> None:
    """Refuse gold with more copies of training rows than would come by chance.

    How often a fresh row equals a training row is told by how often one training row equals
    another. Where features are few and coarse, copies are common, and only ids can tell.
    """
    copies = np.flatnonzero(np.isin(gold, training))
    if not len(copies):
        return
    _, place, count = np.unique(training, return_inverse=True, return_counts=True)
    by_chance = float(np.mean(count[place] > 1))
    if binom.sf(len(copies) - 1, len(gold), by_chance) < UNLIKELY:
        raise ValueError(
            f"{len(copies)} of {len(gold)} gold rows (the first is row {copies[0]}) are copies of "
            f"rows used in fit, where about {by_chance * len(gold):.1f} would be so by chance; a "
            "certificate needs instances that the model has never seen, neither label nor "
            "candidate set. If they are others with the same features, give ids= in fit and "
            "in certify."
        )


def refuse_groups(gold: Any, training: Any, n: int) -> None:
    """Refuse gold that depends on itself or on the training data by its groups."""
    if training is None and gold is None:
        return
    if gold is None:
        raise ValueError(
            "the model was fitted with groups; give groups= of the gold instances too, one "
            "instance a group."
        )
    groups = np.asarray(gold)
    if len(groups) != n:
        raise ValueError(f"there are {n} gold instances but {len(groups)} groups.")
    names, counts = np.unique(groups, return_counts=True)
    if (counts > 1).any():
        worst = names[counts.argmax()].item()
        raise ValueError(
            f"group {worst!r} has {counts.max()} gold instances, which depend on each other; "
            "draw one of each group at most, as plan(X, groups=...) does."
        )
    if training is not None:
        known = np.flatnonzero(np.isin(groups, np.asarray(training)))
        if len(known):
            raise ValueError(
                f"group {groups[known[0]].item()!r} of gold row {known[0]} ({len(known)} such "
                "row(s)) was used in fit; draw gold from groups that the model has never seen."
            )
