"""From columns of any kind to features: numbers stay, each value of another column becomes 0/1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.candidates import is_missing

Column = NDArray[Any]

MAX_WORDS = 256  # different ones in a column; more of them name rows and are no feature


class Table(NamedTuple):
    """Columns of equal length by name."""

    columns: Mapping[str, Column]
    n_rows: int


def to_features(table: Table, origin: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Features and their names; ``origin`` says in an error whose column it was.

    A column of words becomes a column of 0 and 1 for each of its values, in the order of the
    values: "weather" with rain and sun becomes "weather=rain" and "weather=sun".

    Examples
    --------
    >>> import numpy as np
    >>> columns = {"size": np.array([3, 5]), "weather": np.array(["sun", "rain"])}
    >>> X, names = to_features(Table(columns, 2), "a test")
    >>> names
    ('size', 'weather=rain', 'weather=sun')
    >>> X.tolist()
    [[3.0, 0.0, 1.0], [5.0, 1.0, 0.0]]
    """
    parts: list[NDArray[np.float64]] = [np.empty((table.n_rows, 0))]
    names: list[str] = []
    for name, values in table.columns.items():
        _refuse_missing(name, values, origin)
        if values.dtype.kind in "biuf":
            parts.append(values.astype(np.float64)[:, None])
            names.append(name)
            continue
        words = np.asarray([str(value) for value in values])
        levels = np.unique(words)
        if len(levels) > MAX_WORDS:
            raise ValueError(
                f"{origin}: column {name!r} holds {len(levels)} different values that are no "
                f"numbers, more than {MAX_WORDS}; leave it out, or make numbers of it."
            )
        parts.append((words[:, None] == levels).astype(np.float64))
        names.extend(f"{name}={level}" for level in levels)
    if not names:
        raise ValueError(f"{origin} has no columns of features.")
    return np.hstack(parts), tuple(names)


def _refuse_missing(name: str, values: Column, origin: str) -> None:
    if values.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(values))
    else:
        missing = np.flatnonzero([is_missing(v) or v in ("", "?") for v in values.tolist()])
    if len(missing):
        raise ValueError(
            f"{origin}: column {name!r} has no value in row {missing[0]} ({len(missing)} such "
            "row(s)); fill it or leave the row out."
        )
