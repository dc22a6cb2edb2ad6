"""Features: columns of a table as numbers, in the way that a model learned once and keeps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from demur.files.columns import Numbers, choose, is_number, is_text, listed, numbers, texts
from demur.files.errors import BadRow, DataError, UsageError
from demur.files.tables import Chunk, join_cells

SCALINGS = ("minmax", "standard", "none")
FARTHEST = 1e30  # scaled values beyond it are no measurements, and overflow when squared


@dataclass(frozen=True)
class Column:
    """A column: numbers, or text whose values are one-hot encoded.

    ``fill`` takes the place of missing values: a number, or for text one of ``values``.
    None refuses them.
    """

    name: str
    values: tuple[str, ...] | None = None
    fill: float | str | None = None

    @property
    def width(self) -> int:
        """How many features the column becomes."""
        return 1 if self.values is None else len(self.values)


class Encoded(NamedTuple):
    """Features of the good rows, before scaling; which rows those are; the others."""

    X: NDArray[np.float64]
    good: NDArray[np.bool_]
    bad: list[BadRow]


@dataclass
class Preparation:
    """How the columns of a table become features.

    Attributes
    ----------
    columns : list of Column
    scaling : {"minmax", "standard", "none"}
    offset, factor : ndarray of shape (n_features,)
        A feature is scaled to ``(value - offset) * factor``.
    """

    columns: list[Column]
    scaling: str = "minmax"
    offset: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    factor: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return sum(column.width for column in self.columns)

    def encode(self, chunk: Chunk, name: str) -> Encoded:
        """Features of a chunk; a row with any cell that does not fit is bad."""
        self.check_columns(chunk.table, name)
        n = len(chunk.table)
        X = np.empty((n, self.n_features))
        bad: dict[int, str] = {}
        start = 0
        for column in self.columns:
            cells = chunk.table[column.name]
            encode = _encode_numbers if column.values is None else _encode_texts
            encode(column, cells, X[:, start : start + column.width], bad)
            start += column.width
        if len(self.offset):
            with np.errstate(over="ignore", invalid="ignore"):
                far = np.abs(self.scale(X)) > FARTHEST
            for row in np.flatnonzero(far.any(axis=1)).tolist():
                bad.setdefault(row, "a number is absurdly far from those learned from")
        good = np.ones(n, dtype=bool)
        good[list(bad)] = False
        rows = [
            BadRow(int(chunk.places[i]), why, join_cells(chunk.table, i))
            for i, why in sorted(bad.items())
        ]
        return Encoded(X if not bad else X[good], good, rows)

    def check_names(self, columns: Sequence[str], name: str) -> None:
        """Refuse a table that lacks columns."""
        lacking = [c for c in self.names if c not in set(columns)]
        if lacking:
            raise DataError(
                f"{name} lacks the column{'s' * (len(lacking) > 1)} {listed(lacking, 5)} that the "
                f"model was fitted with; it has {listed(columns, 5)}."
            )

    def check_columns(self, table: pa.Table, name: str) -> None:
        """Refuse a table without the columns, or with columns of another type."""
        self.check_names(table.column_names, name)
        for column in self.columns:
            cells = table[column.name]
            if column.values is None and not (is_number(cells) or is_text(cells)):
                raise DataError(
                    f"{name}: column {column.name} is of type {cells.type}; numbers are wanted."
                )

    def scale(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Features on the scale that the method learned on."""
        return (X - self.offset) * self.factor

    def learn_scale(self, X: NDArray[np.float64]) -> None:
        """Take offset and factor from training data."""
        if self.scaling == "minmax":
            offset, spread = X.min(axis=0), np.ptp(X, axis=0)
        elif self.scaling == "standard":
            offset, spread = X.mean(axis=0), X.std(axis=0)
        else:
            offset, spread = np.zeros(X.shape[1]), np.ones(X.shape[1])
        self.offset = offset
        self.factor = 1.0 / np.where(spread > 0, spread, 1.0)


def _encode_numbers(
    column: Column, cells: Any, out: NDArray[np.float64], bad: dict[int, str]
) -> None:
    values, missing, wrong = numbers(cells)
    if missing.any():
        if column.fill is None:
            for row in np.flatnonzero(missing).tolist():
                bad.setdefault(row, f"{column.name} is missing")
        values[missing] = 0.0 if column.fill is None else column.fill
    infinite = np.isinf(values)
    for row in np.flatnonzero(wrong | infinite).tolist():
        what = "is infinite" if infinite[row] else f"is {_shown(cells[row])}, not a number"
        bad.setdefault(row, f"{column.name} {what}")
    out[:, 0] = values


def _encode_texts(
    column: Column, cells: Any, out: NDArray[np.float64], bad: dict[int, str]
) -> None:
    out[:] = 0.0
    place = {value: i for i, value in enumerate(column.values or ())}
    for row, value in enumerate(texts(cells)):
        known = place.get(column.fill if value is None else value)  # type: ignore[arg-type]
        if known is not None:
            out[row, known] = 1.0
        elif value is None:
            bad.setdefault(row, f"{column.name} is missing")
        else:
            bad.setdefault(row, f"{column.name} is {_shown(cells[row])}, a value never seen in fit")


def _shown(cell: Any) -> str:
    text = repr(cell.as_py())
    return text if len(text) <= 40 else text[:37] + "..."


# ------------------------------------------------------------------------------ learning


def learn_preparation(
    chunk: Chunk,
    name: str,
    features: str | Sequence[str],
    *,
    text: Sequence[str] = (),
    impute: bool = False,
    max_values: int = 50,
    scaling: str = "minmax",
) -> Preparation:
    """Find out how columns become numbers.

    Text that mostly reads as numbers is numbers, and the other cells are then bad; other
    text is one-hot encoded.

    Parameters
    ----------
    chunk : Chunk
    name : str
        Of the file, for messages.
    features : str or sequence of str
        As for `choose`.
    text : sequence of str
        Columns to one-hot encode though they look like numbers.
    impute : bool, default=False
        Fill what is missing: the median, or for text the most frequent value.
    max_values : int, default=50
        Most values that a column of text may have.
    scaling : {"minmax", "standard", "none"}
    """
    if scaling not in SCALINGS:
        raise UsageError(f"scaling is one of {', '.join(SCALINGS)}; got {scaling!r}.")
    names = choose(features, chunk.table.column_names, "--features")
    as_text = set(choose(text, chunk.table.column_names, "--text")) if text else set()
    columns = []
    for column in names:
        cells = chunk.table[column]
        if not is_number(cells) and not is_text(cells):
            raise DataError(
                f"{name}: column {column} is of type {cells.type}; give numbers or text."
            )
        parsed = None if column in as_text else numbers(cells)
        if parsed is not None and (is_number(cells) or _mostly_numbers(parsed)):
            columns.append(Column(column, None, _median(parsed, column, name) if impute else None))
        else:
            columns.append(_text_column(column, cells, name, impute, max_values))
    return Preparation(columns, scaling)


def _mostly_numbers(parsed: Numbers) -> bool:
    given = int((~parsed.missing).sum())
    return 2 * int(parsed.bad.sum()) <= given


def _median(parsed: Numbers, column: str, name: str) -> float:
    finite = parsed.values[np.isfinite(parsed.values)]
    if not len(finite):
        raise DataError(f"{name}: column {column} holds no number; leave it out of the features.")
    return float(np.median(finite))


def _has_decimal_commas(values: NDArray[Any]) -> bool:
    """Whether values are numbers as some countries' spreadsheets write them."""
    return all(re.fullmatch(r"[+-]?\d+(,\d+)?", str(value)) for value in values)


def _text_column(column: str, cells: Any, name: str, impute: bool, max_values: int) -> Column:
    given = [value for value in texts(cells) if value is not None]
    values, counts = np.unique(np.asarray(given, dtype=object), return_counts=True)
    if not len(values):
        raise DataError(f"{name}: column {column} is empty; leave it out of the features.")
    if len(values) > max_values:
        raise DataError(
            f"{name}: column {column} is text with {len(values)} different values, such as "
            f"{values[0]!r}; at most {max_values} are one-hot encoded (--max-values)."
            + (" Numbers are written with a point, 0.5." if _has_decimal_commas(values) else "")
        )
    fill = str(values[counts.argmax()]) if impute else None
    return Column(column, tuple(map(str, values)), fill)
