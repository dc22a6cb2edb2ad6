"""Columns: which are meant, and their cells as numbers or text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from demur.files.errors import UsageError

# What spreadsheets and data frames write where there is no number.
NO_NUMBER = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A")
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def choose(patterns: str | Iterable[str], columns: Sequence[str], what: str) -> list[str]:
    """The columns that are meant, in the order of the patterns.

    A pattern is a name, a range ``first:last`` in the order of the file, or has ``*`` or
    ``?``. Commas separate patterns.

    Examples
    --------
    >>> from demur.files.columns import choose
    >>> choose("f1:f3,colour", ["id", "f1", "f2", "f3", "colour"], "--features")
    ['f1', 'f2', 'f3', 'colour']
    >>> choose("f*", ["id", "f1", "f2"], "--features")
    ['f1', 'f2']
    """
    given = [patterns] if isinstance(patterns, str) else list(patterns)
    chosen: dict[str, None] = {}
    for pattern in [p for one in given for p in ([one] if one in columns else one.split(","))]:
        found = _matching(pattern.strip(), columns)
        if not found:
            raise UsageError(f"{what}: no column matches {pattern!r}; there are {listed(columns)}.")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _matching(pattern: str, columns: Sequence[str]) -> list[str]:
    if pattern in columns:
        return [pattern]
    first, colon, last = pattern.partition(":")
    if colon and first in columns and last in columns:
        start, stop = columns.index(first), columns.index(last)
        return list(columns[min(start, stop) : max(start, stop) + 1])
    return [c for c in columns if fnmatchcase(c, pattern)]


def listed(names: Sequence[str], limit: int = 12) -> str:
    """Names for a message, not too many."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(str, names[:limit])) + more


class Numbers(NamedTuple):
    """Cells as numbers; NaN where missing or no number."""

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    bad: NDArray[np.bool_]


def is_text(column: Any) -> bool:
    """Whether a column holds text, so that its cells have to be parsed."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(column: Any) -> bool:
    """Whether a column holds numbers or booleans."""
    kind = column.type
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def numbers(column: Any) -> Numbers:
    """Cells of a column of numbers or text, as numbers."""
    if is_number(column):
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        values = _floats(column.cast(pa.float64(), safe=False))
        return Numbers(values, np.isnan(values), np.zeros(len(values), dtype=bool))
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.is_in(text, pa.array(NO_NUMBER)), None, text)
    missing = np.array(pc.is_null(text), dtype=bool)
    try:
        values = _floats(pc.cast(text, pa.float64()))
        return Numbers(values, missing, np.isnan(values) & ~missing)
    except pa.ArrowInvalid:
        good = np.array(pc.fill_null(pc.match_substring_regex(text, _NUMBER), False), dtype=bool)
        values = np.full(len(good), np.nan)
        values[good] = [float(cell) for cell in text.filter(pa.array(good)).to_pylist()]
        infinite = pc.is_in(pc.utf8_lower(text), pa.array(["inf", "-inf", "infinity", "-infinity"]))
        values[np.array(infinite, dtype=bool)] = np.inf
        return Numbers(values, missing, np.isnan(values) & ~missing)


def _floats(column: Any) -> NDArray[np.float64]:
    """Cells as an array of our own; what arrow gives may be its own, not to be written to."""
    values = np.asarray(pc.fill_null(column, np.nan), dtype=float)
    return values if values.flags.writeable else values.copy()


def texts(column: Any) -> list[str | None]:
    """Cells as text without blanks around it; None where missing. Whole numbers have no point."""
    if not is_text(column) and not is_number(column):
        column = _as_text(column)
    return [label_text(cell) for cell in column.to_pylist()]


def label_text(cell: Any) -> str | None:
    """A label as text, or None where there is none."""
    if cell is None or cell != cell:
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    # A zero byte is a blank, too: numpy's text cannot end in one.
    return re.sub(r"[\s\0]+", " ", str(cell)).strip() or None


def _as_text(column: Any) -> Any:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
