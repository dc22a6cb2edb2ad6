"""Results on disk: one Parquet file a run, which is there as a whole or not at all.

The rows are what the run judged. What is to be known of the run lies in the same file, as JSON
in the metadata of its schema, so that one rename publishes both.

>>> import tempfile
>>> import numpy as np
>>> from demur.bench.judged import Judged
>>> from demur.bench.spec import Spec
>>> from demur.bench.store import read_results, write_run
>>> run = Spec("toy", "dst-pll", "real", seed=0)
>>> judged = Judged(*np.array([[7, 9], [0, 1], [0, 2], [1, 0], [1, 1]]))
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = write_run(folder, run, {"threshold": 0.0}, judged)
...     results = read_results(folder)
>>> results.rows[["dataset", "method", "row", "y_true", "y_pred", "accept_score"]]
  dataset   method  row  y_true  y_pred  accept_score
0     toy  dst-pll    7       0       0           1.0
1     toy  dst-pll    9       1       2           0.0
>>> results.runs[["dataset", "seed", "status", "threshold"]]
  dataset  seed status  threshold
0     toy     0     ok        0.0
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from demur.bench.judged import Judged
from demur.bench.spec import Spec, canonical

try:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:
    raise ImportError(
        f"results are kept and read with pandas and pyarrow, but there is no {error.name}; "
        'install them with: pip install "demur[bench]"'
    ) from error

FORMAT = 1
RUNS = "runs"
CONSTANTS = ("run_id", "dataset", "classes", "noise", "method", "seed", "split")
SCHEMA = pa.schema(
    [
        *((name, pa.int64() if name == "seed" else pa.string()) for name in CONSTANTS),
        ("row", pa.int32()),
        ("y_true", pa.int32()),
        ("y_pred", pa.int32()),
        ("accept_score", pa.float64()),
        ("max_proba", pa.float64()),
    ]
)
COLUMNS = tuple(SCHEMA.names)
_FACTS, _FACTS_DIGEST = b"demur.run", b"demur.run.sha256"
# The first columns of Results.runs; others follow as the files have them.
_RUN_COLUMNS = (
    "run_id", "dataset", "classes", "noise", "noise_parameters", "method", "parameters", "encoder",
    "seed", "test_size", "status", "error", "threshold", "device", "seconds_prepare",
    "seconds_fit", "seconds_predict", "peak_mib", "n_train", "n_test", "n_features", "n_classes",
)  # fmt: skip


class Results(NamedTuple):
    """All results of a folder.

    Attributes
    ----------
    rows : DataFrame
        One row a judged instance: run_id, dataset, classes (the filter), noise, method, seed,
        split ("test"), row (index in the dataset), y_true and y_pred (positions among the
        dataset's classes), accept_score, max_proba.
    runs : DataFrame
        One row a run: every field of its `Spec` (mappings as JSON), run_id, status ("ok" or
        "failed"), error, threshold, device, seconds_prepare, seconds_fit, seconds_predict,
        peak_mib, n_train, n_test, n_features, n_classes, and what else its file tells. Runs
        that were trained as one stack share their seconds evenly.
    damaged : list of Path
        Files that could not be read, and are left out.
    """

    rows: pd.DataFrame
    runs: pd.DataFrame
    damaged: list[Path]


class DamagedFileError(ValueError):
    """A file is not one that was written here, from the first byte to the last."""


def path_of(folder: str | Path, run_id: str) -> Path:
    """Where the results of a run lie."""
    return Path(folder) / RUNS / f"{run_id}.parquet"


# ------------------------------------------------------------------------------- writing


def write_run(
    folder: str | Path, spec: Spec, facts: Mapping[str, Any], judged: Judged | None
) -> Path:
    """Put the results of a run in place, at once and for good.

    Only one process may write a run at a time.

    Parameters
    ----------
    folder : path
    spec : Spec
    facts : mapping
        What is to be known of the run, as JSON knows it.
    judged : Judged or None
        None for a run that failed; its ``error`` is then among the facts.

    Returns
    -------
    Path
    """
    path = path_of(folder, spec.run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{spec.run_id}.draft")
    try:
        with draft.open("wb") as file:
            pq.write_table(_table(spec, facts, judged), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    _sync_folder(path.parent)
    return path


def _table(spec: Spec, facts: Mapping[str, Any], judged: Judged | None) -> pa.Table:
    arrays = [np.asarray(a) for a in judged] if judged is not None else [np.empty(0)] * 5
    n = len(arrays[0])
    values = [pa.repeat(pa.scalar(v, SCHEMA.field(k).type), n) for k, v in _constants(spec).items()]
    types = SCHEMA.types[len(CONSTANTS) :]
    measured = [pa.array(a.astype(t.to_pandas_dtype())) for a, t in zip(arrays, types, strict=True)]
    table = pa.table([*values, *measured], schema=SCHEMA)
    told = {
        **facts,
        "format": FORMAT,
        "spec": spec.as_dict(),
        "status": "failed" if judged is None else "ok",
        "n_rows": n,
        "digest": rows_digest(table),
    }
    text = canonical(told).encode()
    return table.replace_schema_metadata({_FACTS: text, _FACTS_DIGEST: _sha256(text)})


def _constants(spec: Spec) -> dict[str, Any]:
    values = {**spec.as_dict(), "run_id": spec.run_id, "split": "test"}
    return {name: values[name] for name in CONSTANTS}


def _sync_folder(folder: Path) -> None:
    """Make a rename last, where a folder can be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def rows_digest(table: pa.Table) -> str:
    """The sha256 of all values in the rows; equal for the same results, whoever computed them."""
    digest = hashlib.sha256()
    for name in COLUMNS:
        column = table.column(name)
        if pa.types.is_string(column.type):
            encoded = column.combine_chunks().dictionary_encode()
            digest.update(json.dumps([name, encoded.dictionary.to_pylist()]).encode())
            values = encoded.indices.to_numpy()
        else:
            digest.update(json.dumps([name, str(column.type)]).encode())
            values = column.to_numpy()
        digest.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def _sha256(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


# ------------------------------------------------------------------------------- reading


def read_run(path: str | Path) -> tuple[pa.Table, dict[str, Any]]:
    """Rows and facts of one run.

    Raises
    ------
    DamagedFileError
        If anything in the file is not as it was written.
    """
    path = Path(path)
    try:
        # By its bytes: a name in the path must not become a column.
        table = pq.read_table(pa.BufferReader(path.read_bytes()))
        told = table.schema.metadata or {}
        text = told[_FACTS]
        if told[_FACTS_DIGEST] != _sha256(text):
            raise DamagedFileError("its metadata was altered")
        facts: dict[str, Any] = json.loads(text)
        if facts["format"] != FORMAT:
            raise DamagedFileError(f"it is of format {facts['format']}, not {FORMAT}")
        if facts["n_rows"] != table.num_rows or facts["digest"] != rows_digest(table):
            raise DamagedFileError("its rows were altered")
        if Spec(**facts["spec"]).run_id != path.stem:
            raise DamagedFileError("it holds another run than its name says")
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, DamagedFileError) else "not a whole file of results"
        raise DamagedFileError(f"{path}: {why}.") from error
    return table.replace_schema_metadata(None), facts


def files_of(folder: str | Path) -> list[Path]:
    """The files of all runs in a folder, in order."""
    return sorted(Path(folder, RUNS).glob("*.parquet"))


def read_results(folder: str | Path) -> Results:
    """Read all results of a folder.

    Files that are damaged are left out with a warning.

    Parameters
    ----------
    folder : path
        Of ``demur bench run --out``.

    Returns
    -------
    Results
    """
    tables, runs, damaged = [SCHEMA.empty_table()], [], []
    for path in files_of(folder):
        try:
            table, facts = read_run(path)
        except DamagedFileError as error:
            warnings.warn(f"left out {error} The run that made it makes it anew.", stacklevel=2)
            damaged.append(path)
            continue
        tables.append(table)
        runs.append(_run_row(facts))
    if not runs:
        raise ValueError(
            f"{folder} holds no results; make some with: demur bench run PRESET --out {folder}"
        )
    rows = pa.concat_tables(tables).to_pandas()
    keys = ["dataset", "classes", "noise", "method", "seed"]
    listed = pd.DataFrame(runs).sort_values([*keys, "run_id"], ignore_index=True)
    rows = rows.sort_values([*keys, "run_id", "row"], kind="stable", ignore_index=True)
    return Results(rows, listed, damaged)


def _run_row(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A run as one flat row; what is not flat becomes JSON."""
    spec = Spec(**facts["spec"])
    told = {k: v for k, v in facts.items() if k not in ("format", "spec", "n_rows")}
    values = {**spec.as_dict(), "run_id": spec.run_id, **told}
    ordered: Iterable[str] = dict.fromkeys([*_RUN_COLUMNS, *values])
    flat = {k: values.get(k) for k in ordered}
    return {k: canonical(v) if isinstance(v, (dict, list)) else v for k, v in flat.items()}
