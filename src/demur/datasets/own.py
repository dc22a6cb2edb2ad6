"""A file of the user's own as a dataset: CSV, Parquet, ARFF, or MATLAB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets, is_missing
from demur.datasets.columns import Table, to_features
from demur.datasets.dataset import Dataset
from demur.datasets.formats import Partial, read_arff, read_csv, read_mat, read_parquet

READERS = {".csv": read_csv, ".parquet": read_parquet, ".arff": read_arff}
SUFFIXES = (*READERS, ".mat")


def read_own(path: Path, label: str | None, candidates: str | None) -> Dataset:
    """Read the file, whose kind its suffix tells; columns as `load` tells them."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix == ".mat":
        if label is not None or candidates is not None:
            raise ValueError(f"{path}: a .mat file has no columns to choose; it is read whole.")
        return of_partial(str(path), read_mat(path))
    table = READERS[path.suffix](path)
    names = list(table.columns)
    if label is None and candidates is None:
        label = "label" if "label" in names else None
        candidates = "candidates" if "candidates" in names else None
        if label is None and candidates is None and path.suffix == ".arff":
            label = names[-1]  # as is usual there
    return of_table(str(path), table, label, candidates)


def of_partial(name: str, data: Partial) -> Dataset:
    """A dataset of what a MATLAB file holds; classes are numbered from 0."""
    classes = np.arange(data.truth.shape[1])
    sets = CandidateSets(data.candidates, classes=classes)
    return Dataset(name, data.X, data.truth.argmax(axis=1), classes, sets)


def of_table(name: str, table: Table, label: str | None, candidates: str | None = None) -> Dataset:
    """A dataset of a table: one column has true labels, one candidates, all others are features."""
    columns = dict(table.columns)
    for what in (label, candidates):
        if what is not None and what not in columns:
            raise ValueError(f"{name} has no column {what!r}; it has {', '.join(columns)}.")
    if label is None and candidates is None:
        raise ValueError(
            f"{name} has the columns {', '.join(columns)}. Say which holds the true label or the "
            "candidates, load(..., label=..., candidates=...), or call them so."
        )
    y = None if label is None else _labels(columns.pop(label), f"{name}: column {label!r}")
    held = None if candidates is None else _collections(columns.pop(candidates))
    X, names = to_features(Table(columns, table.n_rows), name)
    if held is None:
        assert y is not None
        return Dataset(name, X, y, np.unique(y), feature_names=names)
    try:
        sets = CandidateSets(held)
        if y is not None:
            if sets.classes.dtype.kind in "UO":
                y = y.astype(str)  # beside the words of a text, 1 is "1"
            sets = CandidateSets(sets, classes=np.union1d(sets.classes, y))
    except ValueError as error:
        raise ValueError(f"{name}: column {candidates!r}: {error}") from None
    return Dataset(name, X, y, sets.classes, sets, feature_names=names)


def _labels(values: NDArray[Any], where: str) -> NDArray[Any]:
    missing = np.flatnonzero([is_missing(v) or v in ("", "?") for v in values.tolist()])
    if len(missing):
        raise ValueError(
            f"{where} has no label in row {missing[0]} ({len(missing)} such row(s)); "
            "leave such rows out."
        )
    return values.astype(str) if values.dtype == object else values


def _collections(values: NDArray[Any]) -> list[Any]:
    """Labels of each cell: a list as it is, a text parted at each ``|``, else one label."""
    return [_collection(cell) for cell in values.tolist()]


def _collection(cell: Any) -> list[Any]:
    if isinstance(cell, (list, np.ndarray)):
        return list(cell)
    if isinstance(cell, str):
        return [word.strip() for word in cell.split("|") if word.strip()]
    return [] if is_missing(cell) else [cell]
