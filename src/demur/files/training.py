"""Training data from files: rows with their ids and candidates, or with people's answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.files.answers import (
    Answers,
    Found,
    Rule,
    from_answers,
    from_columns,
    read_answers,
    row_ids,
    studio_answers,
)
from demur.files.columns import choose, label_text, listed, texts
from demur.files.errors import BadRow, BadRows, DataError, UsageError
from demur.files.model_file import Model
from demur.files.rejected import ANSWER
from demur.files.tables import Chunk, TableFile, join_cells, open_table, read_whole


@dataclass
class Wanted:
    """Where ids and candidates of a training table come from.

    Parameters
    ----------
    candidates : str, optional
        A column of lists or of separated labels, or several 0/1 columns.
    separator : str, default="|"
    answers : str or path, optional
        A file of annotators' answers in the long form, or a Label Studio export.
    answer_columns : sequence of str
        Its columns of item, worker and label.
    rule : str, default="union"
        Which of the answers are candidates, see `demur.files.answers.Rule`.
    id_column : str, optional
        The column of ids, by which answers are joined.
    classes : list of str, optional
        All labels; any other is a bad row. By default those that occur.
    control : str, optional
        Whose choices to take in a Label Studio export with several questions.
    """

    candidates: str | None = None
    separator: str = "|"
    answers: str | Path | None = None
    answer_columns: Sequence[str] = ("item", "worker", "label")
    rule: str = "union"
    id_column: str | None = None
    classes: list[str] | None = None
    control: str | None = None

    def refuse_features(self, features: str | Sequence[str], columns: Sequence[str]) -> None:
        """Refuse to learn from the candidates, or from ids, which tell where a row stood."""
        labels = []
        if self.candidates is not None:
            labels = choose(self.candidates, columns, "--candidates")
        for column in choose(features, columns, "--features"):
            if column in labels or column == self.id_column:
                what = "candidates" if column in labels else "ids"
                raise UsageError(
                    f"--features hold the column {column!r}, which is that of the {what}; "
                    "nothing can be learned from it."
                )


@dataclass
class TrainingRows:
    """The rows of a training table that have candidates, and what became of the others."""

    chunk: Chunk
    lists: list[list[str]]
    ids: list[str]
    bad: BadRows
    answers: Answers | None = None
    notes: list[str] = field(default_factory=list)


def read_training(source: TableFile, wanted: Wanted, *, keep_bad: bool) -> TrainingRows:
    """Read a whole training table with its candidates."""
    Rule(wanted.rule).parameters()
    chunk = read_whole(source)
    bad = BadRows(source.name, source.unit, keep=keep_bad)
    bad.add(chunk.bad)
    ids = None if wanted.id_column is None else row_ids(chunk, wanted.id_column, source.name)
    notes: list[str] = []
    answers = None
    if wanted.candidates is not None:
        if wanted.answers is not None:
            raise UsageError("give --candidates or --answers, not both.")
        if wanted.rule != "union":
            raise UsageError("--rule is for answers; --candidates are taken as they are.")
        found = from_columns(chunk, wanted.candidates, wanted.separator, wanted.classes)
        notes += _doubts(found.lists, wanted.separator)
    elif wanted.answers is not None:
        found, answers = _joined(source, chunk, ids, wanted, bad, notes)
    elif source.answers is not None:
        answers = studio_answers(source, wanted.control)
        places: list[str | None] = [str(i) for i in range(len(chunk.table))]
        found, _ = from_answers(chunk, places, answers, Rule(wanted.rule), wanted.classes)
    else:
        raise UsageError(
            "say where the candidates are: --candidates COLUMNS, or --answers FILE with --id; "
            f"{source.name} has {listed(source.columns)}."
        )
    good = found.good.copy()
    rows = list(found.bad)
    if ids is not None and wanted.answers is None:
        for i in np.flatnonzero([value is None for value in ids]).tolist():
            if good[i]:
                what = f"{wanted.id_column} is missing"
                rows.append(BadRow(int(chunk.places[i]), what, join_cells(chunk.table, i)))
                good[i] = False
    bad.add(sorted(rows))
    lists = [labels for labels, keep in zip(found.lists, good[found.good], strict=True) if keep]
    kept = Chunk(chunk.table.filter(good), chunk.places[good], [])
    return TrainingRows(
        kept,
        lists,
        [str(v) for v in (kept.places if ids is None else np.asarray(ids, dtype=object)[good])],
        bad,
        answers,
        notes,
    )


def _doubts(lists: list[list[str]], separator: str) -> list[str]:
    """What looks like a wrong separator or column, though it can be read."""
    labels = sorted({label for row in lists for label in row})
    joined = [label for label in labels if re.search(r"\S[|;,/+]\s*\S", label)]
    notes = []
    if joined and all(len(row) == 1 for row in lists):
        notes.append(
            f"no row has two candidates, but labels such as {joined[0]!r} look like several: "
            f"is {separator!r} between them (--sep)?"
        )
    if 2 * len(labels) > len(lists) > 20:
        notes.append(
            f"{len(lists):,} rows have {len(labels):,} different labels: is it the right column?"
        )
    return notes


def _joined(
    source: TableFile,
    chunk: Chunk,
    ids: list[str | None] | None,
    wanted: Wanted,
    bad: BadRows,
    notes: list[str],
) -> tuple[Found, Answers]:
    assert wanted.answers is not None
    if ids is None:
        raise UsageError("--answers are joined to the rows by --id COLUMN; name it.")
    answers, rows_of_answers = _read_either(wanted, bad.keep)
    rows_of_answers.check()
    if rows_of_answers.count:
        bad.add(
            [BadRow(r.place, f"{rows_of_answers.name}: {r.reason}", r.text)
             for r in rows_of_answers.rows]
        )  # fmt: skip
    found, others = from_answers(chunk, ids, answers, Rule(wanted.rule), wanted.classes)
    notes.append(
        f"answers: {len(answers.items):,} by {len(set(answers.workers)):,} annotators; "
        f"rule {wanted.rule}"
    )
    if others:
        notes.append(f"answers for rows that {source.name} does not have: {others:,}")
    return found, answers


def _read_either(wanted: Wanted, keep: bool) -> tuple[Answers, BadRows]:
    """Answers in the long form, or of a Label Studio export whose tasks hold the id."""
    assert wanted.answers is not None
    with open_table(wanted.answers) as file:
        if file.answers is not None:
            found = studio_answers(file, wanted.control)
            chunk = read_whole(file)
            if wanted.id_column not in chunk.table.column_names:
                raise UsageError(
                    f"the tasks of {file.name} have no {wanted.id_column!r} in their data, "
                    f"by which to join them; they have {listed(chunk.table.column_names)}."
                )
            ids = texts(chunk.table[wanted.id_column])
            items = [ids[int(item)] or "" for item in found.items]
            return found._replace(items=items), BadRows(file.name, file.unit, keep=keep)
    return read_answers(
        wanted.answers,
        wanted.answer_columns,
        wanted.classes,
        lambda file: BadRows(file.name, file.unit, keep=keep),
    )


class Answered(NamedTuple):
    """Rows that were answered or still wait, and the bad ones."""

    chunk: Chunk
    found: Found
    waiting: NDArray[np.bool_]
    bad: BadRows


def read_answered(
    source: TableFile, model: Model, answer: str | None, control: str | None, *, keep_bad: bool
) -> Answered:
    """Rows with people's answers; where there is none, a row waits."""
    chunk = read_whole(source)
    bad = BadRows(source.name, source.unit, keep=keep_bad)
    bad.add(chunk.bad)
    model.preparation.check_names(chunk.table.column_names, source.name)
    ids: list[str | None] = [""] * len(chunk.table)
    if model.id_column is not None:
        ids = row_ids(chunk, model.id_column, source.name)
    if answer is None and source.answers is not None:
        lists = _studio_lists(source, len(chunk.table), control)
    else:
        column = answer or ANSWER
        if column not in chunk.table.column_names:
            raise UsageError(
                f"{source.name} has no column {column!r} with the answers (--answer); "
                f"it has {listed(chunk.table.column_names)}."
            )
        cells = texts(chunk.table[column])
        split = [[label_text(v) for v in (cell or "").split("|")] for cell in cells]
        lists = [list(dict.fromkeys(v for v in row if v is not None)) for row in split]
    known = set(model.classes)
    good = np.asarray(
        [i is not None and set(v) <= known for i, v in zip(ids, lists, strict=True)], dtype=bool
    )
    rows = []
    for i in np.flatnonzero(~good).tolist():
        why = f"{model.id_column} is missing"
        if ids[i] is not None:
            label = next(v for v in lists[i] if v not in known)
            why = f"the answer {label!r} is no label of the model ({listed(model.classes)})"
        rows.append(BadRow(int(chunk.places[i]), why, join_cells(chunk.table, i)))
    bad.add(rows)
    if bad.keep is False and bad.count:
        bad.check()
    kept = Chunk(chunk.table.filter(good), chunk.places[good], [])
    answers = [labels for labels, keep in zip(lists, good, strict=True) if keep]
    waiting = np.asarray([not labels for labels in answers], dtype=bool)
    if not len(answers):
        raise DataError(f"{source.name} holds no usable row.")
    return Answered(kept, Found(answers, good, rows), waiting, bad)


def _studio_lists(source: TableFile, n: int, control: str | None) -> list[list[str]]:
    if not source.answers.labels:
        return [[] for _ in range(n)]
    lists: list[list[str]] = [[] for _ in range(n)]
    answers = studio_answers(source, control)
    for item, label in zip(answers.items, answers.labels, strict=True):
        if label not in lists[int(item)]:
            lists[int(item)].append(label)
    return lists
