"""What is known of each named dataset before it is read; the facts are in registry.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class File:
    """One file of a dataset.

    Attributes
    ----------
    path : str
        Where it lies in the data folder.
    check : str
        How to recognise it: kind and value of a checksum, with a colon between.
    url : str
        Where it can be fetched; empty where no address is known.
    """

    path: str
    check: str
    url: str = ""


@dataclass(frozen=True)
class Entry:
    """A named dataset.

    Attributes
    ----------
    name, title : str
    kind : str
        How it is read, by its name in `demur.datasets.loading`.
    shape : tuple of int
        Instances, features and classes, before any filter.
    origin, licence : str
    files : tuple of File
        Empty for what comes with scikit-learn.
    parts : tuple of str
        Parts that the source divides it into.
    image_shape : tuple of int or None
    candidates : bool
        It comes with candidates of its own.
    """

    name: str
    title: str
    kind: str
    shape: tuple[int, int, int]
    origin: str
    licence: str
    files: tuple[File, ...] = ()
    parts: tuple[str, ...] = ()
    image_shape: tuple[int, int] | None = None
    candidates: bool = False


@cache
def registry() -> dict[str, Entry]:
    """All named datasets, in the order in which they are shown."""
    text = resources.files("demur.datasets").joinpath("registry.toml").read_text("utf-8")
    entries = {}
    for name, facts in tomllib.loads(text).items():
        files = tuple(File(**file) for file in facts.pop("files", ()))
        plain: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()
        }
        entries[name] = Entry(name=name, files=files, **plain)
    return entries


def entry(name: str) -> Entry:
    """The entry of that name; the error for an unknown one names those there are."""
    if name not in registry():
        raise ValueError(
            f"there is no dataset {name!r}; there are {', '.join(registry())}. "
            "A file of your own is named by its path: a .csv, .parquet, .arff or .mat file."
        )
    return registry()[name]
