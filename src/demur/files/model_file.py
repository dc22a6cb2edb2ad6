"""The model file: a zip of arrays (npy) and JSON, with checksums, and no code in it.

    model.json     what the model is: format version, method, parameters, columns, summary,
                   and for each array its member and checksum
    checksum       SHA-256 of model.json
    arrays/0.npy   the arrays, numbered

Members are stored, not compressed, so a file cannot hold more than its own size; nothing is
ever unpacked to disk, and arrays are read without pickle.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur import __version__
from demur.base import PartialLabelClassifier
from demur.candidates import CandidateSets
from demur.files.errors import DataError, UsageError
from demur.files.features import SCALINGS, Column, Preparation
from demur.files.output import atomic
from demur.methods import METHODS, method
from demur.state import check_array, check_words

FORMAT, FORMAT_VERSION = "demur-model", 1
LONGEST_JSON = 2**24
_MEMBER = re.compile(r"model\.json|checksum|arrays/[0-9]{1,6}\.npy", re.ASCII)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # so that the same model is the same bytes


@dataclass
class TrainingData:
    """What a model was fitted on, kept so that answers can be added to it.

    ``ids`` are those of the id column, or else the places of the rows in their file.
    """

    X: NDArray[np.float64]
    words: NDArray[np.uint64]
    ids: list[str]


@dataclass
class Model:
    """A fitted method, and how the columns of a table become its features.

    Attributes
    ----------
    name : str
        Of the method, in the registry.
    method : PartialLabelClassifier
    preparation : Preparation
    training : TrainingData
    id_column : str or None
    summary : dict
        What to tell of the training: rows, mean size of the candidate sets and so on.
    """

    name: str
    method: PartialLabelClassifier
    preparation: Preparation
    training: TrainingData
    id_column: str | None = None
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def classes(self) -> list[str]:
        """The labels."""
        return [str(label) for label in self.method.classes_.tolist()]

    @property
    def sets(self) -> CandidateSets:
        """What is known of the rows that the model was fitted on."""
        return CandidateSets._packed(self.training.words, self.method.classes_)


# ----------------------------------------------------------------------------- writing


def save(model: Model, path: str | Path) -> None:
    """Write a model, so that there is a whole file or none."""
    arrays: dict[str, NDArray[Any]] = {
        **{f"method/{k}": v for k, v in model.method.to_arrays().items()},
        "features/offset": model.preparation.offset,
        "features/factor": model.preparation.factor,
        "training/X": model.training.X,
        "training/words": model.training.words,
        "training/ids": np.asarray(model.training.ids, dtype=str),
    }
    members: dict[str, bytes] = {}
    listed: dict[str, dict[str, str]] = {}
    for i, (name, array) in enumerate(arrays.items()):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
        member = f"arrays/{i}.npy"
        members[member] = buffer.getvalue()
        listed[name] = {"member": member, "sha256": _digest(members[member])}
    described = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "demur_version": __version__,
        "method": model.name,
        "parameters": _parameters(model.method),
        "scaling": model.preparation.scaling,
        "columns": [
            {"name": c.name, "values": c.values, "fill": c.fill} for c in model.preparation.columns
        ],
        "id_column": model.id_column,
        "summary": model.summary,
        "arrays": listed,
    }
    text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False).encode()
    with atomic(path) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {"model.json": text, "checksum": _digest(text).encode()}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _parameters(fitted: PartialLabelClassifier) -> dict[str, Any]:
    """The parameters, which must be plain values."""
    parameters: dict[str, Any] = fitted.get_params(deep=False)
    for name, value in parameters.items():
        plain = value if isinstance(value, (tuple, list)) else [value]
        if not all(v is None or isinstance(v, (bool, int, float, str)) for v in plain):
            raise UsageError(
                f"{name}={value!r} cannot be written to a model file, which holds numbers and "
                "text only."
            )
    return parameters


# ----------------------------------------------------------------------------- reading


def load(path: str | Path) -> Model:
    """Read a model, or say in one sentence why the file is not one."""
    try:
        return _load(path)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
    except ImportError:
        raise
    except MemoryError:
        raise DataError(f"{path} does not fit in memory.") from None
    except (ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        said = str(error).strip().splitlines()
        why = said[0][:200] if said else type(error).__name__
        raise DataError(f"{path} is no demur model, or is damaged: {why}") from error
    except Exception as error:  # what else a made-up file may bring about; with --debug all
        why = f"{type(error).__name__}: {str(error)[:100]}"
        raise DataError(f"{path} is no demur model, or is damaged ({why}).") from error


def _load(path: str | Path) -> Model:
    with Path(path).open("rb") as file, zipfile.ZipFile(file) as archive:
        _check_members(archive, Path(path).stat().st_size, path)
        described = _read_description(archive, path)
        arrays = {
            name: _read_array(archive, entry, name)
            for name, entry in _mapping(described, "arrays").items()
        }
    return _build(described, arrays, path)


def _check_members(archive: zipfile.ZipFile, size: int, path: str | Path) -> None:
    members = archive.infolist()
    names = [member.filename for member in members]
    for name in names:
        if not _MEMBER.fullmatch(name):
            raise DataError(f"{path} is refused: it holds {name[:80]!r}, which no model has.")
    if len(set(names)) < len(names):
        raise DataError(f"{path} is refused: it holds a member twice.")
    if not {"model.json", "checksum"} <= set(names):
        raise DataError(f"{path} is a zip archive but no demur model.")
    packed = any(m.compress_type != zipfile.ZIP_STORED for m in members)
    if packed or sum(member.file_size for member in members) > size:
        raise DataError(f"{path} is refused: it would unpack to more than its own size.")


def _read_description(archive: zipfile.ZipFile, path: str | Path) -> dict[str, Any]:
    if archive.getinfo("model.json").file_size > LONGEST_JSON:
        raise DataError(f"{path} is refused: its description is longer than any model's.")
    text = archive.read("model.json")
    described = json.loads(text)
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(f"{path} is a zip archive but no demur model.")
    version = described.get("format_version")
    if version != FORMAT_VERSION:
        raise DataError(
            f"{path} has format version {str(version)[:20]}, and demur {__version__} reads "
            f"{FORMAT_VERSION}; it was written by demur {str(described.get('demur_version'))[:20]}."
        )
    if archive.read("checksum").strip() != _digest(text).encode():
        raise DataError(f"{path} was changed after it was written: its checksum is wrong.")
    return described


def _read_array(archive: zipfile.ZipFile, entry: Any, name: str) -> NDArray[Any]:
    if not isinstance(entry, dict) or set(entry) != {"member", "sha256"}:
        raise ValueError(f"the entry of array {name[:50]!r} is malformed.")
    try:
        content = archive.read(str(entry["member"]))
    except KeyError:
        raise ValueError(f"the array {name[:50]!r} is missing.") from None
    if _digest(content) != entry["sha256"]:
        raise ValueError(f"the array {name[:50]!r} was changed after it was written.")
    buffer = io.BytesIO(content)
    major, _ = np.lib.format.read_magic(buffer)
    read_header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    if major not in read_header:
        raise ValueError(f"the array {name[:50]!r} is of an unknown version of npy.")
    shape, _, dtype = read_header[major](buffer)
    if dtype.hasobject or dtype.kind not in "biufU":
        raise ValueError(f"the array {name[:50]!r} holds neither numbers nor text.")
    # Asked before memory is taken: a header may claim any shape.
    wanted = dtype.itemsize
    for length in shape:
        wanted *= int(length)
    if wanted != len(content) - buffer.tell() or any(length < 0 for length in shape):
        raise ValueError(f"the array {name[:50]!r} is cut short.")
    buffer.seek(0)
    return np.lib.format.read_array(buffer, allow_pickle=False)


def _mapping(described: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = described.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"its {key!r} is missing.")
    return value


def _build(described: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str | Path) -> Model:
    name = described.get("method")
    if name not in METHODS:
        raise DataError(f"{path} holds a model of {str(name)[:40]!r}, which demur does not have.")
    preparation = _read_preparation(described, arrays)
    parameters = {
        k: tuple(v) if isinstance(v, list) else v
        for k, v in _mapping(described, "parameters").items()
    }
    made = method(name)
    usual = made().get_params()
    for parameter, value in parameters.items():
        if parameter not in usual:
            raise ValueError(f"{name} has no parameter {parameter[:40]!r}.")
        if not is_alike(value, usual[parameter]):
            raise ValueError(f"its parameter {parameter} is of a wrong kind.")
    learned = {k.removeprefix("method/"): v for k, v in arrays.items() if k.startswith("method/")}
    fitted = made(**parameters).from_arrays(learned)
    if fitted.n_features_in_ != preparation.n_features or fitted.classes_.dtype.kind != "U":
        raise ValueError("its method does not fit its columns.")
    training = _read_training(arrays, preparation.n_features, len(fitted.classes_))
    id_column = described.get("id_column")
    summary = _mapping(described, "summary")
    id_column = None if id_column is None else str(id_column)
    return Model(str(name), fitted, preparation, training, id_column, summary)


def is_alike(value: Any, usual: Any) -> bool:
    """Whether a parameter is of the kind of its default; methods check no more than that it fits.

    A whole number stays one. Where the default is None, whole numbers are meant (``n_jobs``),
    or a tuple of them, or None; elsewhere None is no value. No number is larger than arrays hold.
    """
    if isinstance(value, int) and abs(value) >= 2**63:
        return False
    if usual is None:
        several = value if isinstance(value, tuple) else (value,)
        return value is None or all(type(v) is int for v in several)
    if type(usual) is int:
        return type(value) is int
    kinds = ((bool, int, float), (str,), (tuple,))
    return any(isinstance(value, kind) and isinstance(usual, kind) for kind in kinds)


def _read_training(
    arrays: dict[str, NDArray[Any]], n_features: int, n_classes: int
) -> TrainingData:
    X, words = arrays["training/X"], arrays["training/words"]
    check_array(X, "f", (len(X), n_features), "its training data")
    check_words(words, n_classes, len(X))
    check_array(arrays["training/ids"], "U", (len(X),), "its list of ids")
    return TrainingData(X, words, [str(v) for v in arrays["training/ids"].tolist()])


def _read_preparation(described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Preparation:
    entries = described.get("columns")
    if not isinstance(entries, list) or described.get("scaling") not in SCALINGS:
        raise ValueError("its columns are missing.")
    columns = []
    for entry in entries:
        name, values, fill = entry["name"], entry["values"], entry["fill"]
        good = isinstance(name, str) and (
            (values is None and (fill is None or isinstance(fill, (int, float))))
            or (
                isinstance(values, list)
                and values
                and all(isinstance(v, str) for v in values)
                and (fill is None or fill in values)
            )
        )
        if not good:
            raise ValueError(f"the column {str(name)[:40]!r} is malformed.")
        columns.append(Column(name, None if values is None else tuple(values), fill))
    preparation = Preparation(columns, described["scaling"])
    for part in ("offset", "factor"):
        array = arrays[f"features/{part}"]
        check_array(array, "f", (preparation.n_features,), "its scaling")
        setattr(preparation, part, array)
    return preparation
