"""What a fitted method has learned, as named arrays: nothing else is needed to have it again.

Reading arrays runs no code. A value is told by its place in a name, ``attribute`` or
``attribute:kind`` or ``attribute:kind.part``; the kinds are those below and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.neighbors import NeighborIndex

Arrays = dict[str, NDArray[Any]]

_NAME = re.compile(r"([A-Za-z_]\w*)(?::([a-z]+)(?:\.(.+))?)?", re.ASCII)


def pack(attributes: Mapping[str, Any]) -> Arrays:
    """Attributes as named arrays.

    Arrays, numbers, booleans, strings, None, tuples of those, dicts of arrays,
    `CandidateSets` and `NeighborIndex` can be packed.

    Examples
    --------
    >>> import numpy as np
    >>> from demur.state import pack, unpack
    >>> arrays = pack({"coef_": np.eye(2), "seed": 7, "shape": (28, 28), "note": None})
    >>> list(arrays)
    ['coef_', 'seed', 'shape:tuple', 'note:none']
    >>> unpack(arrays)["shape"]
    (28, 28)
    """
    arrays: Arrays = {}
    for name, value in attributes.items():
        kind, parts = _parts(name, value)
        for part, array in parts.items():
            if array.dtype.hasobject:
                raise ValueError(
                    f"{name} holds objects that are neither numbers nor text, so it cannot be "
                    "saved without pickling; use labels of one type."
                )
            arrays[name + (f":{kind}" if kind else "") + (f".{part}" if part else "")] = array
    return arrays


def _parts(name: str, value: Any) -> tuple[str, Arrays]:
    """The kind of a value, and its arrays by part; a value of one array has the part ""."""
    if isinstance(value, np.ndarray):
        if value.dtype == object and all(isinstance(v, str) for v in value.flat):
            return "text", {"": np.asarray(value.tolist(), dtype=str).reshape(value.shape)}
        return "", {"": value}
    if value is None:
        return "none", {"": np.zeros(0)}
    if isinstance(value, (bool, int, float, str, np.generic)):
        return "", {"": np.asarray(value)}
    if isinstance(value, tuple):
        return "tuple", {"": np.asarray(value)}
    if isinstance(value, dict) and value:
        return "dict", {str(key): np.asarray(part) for key, part in value.items()}
    if isinstance(value, CandidateSets):
        return "sets", {"words": value.words, "classes": value.classes}
    if isinstance(value, NeighborIndex):
        settings = {"metric": value.metric, "algorithm": value.algorithm}
        return "index", {"X": value.X} | {k: np.asarray(v) for k, v in settings.items()}
    raise ValueError(
        f"{name} is a {type(value).__name__}, which cannot be saved as arrays; "
        "see demur.state.pack for what can."
    )


def unpack(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """What `pack` was given. Arrays that it cannot have made are a ValueError."""
    grouped: dict[tuple[str, str], Arrays] = {}
    for key in arrays:
        found = _NAME.fullmatch(key)
        if found is None or (found[2] or "") not in _READERS:
            raise ValueError(f"not the arrays of a fitted model: one is called {key!r}.")
        grouped.setdefault((found[1], found[2] or ""), {})[found[3] or ""] = arrays[key]
    attributes: dict[str, Any] = {}
    for (name, kind), parts in grouped.items():
        if name in attributes:
            raise ValueError(f"not the arrays of a fitted model: {name!r} stands there twice.")
        try:
            attributes[name] = _READERS[kind](parts)
        except KeyError as error:
            raise ValueError(
                f"not the arrays of a fitted model: {name} lacks its part {error.args[0]!r}."
            ) from None
    return attributes


def _read_plain(parts: Arrays) -> Any:
    array = parts[""]
    return array.item() if array.ndim == 0 else array


def _read_sets(parts: Arrays) -> CandidateSets:
    words, classes = parts["words"], parts["classes"]
    check_words(words, len(classes))
    return CandidateSets._packed(words, classes)


def _read_index(parts: Arrays) -> NeighborIndex:
    X = parts["X"]
    if X.dtype != np.float64 or X.ndim != 2 or not X.size or not np.isfinite(X).all():
        raise ValueError("not the arrays of a fitted model: its points are not finite numbers.")
    return NeighborIndex(X, metric=str(parts["metric"]), algorithm=str(parts["algorithm"]))


_READERS: dict[str, Callable[[Arrays], Any]] = {
    "": _read_plain,
    "text": lambda parts: parts[""].astype(object),
    "none": lambda parts: None,
    "tuple": lambda parts: tuple(parts[""].ravel().tolist()),
    "dict": dict,
    "sets": _read_sets,
    "index": _read_index,
}


# -------------------------------------------------------------------- checks of what was read


def check_words(words: Any, n_classes: int, n_rows: int | None = None) -> None:
    """Refuse packed sets that kernels could not read safely."""
    shape = (len(words) if n_rows is None else n_rows, -(-n_classes // 64))
    if words.dtype != np.uint64 or words.shape != shape or not words.any(axis=1).all():
        raise ValueError("not the arrays of a fitted model: its candidate sets do not fit it.")
    spare = 64 * shape[1] - n_classes
    if spare and (words[:, -1] >> np.uint64(64 - spare)).any():
        raise ValueError("not the arrays of a fitted model: a candidate is no class of it.")


def check_array(array: Any, kinds: str, shape: tuple[int, ...], what: str) -> None:
    """Refuse an array of another shape, type of number, or with numbers that are not finite."""
    good = isinstance(array, np.ndarray) and array.dtype.kind in kinds and array.shape == shape
    if not good or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise ValueError(f"not the arrays of a fitted model: {what} does not fit the others.")


def check_columns(labels: Any, n_classes: int, n_rows: int, what: str) -> None:
    """Refuse labels, as columns of classes, that point outside them."""
    check_array(labels, "i", (n_rows,), what)
    if labels.size and not 0 <= labels.min() <= labels.max() < n_classes:
        raise ValueError(f"not the arrays of a fitted model: {what} names no class of it.")
