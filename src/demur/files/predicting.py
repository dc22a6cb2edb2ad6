"""Decide on every row of a table, in batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from demur.files.decisions import REASONS, Decisions, decide
from demur.files.errors import BadRows, DataError, UsageError, share
from demur.files.model_file import Model, load
from demur.files.output import bad_rows_writer, check_outputs, format_of, table_writer
from demur.files.rejected import RejectedRows, page_path
from demur.files.tables import Chunk, TableFile, open_table

if TYPE_CHECKING:
    from demur.files.dialing import Dial, Dialled

Advance = Callable[[int], None]


@dataclass
class Predicted:
    """What `predict` did."""

    path: str
    n_rows: int
    n_accepted: int
    n_bad: int
    threshold: float
    reasons: dict[str, int]
    written: list[str]
    dialled: Dialled | None = None

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows:,} rows: {share(self.n_accepted, self.n_rows)} accepted "
            f"({_over(self.threshold)})"
        ]
        if self.dialled is not None:
            lines.append(str(self.dialled.promise))
            lines += [f"warning: {said}" for said in self.dialled.warnings]
        if self.reasons:
            told = ", ".join(f"{why} {count:,}" for why, count in self.reasons.items())
            lines.append(f"rejected for: {told}")
        if self.n_bad:
            lines.append(f"bad rows skipped: {self.n_bad:,}")
        names = [name for name in [self.path, *self.written] if name != "-"]
        return "\n".join([*lines, *([f"wrote {', '.join(names)}"] if names else [])])


def predict(
    model: str | Path | Model,
    path: str | Path,
    output: str | Path,
    *,
    threshold: float | None = None,
    form: str | None = None,
    rejected: str | Path | None = None,
    label_studio: str | Path | None = None,
    skip_bad: str | Path | None = None,
    advance: Advance | None = None,
    dial: Dial | None = None,
) -> Predicted:
    """Decide on every row of a table; a file larger than memory is read in batches.

    Parameters
    ----------
    model : str, path or Model
    path : str or path
        The table, or ``-`` for standard input.
    output : str or path
        The decisions, or ``-`` for standard output.
    threshold : float, optional
        Accept scores over it; by default the method's own.
    form : {"csv", "parquet", "jsonl"}, optional
        By default what the name of the output ends in.
    rejected : str or path, optional
        Where the rejected rows go, the most useful to look at first.
    label_studio : str or path, optional
        Where tasks for Label Studio go (.json), with a page to label them on beside (.xml).
    skip_bad : str or path, optional
        Where bad rows go; by default they are an error and nothing is written.
    advance : callable, optional
        Called with the number of rows done.
    dial : Dial, optional
        Sets the threshold. What it promises is written beside each decision, in a column
        ``dial``. It needs the path of the model, not a loaded one.

    Returns
    -------
    Predicted
    """
    if dial is not None and threshold is not None:
        raise UsageError("--threshold is a dial of its own; give it or another, not both.")
    model_path = "" if isinstance(model, Model) else model
    model = model if isinstance(model, Model) else load(model)
    form = format_of(output, form)
    page = None if label_studio is None else page_path(label_studio)
    gold = None if dial is None else dial.gold
    check_outputs(
        [model_path or None, path, gold], [rejected, label_studio, page, skip_bad], by_pipe=output
    )
    if rejected is not None:
        format_of(rejected, None)
    if threshold is not None and np.isnan(threshold):
        raise UsageError("the threshold is no number; give one, such as 0.")
    dialled = note = None
    if dial is not None:
        dialled = dial.threshold(model, model_path, path)
        threshold, note = dialled.threshold, dialled.promise.statement
    n = n_accepted = 0
    counts: dict[str, int] = {}
    kept = RejectedRows()
    with closing(kept), open_table(path) as source, ExitStack() as stack:
        write = None
        if skip_bad is not None:
            write = stack.enter_context(bad_rows_writer(skip_bad, source.unit))
        bad = BadRows(source.name, source.unit, keep=skip_bad is not None, write=write)
        columns = None if rejected is not None or label_studio is not None else needed(model)
        pieces = judged_pieces(model, source, bad, threshold, columns)
        first = next(pieces, None)
        bad.check()
        if first is None and not bad.count:
            raise DataError(f"{source.name} holds no rows, only the names of its columns.")
        schema = _named(model, source, *(first or _nothing(model, source)), note).schema
        with table_writer(output, form, schema) as writer:
            while first is not None:
                chunk, decisions = first
                writer.write(_named(model, source, chunk, decisions, note).cast(schema))
                n += len(chunk.table)
                n_accepted += int(decisions.accepted.sum())
                for why, count in _why(decisions):
                    counts[why] = counts.get(why, 0) + count
                if columns is None:
                    kept.add(chunk.table, decisions)
                if advance:
                    advance(len(chunk.table))
                first = next(pieces, None)
            bad.check()
        if columns is None:
            kept.write(rejected, label_studio, model.classes)
    limit = float(model.method.accept_threshold_) if threshold is None else float(threshold)
    written = [str(p) for p in (rejected, label_studio, skip_bad, page) if p is not None]
    return Predicted(
        str(output), n, n_accepted, bad.count, limit, dict(sorted(counts.items())), written, dialled
    )


def _over(threshold: float) -> str:
    if abs(threshold) < sys.float_info.max:
        return f"accept score over {threshold:g}"
    return "whatever the accept score"


def needed(model: Model) -> list[str]:
    """The columns that a model reads."""
    return [*model.preparation.names, *([model.id_column] if model.id_column else [])]


def check_table(model: Model, source: TableFile) -> None:
    """Refuse a table without the columns that a model reads."""
    model.preparation.check_names(source.columns, source.name)
    if model.id_column is not None and model.id_column not in source.columns:
        raise DataError(f"{source.name} lacks the id column {model.id_column!r} of the model.")


def judged_pieces(
    model: Model,
    source: TableFile,
    bad: BadRows,
    threshold: float | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[tuple[Chunk, Decisions]]:
    """The good rows of a table, some at a time, with the decisions on them.

    Once a bad row is met that may not be skipped, the rest is only looked through for more.
    """
    check_table(model, source)
    for chunk in source.chunks(columns):
        encoded = model.preparation.encode(chunk, source.name)
        bad.add(sorted(chunk.bad + encoded.bad))
        if bad.enough:
            return
        if bad.stop or not len(encoded.X):
            continue
        decisions = decide(model.method, model.preparation.scale(encoded.X), threshold)
        yield keep_rows(chunk, encoded.good), decisions


def keep_rows(chunk: Chunk, good: NDArray[np.bool_]) -> Chunk:
    """A chunk without its bad rows."""
    if good.all():
        return chunk
    return Chunk(chunk.table.filter(pa.array(good)), chunk.places[good], chunk.bad)


def _named(
    model: Model, source: TableFile, chunk: Chunk, decisions: Decisions, note: str | None
) -> pa.Table:
    """Decisions beside the id of each row, or its place in the file."""
    table = decisions.table()
    if model.id_column is not None:
        table = table.add_column(0, model.id_column, chunk.table[model.id_column])
    else:
        table = table.add_column(0, source.unit, pa.array(chunk.places))
    if note is not None:
        table = table.append_column("dial", pa.array([note] * len(table), pa.string()))
    return table


def _nothing(model: Model, source: TableFile) -> tuple[Chunk, Decisions]:
    """What stands for a table without a good row, to know the columns of the output."""
    ids = {} if model.id_column is None else {model.id_column: pa.array([""])}
    chunk = Chunk(pa.table(ids), np.zeros(1, dtype=np.int64), [])
    return chunk, decide(model.method, model.preparation.scale(model.training.X[:1]))


def _why(decisions: Decisions) -> Iterator[tuple[str, int]]:
    """Kinds of reasons, without the labels, and how often each was met."""
    for text, count in zip(*np.unique(decisions.reason, return_counts=True), strict=True):
        if text:
            yield REASONS[int(text)].split(":")[0], int(count)
