"""`load`: from a name or a path to a `Dataset`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.datasets.columns import Table, to_features
from demur.datasets.dataset import CLASS_FILTERS, Dataset
from demur.datasets.files import locate, user_folder
from demur.datasets.formats import Partial, read_arff, read_idx, read_mat
from demur.datasets.registry import Entry, entry

_IDX_PARTS = {"train": "train", "test": "t10k"}
_LABELME_PARTS = {"train": "train", "validation": "valid", "test": "test"}


def load(
    name: str,
    *,
    classes: str = "all",
    folder: str | os.PathLike[str] | None = None,
    part: str | None = None,
) -> Dataset:
    """Read a dataset.

    Parameters
    ----------
    name : str
        One of `demur.datasets.registry`.
    classes : {"all", "frequent-95"}, default="all"
        Which classes to keep; instances of others are left out. "frequent-95" keeps the most
        frequent candidates, as many as there are frequent labels that cover 95 % of the
        instances.
    folder : path, optional
        Where the files lie; by default the folder that DEMUR_DATA names, else the one that
        `demur data get` fills.
    part : str, optional
        One of the parts that the source divides the data into. By default all parts one after
        the other; for LabelMe the training part, which alone has candidates.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from demur.datasets import load
    >>> load("iris")
    Dataset('iris': 150 rows, 4 features, 3 classes, true labels)
    """
    if classes not in CLASS_FILTERS:
        raise ValueError(
            f"there is no filter of classes {classes!r}; there are {', '.join(CLASS_FILTERS)}."
        )
    dataset = _named(entry(name), folder, part)
    return CLASS_FILTERS[classes](dataset)


def _named(known: Entry, folder: str | os.PathLike[str] | None, part: str | None) -> Dataset:
    if part is not None and part not in known.parts:
        told = f"there are {', '.join(known.parts)}" if known.parts else "it has none"
        raise ValueError(f"{known.name} has no part {part!r}; {told}.")
    if known.kind == "sklearn":
        return _from_sklearn(known)
    paths = locate(known, Path(folder) if folder is not None else user_folder())
    return _READERS[known.kind](known, paths, part)


def _from_sklearn(known: Entry) -> Dataset:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{known.name}")()
    y = np.asarray(bunch.target)
    names = tuple(str(name) for name in bunch.feature_names)
    return Dataset(known.name, bunch.data.astype(np.float64), y, np.unique(y), feature_names=names)


def _from_arff(known: Entry, paths: Mapping[str, Path], part: str | None) -> Dataset:
    (path,) = paths.values()
    return of_table(known.name, read_arff(path), None, str(path))


def of_table(name: str, table: Table, label: str | None, origin: str) -> Dataset:
    """A dataset of a table whose column ``label``, by default the last, has the true labels."""
    columns = dict(table.columns)
    y = columns.pop(label if label is not None else list(columns)[-1])
    X, names = to_features(Table(columns, table.n_rows), origin)
    return Dataset(name, X, y, np.unique(y), feature_names=names)


def _from_mat(known: Entry, paths: Mapping[str, Path], part: str | None) -> Dataset:
    (path,) = paths.values()
    return of_partial(known.name, read_mat(path))


def of_partial(name: str, data: Partial) -> Dataset:
    """A dataset of what a MATLAB file holds; classes are numbered from 0."""
    classes = np.arange(data.truth.shape[1])
    sets = CandidateSets(data.candidates, classes=classes)
    return Dataset(name, data.X, data.truth.argmax(axis=1), classes, sets)


def _from_idx(known: Entry, paths: Mapping[str, Path], part: str | None) -> Dataset:
    wanted = known.parts if part is None else (part,)
    images, labels = (
        np.concatenate([read_idx(paths[f"{_IDX_PARTS[p]}-{what}-ubyte.gz"]) for p in wanted])
        for what in ("images-idx3", "labels-idx1")
    )
    if len(images) != len(labels) or images.shape[1:] != known.image_shape:
        raise ValueError(
            f"{known.name}: images of shape {images.shape} and {len(labels)} labels; "
            f"there should be as many labels as images of shape {known.image_shape}."
        )
    X = images.reshape(len(images), -1).astype(np.float64)
    y = labels.astype(np.intp)
    return Dataset(known.name, X, y, np.unique(y), image_shape=known.image_shape)


def _from_labelme(known: Entry, paths: Mapping[str, Path], part: str | None) -> Dataset:
    which = _LABELME_PARTS[part or "train"]
    X = np.load(paths[f"LabelMe_VGG_avg_{which}.npy"]).astype(np.float64)
    y = np.loadtxt(paths[f"LabelMe_Z_{which}.txt"], dtype=np.intp)
    classes = np.arange(known.shape[2])
    sets: CandidateSets | None = None
    if which == "train":
        answers: NDArray[Any] = np.loadtxt(paths["answers.txt"], dtype=np.intp)
        sets = CandidateSets.from_answers(answers, missing=-1, classes=classes)
    return Dataset(known.name, X, y, classes, sets)


_READERS: Mapping[str, Callable[[Entry, Mapping[str, Path], str | None], Dataset]] = {
    "arff": _from_arff,
    "mat": _from_mat,
    "idx": _from_idx,
    "labelme": _from_labelme,
}
