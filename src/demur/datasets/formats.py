"""One reader a file format. Each returns plain arrays, whatever the dataset."""

from __future__ import annotations

import gzip
import importlib
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.io import arff, loadmat
from scipy.io.matlab import MatReadError

from demur.datasets.columns import Column, Table

# Kinds of numbers an idx file can hold, by the third byte of the file.
_IDX_KINDS = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class Partial(NamedTuple):
    """What a MATLAB file of partially labelled data holds, an instance a row."""

    X: NDArray[np.float64]
    truth: NDArray[np.bool_]
    candidates: NDArray[np.bool_]


def read_arff(path: Path) -> Table:
    """Columns of an ARFF file by name; nominal values become words."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            rows, meta = arff.loadarff(file)
    except (arff.ArffError, NotImplementedError, StopIteration, IndexError, ValueError) as error:
        raise ValueError(f"{path} is not a readable ARFF file: {error}") from error
    columns: dict[str, Column] = {}
    for name in meta.names():
        values = rows[name]
        columns[name] = np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
    return Table(columns, len(rows))


def read_csv(path: Path) -> Table:
    """Columns of a CSV file with a header."""
    csv = _pyarrow("pyarrow.csv")
    return _of_arrow(path, csv.read_csv)


def read_parquet(path: Path) -> Table:
    """Columns of a Parquet file."""
    parquet = _pyarrow("pyarrow.parquet")
    return _of_arrow(path, parquet.read_table)


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            'CSV and Parquet files need pyarrow; install it with `pip install "demur[cli]"`.'
        ) from None


def _of_arrow(path: Path, read: Callable[[Path], Any]) -> Table:
    """An Arrow table's columns; None where a value that is not a number is missing."""
    from pyarrow import ArrowException, float64, types

    try:
        table = read(path)
    except ArrowException as error:
        raise ValueError(f"{path} is not a readable {path.suffix[1:]} file: {error}") from error
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        raise ValueError(f"{path} has more than one column {min(twice)!r}.")
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        plain = column.cast(float64()) if types.is_decimal(column.type) else column
        columns[name] = np.asarray(plain.to_numpy())
    return Table(columns, table.num_rows)


def read_mat(path: Path) -> Partial:
    """Data as partial-label learning exchanges it: `data`, `target` and `partial_target`.

    `data` is instances x features; the other two are classes x instances and hold 0 and 1.
    Each may be sparse.
    """
    try:
        file = loadmat(path)
    except (ValueError, TypeError, MatReadError, NotImplementedError, zlib.error) as error:
        raise ValueError(f"{path} is not a readable MATLAB file: {error}") from error
    lacking = [key for key in ("data", "target", "partial_target") if key not in file]
    if lacking:
        raise ValueError(
            f"{path} has no variable {', '.join(lacking)}; needed are data (instances x "
            "features), target and partial_target (classes x instances)."
        )
    X = _dense(file["data"]).astype(np.float64)
    truth, candidates = (_dense(file[key]).T > 0 for key in ("target", "partial_target"))
    if not len(X) == len(truth) == len(candidates) or truth.shape != candidates.shape:
        raise ValueError(
            f"{path}: data has {len(X)} rows, target has shape {truth.T.shape} and "
            f"partial_target {candidates.T.shape}; both must be classes x {len(X)}."
        )
    odd = np.flatnonzero(truth.sum(axis=1) != 1)
    if len(odd):
        raise ValueError(
            f"{path}: target must name one true label for each instance; column {odd[0]} "
            f"names {truth[odd[0]].sum()} ({len(odd)} such in all)."
        )
    return Partial(X, truth, candidates)


def _dense(matrix: Any) -> NDArray[Any]:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)


def read_idx(path: Path) -> NDArray[Any]:
    """The array of an idx file, the format of MNIST; a name that ends in .gz is unpacked.

    Two zero bytes, the kind of the numbers, how many dimensions; each dimension's length in
    four bytes; then the numbers, all with the highest byte first.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from error
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX_KINDS:
        raise ValueError(f"{path} is not an idx file: its first bytes are {raw[:4].hex(' ')}.")
    kind, start = np.dtype(_IDX_KINDS[raw[2]]), 4 + 4 * raw[3]
    if len(raw) < start:
        raise ValueError(f"{path} ends within its first {start} bytes, which tell its shape.")
    shape = tuple(np.frombuffer(raw[4:start], ">u4").tolist())
    expected = math.prod(shape) * kind.itemsize
    if len(raw) - start != expected:
        raise ValueError(
            f"{path}: an array of shape {shape} takes {expected} bytes; the file has "
            f"{len(raw) - start}."
        )
    return np.frombuffer(raw, kind, offset=start).reshape(shape)
