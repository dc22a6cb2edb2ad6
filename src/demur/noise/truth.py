"""What all kinds of noise need: the true labels as columns, and checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.candidates import CandidateSets


def read_truth(
    y: ArrayLike, classes: Iterable[Any] | None
) -> tuple[NDArray[np.intp], CandidateSets]:
    """The column of each true label, and the labels as sets of one."""
    sets = CandidateSets(y, classes=classes)
    several = np.flatnonzero(sets.sizes != 1)
    if len(several):
        raise ValueError(
            f"y must hold one true label a row; row {several[0]} holds "
            f"{sets.sizes[several[0]]} ({len(several)} such row(s))."
        )
    if sets.n_classes < 2:
        raise ValueError(
            f"noise needs at least 2 classes; got only {sets.classes.item(0)!r}. "
            "Pass classes=[...] where y lacks some."
        )
    return sets.to_indicator().argmax(axis=1), sets


def skip(numbers: Any, left_out: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count on past a label that is left out: 0 to l - 2 become the l - 1 other labels."""
    return np.asarray(numbers + (numbers >= left_out), dtype=np.intp)


def check_chance(name: str, value: float) -> None:
    """Refuse what is no probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}; it must be from 0 to 1.")
