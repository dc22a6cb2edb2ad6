"""`load`: from a name or a path to a `Dataset`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.datasets.dataset import CLASS_FILTERS, Dataset
from demur.datasets.files import Folder, locate
from demur.datasets.formats import read_arff, read_idx, read_mat
from demur.datasets.own import SUFFIXES, of_partial, of_table, read_own
from demur.datasets.registry import Entry, entry

_IDX_PARTS = {"train": "train", "test": "t10k"}
_LABELME_PARTS = {"train": "train", "validation": "valid", "test": "test"}


def load(
    name: str | os.PathLike[str],
    *,
    classes: str = "all",
    folder: Folder | None = None,
    part: str | None = None,
    label: str | None = None,
    candidates: str | None = None,
) -> Dataset:
    """Read a dataset that has a name, or a file of your own.

    Nothing is fetched: what lacks is told, and `demur data get` or `download` fetch it.

    Parameters
    ----------
    name : str or path
        One of `demur.datasets.registry`; or the path of a .csv, .parquet, .arff or .mat file.
    classes : {"all", "frequent-95"}, default="all"
        Which classes to keep; instances of others are left out. "frequent-95" keeps the most
        frequent candidates, as many as there are frequent labels that cover 95 % of the
        instances.
    folder : path, optional
        Where the files of named datasets lie. By default the folder that DEMUR_DATA names, then
        the one that `demur data get` fills.
    part : str, optional
        One of the parts that the source divides the data into. By default all parts, one after
        the other; for "labelme" the training part, which alone has candidates.
    label : str, optional
        Of a file of your own: the column of true labels. With neither this nor ``candidates``,
        the column "label", if there is one; of an ARFF file else the last.
    candidates : str, optional
        Of a file of your own: the column of candidates, lists of labels or a text that has a
        ``|`` between labels. With neither this nor ``label``, the column "candidates", if there
        is one. All other columns are features.

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
    if Path(name).suffix in SUFFIXES:
        if part is not None:
            raise ValueError("a file of your own has no parts.")
        dataset = read_own(Path(name), label, candidates)
    else:
        if label is not None or candidates is not None:
            raise ValueError("label and candidates name columns of a file of your own only.")
        dataset = _load_named(entry(str(name)), folder, part)
    return CLASS_FILTERS[classes](dataset)


def _load_named(known: Entry, folder: Folder | None, part: str | None) -> Dataset:
    if part is not None and part not in known.parts:
        told = f"there are {', '.join(known.parts)}" if known.parts else "it has none"
        raise ValueError(f"{known.name} has no part {part!r}; {told}.")
    if known.kind == "sklearn":
        return _from_sklearn(known)
    return _READERS[known.kind](known, locate(known, folder), part)


def _from_sklearn(known: Entry) -> Dataset:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{known.name}")()
    y = np.asarray(bunch.target)
    names = tuple(str(name) for name in bunch.feature_names)
    return Dataset(known.name, bunch.data.astype(np.float64), y, np.unique(y), feature_names=names)


def _from_arff(known: Entry, paths: Mapping[str, Path], part: str | None) -> Dataset:
    (path,) = paths.values()
    table = read_arff(path)
    return of_table(known.name, table, label=list(table.columns)[-1])


def _from_mat(known: Entry, paths: Mapping[str, Path], part: str | None) -> Dataset:
    (path,) = paths.values()
    return of_partial(known.name, read_mat(path))


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
