"""Rejected rows, for people to look at: the most useful first."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from demur.files.decisions import Decisions
from demur.files.errors import UsageError
from demur.files.label_studio import labelling_page, task
from demur.files.output import atomic, format_of, table_writer

ROWS_AT_ONCE = 4096
ANSWER = "demur_answer"
OURS = ("demur_label", "demur_plausible", "demur_score", "demur_reason", ANSWER)


class RejectedRows:
    """Collects rejected rows on disk while a file is read, and then writes them in order.

    First come the rows that the method is least sure of: there its label is wrong most
    often (docs/files.md tells how often).
    """

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="demur-")
        self.path = Path(self.folder.name) / "rejected.arrow"
        self.schema = pa.schema([(name, pa.string()) for name in OURS])
        self.writer: Any = None
        self.scores: list[NDArray[np.float64]] = []

    def __len__(self) -> int:
        return sum(map(len, self.scores))

    def close(self) -> None:
        """Forget the rows."""
        if self.writer is not None:
            self.writer.close()
        self.folder.cleanup()

    def add(self, table: pa.Table, decisions: Decisions) -> None:
        """Take the rejected rows of a batch, with all their columns."""
        rows = np.flatnonzero(~decisions.accepted)
        taken = [name for name in OURS if name in table.column_names]
        if taken:
            # They were written by an earlier round, and what they say is out of date.
            table = table.drop_columns(taken)
        kept = table.take(pa.array(rows))
        plausible = [decisions.plausible(int(row)) for row in rows]
        names = pa.array(decisions.classes, pa.string())
        ours: list[Any] = [
            names.take(pa.array(decisions.top[rows])),
            pa.array(plausible, pa.list_(pa.string())),
            pa.array(decisions.accept[rows]),
            decisions.reasons().take(pa.array(rows)),
            pa.array([""] * len(rows), pa.string()),
        ]
        for name, values in zip(OURS, ours, strict=True):
            kept = kept.append_column(name, values)
        if self.writer is None:
            self.schema = kept.schema
            self.writer = pa.ipc.new_file(str(self.path), self.schema)
        self.writer.write_table(kept)
        self.scores.append(decisions.accept[rows])

    def _in_order(self) -> Iterator[pa.Table]:
        """Tables of some rows each, the least sure first."""
        if self.writer is None:
            return
        self.writer.close()
        order = np.argsort(np.concatenate(self.scores), kind="stable")
        with pa.memory_map(str(self.path)) as file:
            table = pa.ipc.open_file(file).read_all()  # stays on disk
            for start in range(0, len(order), ROWS_AT_ONCE):
                yield table.take(pa.array(order[start : start + ROWS_AT_ONCE]))

    def write(
        self, table_path: str | Path | None, studio_path: str | Path | None, classes: list[str]
    ) -> None:
        """Write a table, and tasks for Label Studio with a page to label them on."""
        if table_path is not None:
            form = format_of(table_path, None)
            with table_writer(table_path, form, self.schema) as writer:
                for piece in self._in_order():
                    writer.write(piece)
        if studio_path is not None:
            self._write_tasks(studio_path, classes)

    def _write_tasks(self, path: str | Path, classes: list[str]) -> None:
        from demur import __version__

        by = f"demur {__version__}"
        with atomic(path) as out:
            before = b"["
            for piece in self._in_order():
                for row in piece.to_pylist():
                    ours = {name: row.pop(name) for name in OURS}
                    labels = ours["demur_plausible"]
                    text = task(row, ours["demur_label"], labels, ours["demur_score"], by)
                    out.write(before + b"\n" + text.encode())
                    before = b","
            out.write((b"[" if before == b"[" else b"") + b"\n]\n")
        with atomic(page_path(path)) as out:
            out.write(labelling_page(classes).encode())


def page_path(path: str | Path) -> Path:
    """Where the description of the labelling page goes: beside the tasks."""
    found = Path(path).with_suffix(".xml")
    if found == Path(path):
        raise UsageError(f"{path}: end the file of tasks in .json.")
    return found
