"""Tables read in batches: CSV, TSV, Parquet, Arrow and Label Studio's JSON, from file or pipe.

A bad row never vanishes: what cannot be read as a row comes out beside the good ones, with
the place where it stands in the file and the reason.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from demur.files.errors import BadRow, DataError
from demur.files.label_studio import read_tasks

ROWS_AT_ONCE = 2**16
BLOCK = 2**22  # bytes of a text file that are parsed together; no row may be longer
HEADER = 2**20
# Takes the place of bytes that are no UTF-8: a code point that is no character in any text.
MARK = "\ufdd0"


def _mark(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"{MARK}{b:02x}" for b in error.object[error.start : error.end]), error.end


codecs.register_error("demur-mark", _mark)


class Chunk(NamedTuple):
    """Some rows of a file: the good ones as a table, where they stand, and the bad ones."""

    table: pa.Table
    places: NDArray[np.int64]
    bad: list[BadRow]


class TableFile:
    """A table in a file, to be read once from its first row to its last.

    Attributes
    ----------
    name : str
        What to call the file in messages.
    unit : {"line", "row", "task"}
        What places count.
    columns : list of str
    n_rows : int or None
        Where the file tells.
    answers : LabelStudioAnswers or None
        What annotators chose, where the file is an export of Label Studio.
    """

    answers: Any = None
    n_rows: int | None = None
    _stream: IO[bytes] | None = None

    def __init__(self, name: str, unit: str, columns: Sequence[str]) -> None:
        self.name, self.unit, self.columns = name, unit, list(columns)
        repeated = {c for c in self.columns if self.columns.count(c) > 1}
        if repeated:
            raise DataError(f"{name} has more than one column called {min(repeated)!r}.")
        if not self.columns:
            raise DataError(f"{name} has no columns.")

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """The rows, some at a time; of the columns given at least those."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()


def open_table(path: str | Path) -> TableFile:
    """Open a table; its beginning tells what it is, and ``-`` is standard input.

    Close what you get: it is a context manager.
    """
    if str(path) == "-":
        return _open_stream(sys.stdin.buffer, "standard input")
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 (the table closes it)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
    try:
        table = _open_stream(stream, str(path))
    except BaseException:
        stream.close()
        raise
    table._stream = stream
    return table


def _open_stream(stream: IO[bytes], name: str) -> TableFile:
    try:
        return _open_by(stream.read(HEADER), stream, name)
    except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
        raise DataError(f"cannot read {name}: {_first_line(error)}") from error


def _open_by(start: bytes, stream: IO[bytes], name: str) -> TableFile:
    if not start:
        raise DataError(f"{name} is empty.")
    if start[:4] == b"PAR1":
        return _ParquetTable(name, _seekable(start, stream))
    if start[:6] == b"ARROW1":
        return _ArrowTable(name, pa.ipc.open_file(_seekable(start, stream)))
    if start[:4] == b"\xff\xff\xff\xff":
        return _ArrowTable(name, pa.ipc.open_stream(pa.PythonFile(_Joined(start, stream), "r")))
    if start[:4] == b"PK\x03\x04":
        raise DataError(f"{name} is a spreadsheet or a zip archive; save it as CSV (UTF-8).")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{name} is UTF-16 text; save it as CSV in UTF-8.")
    if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        table, answers = read_tasks(start + stream.read(), name)
        return _MemoryTable(name, "task", table, answers)
    return _TextTable(name, start, stream)


def _seekable(start: bytes, stream: IO[bytes]) -> Any:
    """The whole file, to be read from any place; a pipe is read into memory."""
    if stream.seekable():
        stream.seek(0)
        return stream
    return pa.BufferReader(start + stream.read())


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]


class _Joined(io.RawIOBase):
    """What was read of a stream already, and then the rest of it."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self.start, self.rest = start, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            found, self.start = self.start + self.rest.read(), b""
            return found
        if self.start:
            found, self.start = self.start[:size], self.start[size:]
            return found
        return self.rest.read(size)


# ----------------------------------------------------------------------------- text


class _Decoded(io.RawIOBase):
    """A stream as valid UTF-8, where marks stand for bytes that are none."""

    def __init__(self, stream: _Joined) -> None:
        self.stream = stream
        self.decoder = codecs.getincrementaldecoder("utf-8")("demur-mark")
        self.ready, self.ended = b"", False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self.ended and (size < 0 or len(self.ready) < size):
            found = self.stream.read(BLOCK)
            self.ended = not found
            self.ready += self.decoder.decode(found, final=self.ended).encode("utf-8")
        cut = len(self.ready) if size < 0 else size
        given, self.ready = self.ready[:cut], self.ready[cut:]
        return given


class _TextTable(TableFile):
    def __init__(self, name: str, start: bytes, stream: IO[bytes]) -> None:
        start = start.removeprefix(codecs.BOM_UTF8)
        names, length, lines, self.delimiter = _read_header(start, name)
        super().__init__(name, "line", names)
        self.stream = _Decoded(_Joined(start[length:], stream))
        self.first_line = lines + 1

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """All columns, as text."""
        bad: list[tuple[int, str, str]] = []

        def note(row: Any) -> str:
            fields = "field" if row.actual_columns == 1 else "fields"
            reason = f"{row.actual_columns} {fields} instead of {row.expected_columns}"
            if extra := row.text.count("\n"):
                reason += f", over {extra + 1} lines: is a quote left open?"
            bad.append((row.number, reason, row.text))
            return "skip"

        first = self.stream.read(1)
        if not first:
            return
        self.stream.ready = first + self.stream.ready
        numbered = _Numbers(self.first_line, bad, self.delimiter)
        try:
            reader = pcsv.open_csv(
                pa.PythonFile(self.stream, mode="r"),
                # One thread: else the rows that are left out have no numbers.
                read_options=pcsv.ReadOptions(
                    column_names=self.columns, use_threads=False, block_size=BLOCK
                ),
                parse_options=pcsv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=False,
                    invalid_row_handler=note,
                ),
                convert_options=pcsv.ConvertOptions(
                    column_types=dict.fromkeys(self.columns, pa.string()),
                    strings_can_be_null=False,
                ),
            )
            for batch in reader:
                yield numbered.chunk(pa.Table.from_batches([batch]))
        except (pa.ArrowException, OSError) as error:
            why = _first_line(error)
            if "straddl" in why:  # arrow's words for a row that is longer than a block
                why = (
                    f"a row after line {numbered.line - 1} is longer than {BLOCK // 2**20} MiB; "
                    "is a quote left open?"
                )
            raise DataError(f"cannot read {self.name}: {why}") from error
        yield numbered.rest(self.columns)


def _read_header(start: bytes, name: str) -> tuple[list[str], int, int, str]:
    """Names of the columns, length of the header in bytes and lines, and the delimiter."""
    text = start.decode("utf-8", "demur-mark")
    lines = io.StringIO(text, newline="").readlines()
    line = lines[0]
    delimiter = max(",\t;", key=lambda mark: _outside_quotes(line, mark))
    reader = csv.reader(iter(lines), delimiter=delimiter)
    names = [field.strip() for field in next(reader)]
    header = "".join(lines[: reader.line_num])
    if MARK in header:
        raise DataError(f"the header of {name} is not UTF-8; save the file as CSV in UTF-8.")
    if not any(names):
        raise DataError(f"the first line of {name} is blank; it should name the columns.")
    if "\0" in header:
        raise DataError(f"{name} is no text; give CSV, TSV, Parquet, Arrow or Label Studio's JSON.")
    named = [field or f"column {i}" for i, field in enumerate(names, start=1)]
    return named, len(header.encode("utf-8")), reader.line_num, delimiter


def _outside_quotes(line: str, mark: str) -> int:
    return sum(part.count(mark) for part in line.split('"')[::2])


class _Numbers:
    """Tells in which line each row stands, which the parser does not."""

    def __init__(self, line: int, bad: list[tuple[int, str, str]], delimiter: str) -> None:
        self.row, self.line = 1, line  # of the next row
        self.bad, self.delimiter = bad, delimiter

    def chunk(self, table: pa.Table) -> Chunk:
        """Places of the rows; blank lines are no rows, and marked ones are bad."""
        known = np.asarray([number for number, _, _ in self.bad], dtype=np.int64)
        numbers = self.row + np.arange(len(table) + len(known))
        numbers = numbers[~np.isin(numbers, known)][: len(table)]
        before = int(np.searchsorted(known, numbers[-1])) if len(numbers) else 0
        found, self.bad[:before] = self.bad[:before], []
        last = int(numbers[-1]) if len(numbers) else self.row - 1
        extra = np.zeros(last - self.row + 1, dtype=np.int64)
        extra[numbers - self.row] = _count(table, "\n")
        for number, _, text in found:
            extra[number - self.row] = text.count("\n")
        places = self.line + np.arange(len(extra)) + np.cumsum(extra) - extra
        rows = [_bad_row(int(places[k - self.row]), why, text) for k, why, text in found]
        where = places[numbers - self.row]
        self.row, self.line = last + 1, self.line + len(extra) + int(extra.sum())
        blank = np.logical_and.reduce([_lengths(column) == 0 for column in table.columns])
        marked = (_count(table, MARK) > 0) & ~blank
        for i in np.flatnonzero(marked):
            text = join_cells(table, int(i), self.delimiter)
            rows.append(_bad_row(int(where[i]), "the text is not UTF-8", text))
        keep = ~(blank | marked)
        good = table if keep.all() else table.filter(pa.array(keep))
        return Chunk(good, where[keep], sorted(rows))

    def rest(self, columns: list[str]) -> Chunk:
        """Bad rows after the last good one."""
        rows = []
        for number, why, text in self.bad:
            self.line += number - self.row
            rows.append(_bad_row(self.line, why, text))
            self.row, self.line = number + 1, self.line + 1 + text.count("\n")
        empty = pa.table({name: pa.array([], pa.string()) for name in columns})
        return Chunk(empty, np.zeros(0, dtype=np.int64), rows)


def _bad_row(line: int, reason: str, text: str) -> BadRow:
    if MARK in text:
        text = text.replace(MARK, "\\x")
        reason = "the text is not UTF-8" if "UTF-8" in reason else f"{reason}, and no UTF-8"
    return BadRow(line, reason, text)


def _count(table: pa.Table, what: str) -> NDArray[np.int64]:
    total = np.zeros(len(table), dtype=np.int64)
    for column in table.columns:
        found = pc.count_substring(column, what)
        if pc.any(pc.greater(found, 0)).as_py():
            total += np.asarray(found)
    return total


def _lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(pc.binary_length(column))


def join_cells(table: pa.Table, row: int, delimiter: str = ",") -> str:
    """A row as a line of CSV."""
    out = io.StringIO()
    cells = [column[row].as_py() for column in table.columns]
    csv.writer(out, delimiter=delimiter, lineterminator="").writerow(cells)
    return out.getvalue()


# ----------------------------------------------------------------------------- typed


class _ParquetTable(TableFile):
    def __init__(self, name: str, source: Any) -> None:
        self.file = pq.ParquetFile(source, buffer_size=2**20, pre_buffer=False)
        super().__init__(name, "row", self.file.schema_arrow.names)
        self.n_rows = self.file.metadata.num_rows

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """The columns given, or all."""
        wanted = None if columns is None else [c for c in self.columns if c in set(columns)]

        def batches() -> Iterator[pa.RecordBatch]:
            return iter(self.file.iter_batches(ROWS_AT_ONCE, columns=wanted))

        yield from _placed(batches, self.name)


class _ArrowTable(TableFile):
    def __init__(self, name: str, reader: Any) -> None:
        self.reader = reader
        super().__init__(name, "row", reader.schema.names)

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """All columns."""

        def batches() -> Iterator[pa.RecordBatch]:
            if not hasattr(self.reader, "num_record_batches"):
                return iter(self.reader)
            count = self.reader.num_record_batches
            return (self.reader.get_batch(i) for i in range(count))

        yield from _placed(batches, self.name)


class _MemoryTable(TableFile):
    def __init__(self, name: str, unit: str, table: pa.Table, answers: Any) -> None:
        super().__init__(name, unit, table.column_names)
        self.table, self.answers, self.n_rows = table, answers, len(table)

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """All columns."""
        yield Chunk(self.table, np.arange(1, len(self.table) + 1), [])


def _placed(batches: Callable[[], Iterator[pa.RecordBatch]], name: str) -> Iterator[Chunk]:
    """Batches with the numbers of their rows, no more of them at once than is wanted."""
    start = 1
    try:
        for batch in batches():
            batch.validate(full=True)  # the bytes of a file may claim anything
            for first in range(0, len(batch), ROWS_AT_ONCE):
                table = pa.Table.from_batches([batch.slice(first, ROWS_AT_ONCE)])
                yield Chunk(table, start + np.arange(len(table)), [])
                start += len(table)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read {name}: {_first_line(error)}") from error


def read_whole(source: TableFile) -> Chunk:
    """All rows at once."""
    tables, places, bad = [], [], []
    for chunk in source.chunks():
        tables.append(chunk.table)
        places.append(chunk.places)
        bad += chunk.bad
    if not sum(map(len, tables)) and not bad:
        raise DataError(f"{source.name} holds no rows, only the names of its columns.")
    with suppress(pa.ArrowException):
        return Chunk(pa.concat_tables(tables), np.concatenate(places), bad)
    raise DataError(f"the batches of {source.name} differ in their columns.")
