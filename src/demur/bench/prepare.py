"""From a dataset's name to what a method learns from: split, scale, encode, draw candidates.

What takes long to make is kept in a folder that all workers share, so that it is made once for
all runs that need it.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from demur.bench.locks import locked
from demur.bench.spec import REAL, Spec, canonical
from demur.candidates import CandidateSets
from demur.noise import class_dependent_noise, instance_dependent_noise, uniform_noise

SLOW = 1.0  # seconds; what takes longer is kept for the other runs
NOISES: Mapping[str, Callable[..., CandidateSets]] = {
    "uniform": lambda y, X, **how: uniform_noise(y, **how),
    "class-dependent": lambda y, X, **how: class_dependent_noise(y, **how),
    "instance-dependent": instance_dependent_noise,
}
TRAINED = ("instance-dependent",)  # noises that train a classifier first, which takes a while
ENCODERS = {"vae": ("demur.embed", "VAEEncoder")}


class Data(NamedTuple):
    """A dataset, with labels as positions among its classes."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    classes: tuple[Any, ...]
    candidates: CandidateSets | None
    image_shape: tuple[int, ...] | None


class Prepared(NamedTuple):
    """What one run learns from and is judged by.

    The labels ``y_train`` are not learned from: a dial may have some of them verified.
    """

    X_train: NDArray[np.float64]
    sets: CandidateSets
    y_train: NDArray[np.intp]
    train: NDArray[np.intp]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.intp]
    test: NDArray[np.intp]
    classes: tuple[Any, ...]
    image_shape: tuple[int, ...] | None


@lru_cache(maxsize=2)
def load_data(name: str, classes: str, folder: str | None) -> Data:
    """Load a dataset as `demur.datasets` has it."""
    from demur.datasets import load

    loaded = load(name, classes=classes, folder=folder)
    named = np.asarray(loaded.classes)
    y = CandidateSets(np.asarray(loaded.y), classes=named).to_indicator().argmax(axis=1)
    sets = loaded.candidates
    if sets is not None and sets.classes.tolist() != named.tolist():
        sets = CandidateSets(sets, classes=named)
    X = np.asarray(loaded.X, dtype=np.float64).reshape(len(y), -1)
    return Data(X, y, tuple(named.tolist()), sets, loaded.image_shape)


def prepare(spec: Spec, folder: str | None, cache: str | None, device: str) -> Prepared:
    """Make all that a run needs, from nothing but its specification.

    Parameters
    ----------
    spec : Spec
    folder : str or None
        Where the datasets lie; None leaves it to `demur.datasets`.
    cache : str or None
        Where to keep what takes long.
    device : str
        For encoders that train a network.
    """
    data = load_data(spec.dataset, spec.classes, folder)
    train, test = split(len(data.y), spec.test_size, spec.seed)
    sets = make_candidates(spec, folder, cache)
    if spec.encoder:
        (X_train, X_test), shape = make_features(spec, folder, cache, device), None
    else:
        (X_train, X_test), shape = _scaled(spec, folder), data.image_shape
    return Prepared(
        X_train, sets, data.y[train], train, X_test, data.y[test], test, data.classes, shape
    )


def split(n: int, test_size: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from, and rows to judge, as the seed decides."""
    train, test = train_test_split(np.arange(n), test_size=test_size, random_state=seed)
    return train, test


def _scaled(spec: Spec, folder: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return scaled(spec.dataset, spec.classes, folder, spec.test_size, spec.seed)


@lru_cache(maxsize=2)
def scaled(
    name: str, classes: str, folder: str | None, test_size: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both parts of a split; the training part is brought to [0, 1], the other likewise.

    Each column of a table is scaled on its own; pixels are scaled together, else a pixel that
    is hardly ever lit would weigh as much as any.
    """
    data = load_data(name, classes, folder)
    train, test = split(len(data.y), test_size, seed)
    columns = data.X.shape[1] if data.image_shape is None else 1
    scaler = MinMaxScaler().fit(data.X[train].reshape(-1, columns))
    X_train, X_test = (
        scaler.transform(X.reshape(-1, columns)).reshape(X.shape)
        for X in (data.X[train], data.X[test])
    )
    return X_train, X_test


def keep_splits(n: int) -> None:
    """Keep so many scaled splits in the memory of this process, instead of two."""
    global scaled
    scaled = lru_cache(maxsize=n)(scaled.__wrapped__)


def make_candidates(spec: Spec, folder: str | None, cache: str | None) -> CandidateSets:
    """Candidates of the training part: the dataset's own, or made from its true labels."""
    data = load_data(spec.dataset, spec.classes, folder)
    train, _ = split(len(data.y), spec.test_size, spec.seed)
    if spec.noise == REAL:
        if data.candidates is None:
            raise ValueError(
                f"{spec.dataset} has no candidates of its own; name one of the noises "
                f"{', '.join(NOISES)} instead of {REAL!r}."
            )
        return CandidateSets(
            data.candidates.to_indicator()[train], classes=range(len(data.classes))
        )

    def make() -> dict[str, NDArray[Any]]:
        sets = NOISES[spec.noise](
            data.y[train],
            _scaled(spec, folder)[0],
            **spec.noise_parameters,
            classes=range(len(data.classes)),
            random_state=spec.seed,
        )
        return {"held": np.packbits(sets.to_indicator(), axis=1)}

    parts = [*_split_key(spec), spec.noise, spec.noise_parameters]
    held = _kept(cache, "candidates", parts, make)["held"]
    indicator = np.unpackbits(held, axis=1, count=len(data.classes))
    return CandidateSets(indicator, classes=range(len(data.classes)))


def make_features(
    spec: Spec, folder: str | None, cache: str | None, device: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features that the run's encoder, fitted on the training part, makes of both parts."""
    parameters = dict(spec.encoder)
    kind = parameters.pop("kind", None)
    if kind not in ENCODERS:
        raise ValueError(f"the encoder's kind is {kind!r}; there are {', '.join(ENCODERS)}.")

    def make() -> dict[str, NDArray[Any]]:
        X_train, X_test = _scaled(spec, folder)
        module, name = ENCODERS[kind]
        encoder = getattr(importlib.import_module(module), name)(**parameters)
        seeded = {"random_state": spec.seed, "device": device}
        encoder.set_params(**{k: v for k, v in seeded.items() if k in encoder.get_params()})
        encoder.fit(X_train)
        return {"train": encoder.transform(X_train), "test": encoder.transform(X_test)}

    made = _kept(cache, "features", _features_parts(spec), make)
    return made["train"], made["test"]


def has_features(spec: Spec, cache: str | None) -> bool:
    """Whether the features that the run's encoder makes are kept already."""
    return cache is not None and _path_of(cache, "features", _features_parts(spec)).exists()


def _features_parts(spec: Spec) -> list[Any]:
    return [*_split_key(spec), spec.encoder]


def _split_key(spec: Spec) -> list[Any]:
    return [spec.dataset, spec.classes, spec.test_size, spec.seed]


# ------------------------------------------------------------------------- made only once


def _kept(
    cache: str | None,
    kind: str,
    parts: list[Any],
    make: Callable[[], dict[str, NDArray[Any]]],
) -> dict[str, NDArray[Any]]:
    """What ``make`` gives for these parts, from the cache if it is there.

    Where nothing can be kept, a full disk for instance, it is made each time.
    """
    if cache is None:
        return make()
    path = _path_of(cache, kind, parts)
    found = _read(path)
    if found is not None:
        return found
    with locked(path.with_suffix(".lock")):  # else all who wait for it would make it
        found = _read(path)
        if found is not None:
            return found
        start = time.perf_counter()
        made = make()
        if time.perf_counter() - start > SLOW:
            with suppress(OSError):
                _write(path, made)
    return made


def _path_of(cache: str, kind: str, parts: list[Any]) -> Path:
    plain = [dict(p) if isinstance(p, Mapping) else p for p in parts]
    name = hashlib.sha256(canonical(plain).encode()).hexdigest()[:16]
    return Path(cache) / f"{kind}-{name}.npz"


def _read(path: Path) -> dict[str, NDArray[Any]] | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def _write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    draft = path.with_name(f".{path.stem}.draft")
    try:
        with draft.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
