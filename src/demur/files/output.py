"""Writing: whole files or none, in the form that was asked for."""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from demur.files.columns import is_text
from demur.files.errors import BadRow, DataError, UsageError

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl"}


@contextmanager
def atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name once it is whole; ``-`` is standard output.

    A link stays one, and a pipe or device such as ``/dev/null`` is written to as it is.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if _is_device(path):
        try:
            device = Path(path).open("wb")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror}.") from None
        with device:
            yield device
        return
    target = Path(os.path.realpath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)  # else only the owner could read it
        try:
            os.replace(temporary, target)
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror}.") from None
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def check_outputs(
    inputs: Iterable[str | Path | None],
    outputs: Iterable[str | Path | None],
    *,
    by_pipe: str | Path | None = None,
) -> None:
    """Refuse outputs that would take the place of an input or each other, or cannot be written.

    Standard input is read once, and only the output ``by_pipe`` may go to standard output.
    """
    sources = [path for path in inputs if path is not None]
    targets = [path for path in outputs if path is not None]
    if sum(str(path) == "-" for path in sources) > 1:
        raise UsageError("only one file can come from standard input (-).")
    for path in targets:
        if str(path) == "-":
            raise UsageError("give each output a file of its own; only decisions may go to -.")
    taken = {os.path.realpath(path): "is what the command reads" for path in sources}
    if by_pipe is not None and str(by_pipe) != "-":
        targets.append(by_pipe)
    for path in targets:
        place = os.path.realpath(path)
        if place in taken:
            raise UsageError(f"{path} {taken[place]}; give each output a file of its own.")
        if not _is_device(path):
            _check_place(path, place)
            taken[place] = "is written twice by the same command"


def _check_place(path: str | Path, place: str) -> None:
    """Refuse at once what would fail at the end, when the work is done."""
    folder = os.path.dirname(place)
    if os.path.isdir(place):
        raise DataError(f"cannot write {path}: it is a folder.")
    if not os.path.isdir(folder):
        raise DataError(f"cannot write {path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise DataError(f"cannot write {path}: the folder {folder} may not be written to.")


def _is_device(path: str | Path) -> bool:
    """Whether a path is there and neither file nor folder."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def format_of(path: str | Path, asked: str | None) -> str:
    """csv, parquet or jsonl: as asked for, else as the ending of the file says."""
    if asked is not None:
        if asked not in FORMATS.values():
            raise UsageError(f"--format is csv, parquet or jsonl; got {asked!r}.")
        return asked
    if str(path) == "-":
        return "csv"
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"{path}: which format? End it in .csv, .parquet or .jsonl, or --format.")
    return FORMATS[ending]


class TableWriter(Protocol):
    """Takes a table a piece at a time."""

    def write(self, table: pa.Table) -> None:
        """Write some rows."""

    def close(self) -> None:
        """Write what is left."""


class _Csv:
    """CSV has no lists: their members are separated by a bar, as `--candidates` reads them."""

    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        self.out = out
        self.nested = [i for i, kind in enumerate(schema.types) if pa.types.is_nested(kind)]
        lines: Any = _Lines(out)
        csv.writer(lines, lineterminator="\n").writerow(schema.names)

    def write(self, table: pa.Table) -> None:
        for i in self.nested:
            values = [_joined(value) for value in table[i].to_pylist()]
            table = table.set_column(i, table.column_names[i], pa.array(values, pa.string()))
        # Arrow quotes all text or none; most tables need no quotes.
        style = "needed" if any(map(_needs_quotes, table.columns)) else "none"
        options = pcsv.WriteOptions(include_header=False, quoting_style=style)
        pcsv.write_csv(table, self.out, options)

    def close(self) -> None:
        self.out.flush()


def _needs_quotes(column: Any) -> bool:
    if not is_text(column):
        return False
    found = pc.match_substring_regex(column.cast(pa.string()), '[",\r\n]')
    return bool(pc.any(found).as_py())


def _joined(value: Any) -> str | None:
    return "|".join(map(str, value)) if isinstance(value, list) else value and str(value)


class _Parquet:
    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        self.writer = pq.ParquetWriter(out, schema)

    def write(self, table: pa.Table) -> None:
        self.writer.write_table(table)

    def close(self) -> None:
        self.writer.close()


class _JsonLines:
    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        self.out = out

    def write(self, table: pa.Table) -> None:
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in table.to_pylist()]
        self.out.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        self.out.flush()


def write_bad_rows(path: str | Path, rows: Iterable[BadRow], unit: str) -> None:
    """Bad rows with their places and reasons, as CSV."""
    with bad_rows_writer(path, unit) as write:
        write(rows)


@contextmanager
def bad_rows_writer(path: str | Path, unit: str) -> Iterator[Callable[[Iterable[BadRow]], object]]:
    """The same, some at a time."""
    with atomic(path) as out:
        lines: Any = _Lines(out)
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow([unit, "reason", "text"])
        yield writer.writerows


class _Lines:
    def __init__(self, out: IO[bytes]) -> None:
        self.out = out

    def write(self, text: str) -> None:
        self.out.write(text.encode("utf-8", "backslashreplace"))


_WRITERS: dict[str, Any] = {"csv": _Csv, "parquet": _Parquet, "jsonl": _JsonLines}


@contextmanager
def table_writer(path: str | Path, form: str, schema: pa.Schema) -> Iterator[TableWriter]:
    """A table that appears under its name once it is whole."""
    with atomic(path) as out:
        writer: TableWriter = _WRITERS[form](out, schema)
        yield writer
        writer.close()
