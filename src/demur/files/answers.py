"""Candidates from files: columns of a table, a file of answers, or a Label Studio export."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.files.columns import choose, is_text, label_text, listed, numbers, texts
from demur.files.errors import BadRow, BadRows, DataError, UsageError
from demur.files.tables import Chunk, TableFile, join_cells, open_table, read_whole

NO_CANDIDATE = "there is no candidate"  # how the reason of such a row ends


@dataclass(frozen=True)
class Rule:
    """Which of the labels that annotators gave are candidates.

    ``union``: all. ``votes:N``: those with N votes or more. ``share:P``: those with at least
    this share of an item's votes. Where these leave none, those with the most votes.
    ``reliable:P``: those at least so probable by who gave them, and the most probable.
    """

    text: str = "union"

    def parameters(self) -> dict[str, Any]:
        """For `CandidateSets.from_long_answers`.

        Examples
        --------
        >>> from demur.files.answers import Rule
        >>> Rule("votes:2").parameters()
        {'min_votes': 2, 'fallback': 'most'}
        """
        kind, _, value = self.text.partition(":")
        try:
            if kind == "union" and not value:
                return {}
            if kind == "votes" and int(value) >= 1:
                return {"min_votes": int(value), "fallback": "most"}
            if kind == "share" and 0 < float(value) <= 1:
                return {"min_share": float(value), "fallback": "most"}
            if kind == "reliable" and 0 < float(value) <= 1:
                return {"min_probability": float(value)}
        except ValueError:
            pass
        raise UsageError(
            "--rule is union, votes:N, share:P or reliable:P, such as votes:2, share:0.3 or "
            f"reliable:0.05; got {self.text!r}."
        )


class Answers(NamedTuple):
    """Answers in the long form, one a row, with their places in the file."""

    items: list[str]
    workers: list[str]
    labels: list[str]
    places: list[int]


class Found(NamedTuple):
    """Candidate sets of the good rows of a table, which those are, and the others."""

    lists: list[list[str]]
    good: NDArray[np.bool_]
    bad: list[BadRow]


# ------------------------------------------------------------------------ columns of a table


def from_columns(
    chunk: Chunk, candidates: str, separator: str, classes: Sequence[str] | None
) -> Found:
    """Candidates in one column of lists or separated labels, or in several 0/1 columns.

    The class of a 0/1 column is its name, or what the star of a pattern stands for.
    """
    columns = choose(candidates, chunk.table.column_names, "--candidates")
    if len(columns) > 1:
        return _from_indicator(chunk, candidates, columns)
    cells = chunk.table[columns[0]]
    if _is_list(cells):
        rows = [[label_text(v) for v in row or []] for row in cells.to_pylist()]
    else:
        if not separator:
            raise UsageError("--sep must not be empty.")
        rows = [[label_text(v) for v in (cell or "").split(separator)] for cell in texts(cells)]
    lists = [list(dict.fromkeys(v for v in row if v is not None)) for row in rows]
    known = None if classes is None else set(classes)

    def reason(row: int) -> str | None:
        if not lists[row]:
            return f"{columns[0]} is empty: {NO_CANDIDATE}"
        unknown = [] if known is None else [v for v in lists[row] if v not in known]
        return f"the label {unknown[0]!r} is not one of the classes" if unknown else None

    return _sorted_out(chunk, lists, reason)


def _is_list(cells: Any) -> bool:
    kind = cells.type
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _from_indicator(chunk: Chunk, pattern: str, columns: list[str]) -> Found:
    names = _class_names(pattern, columns)
    table = np.zeros((len(chunk.table), len(columns)))
    wrong: dict[int, str] = {}
    for j, column in enumerate(columns):
        cells = chunk.table[column]
        if is_text(cells):
            truths = {"true": "1", "false": "0", "": "0", "yes": "1", "no": "0"}
            given = [(v or "").lower() for v in texts(cells)]
            parsed = numbers(pa.array([truths.get(v, v) for v in given], pa.string()))
        else:
            parsed = numbers(cells)
        table[:, j] = np.where(parsed.missing, 0.0, parsed.values)
        odd = np.flatnonzero(~np.isin(table[:, j], (0.0, 1.0)))
        for row in odd.tolist():
            wrong.setdefault(row, f"{column} is {cells[row].as_py()!r}; candidates are 0 or 1")
    lists = [[names[j] for j in np.flatnonzero(row == 1.0)] for row in table]

    def reason(row: int) -> str | None:
        if row in wrong:
            return wrong[row]
        return None if lists[row] else f"nothing is marked: {NO_CANDIDATE}"

    return _sorted_out(chunk, lists, reason)


def _class_names(pattern: str, columns: list[str]) -> list[str]:
    """What the one star of a pattern stands for, or the columns' names."""
    if pattern.count("*") == 1 and not set(pattern) & set("?[,:"):
        parts = re.compile(fnmatch.translate(pattern).replace(".*", "(.*)"), re.DOTALL)
        found = [parts.match(column) for column in columns]
        names = [m[1] if m else c for m, c in zip(found, columns, strict=True)]
        if all(names):
            return names
    return columns


def _sorted_out(chunk: Chunk, lists: list[list[str]], reason: Callable[[int], str | None]) -> Found:
    reasons = [reason(i) for i in range(len(lists))]
    good = np.asarray([why is None for why in reasons], dtype=bool)
    bad = [
        BadRow(int(chunk.places[i]), why, join_cells(chunk.table, i))
        for i, why in enumerate(reasons)
        if why is not None
    ]
    return Found([row for row, keep in zip(lists, good, strict=True) if keep], good, bad)


# --------------------------------------------------------------------------- files of answers


def read_answers(
    path: str | Path,
    columns: Sequence[str],
    classes: Sequence[str] | None,
    bad_rows: Callable[[TableFile], BadRows],
) -> tuple[Answers, BadRows]:
    """A file of answers in the long form; columns name item, worker and label."""
    if len(columns) != 3:
        raise UsageError(
            f"--answer-columns names three columns, item,worker,label; got {','.join(columns)}."
        )
    with open_table(path) as source:
        for column in columns:
            if column not in source.columns:
                raise UsageError(
                    f"{source.name} has no column {column!r}; name those of item, worker and "
                    f"label by --answer-columns. It has {listed(source.columns)}."
                )
        chunk = read_whole(source)
    bad = bad_rows(source)
    cells = [texts(chunk.table[column]) for column in columns]
    answers = Answers([], [], [], [])
    rows = list(chunk.bad)
    known = None if classes is None else set(classes)
    for i, (item, worker, label) in enumerate(zip(*cells, strict=True)):
        place = int(chunk.places[i])
        if item is None or worker is None or label is None:
            lacking = columns[[item, worker, label].index(None)]
            rows.append(BadRow(place, f"{lacking} is missing", join_cells(chunk.table, i)))
            continue
        if known is not None and label not in known:
            why = f"the label {label!r} is not one of the classes"
            rows.append(BadRow(place, why, join_cells(chunk.table, i)))
            continue
        answers.items.append(item)
        answers.workers.append(worker)
        answers.labels.append(label)
        answers.places.append(place)
    bad.add(sorted(rows))
    return answers, bad


def studio_answers(source: TableFile, control: str | None) -> Answers:
    """Answers of a Label Studio export; items are its rows, counted from 0."""
    found = source.answers
    controls = sorted(set(found.controls))
    if control is None and len(controls) > 1:
        raise UsageError(
            f"{source.name} has choices of {listed(controls)}; say by --control which to take."
        )
    if control is not None and control not in controls:
        raise UsageError(f"{source.name} has no choices of {control!r}, only {listed(controls)}.")
    wanted = control or (controls[0] if controls else "")
    labels = [label_text(label) for label in found.labels]
    kept = [i for i, c in enumerate(found.controls) if c == wanted and labels[i] is not None]
    return Answers(
        [str(found.rows[i]) for i in kept],
        [found.workers[i] for i in kept],
        [str(labels[i]) for i in kept],
        [found.rows[i] + 1 for i in kept],
    )


def from_answers(
    chunk: Chunk,
    ids: Sequence[str | None],
    answers: Answers,
    rule: Rule,
    classes: Sequence[str] | None,
) -> tuple[Found, int]:
    """Candidates of the rows by what was answered for them; and how many answers were for none."""
    parameters = rule.parameters()
    known = None if classes is None else set(classes)
    place = {item: i for i, item in enumerate(ids) if item is not None}
    kept = [i for i, item in enumerate(answers.items) if item in place]
    lists: list[list[str]] = [[] for _ in ids]
    if kept:
        sets, items = CandidateSets.from_long_answers(
            [answers.items[i] for i in kept],
            [answers.workers[i] for i in kept],
            [answers.labels[i] for i in kept],
            **parameters,
        )
        for item, labels in zip(items.tolist(), sets.to_lists(), strict=True):
            lists[place[str(item)]] = [str(label) for label in labels]

    def reason(row: int) -> str | None:
        if not lists[row]:
            if ids[row] is None:
                return "the id is missing"
            return f"nobody answered for {ids[row]}: {NO_CANDIDATE}"
        unknown = [] if known is None else [v for v in lists[row] if v not in known]
        return f"the label {unknown[0]!r} is not one of the classes" if unknown else None

    return _sorted_out(chunk, lists, reason), len(answers.items) - len(kept)


def row_ids(chunk: Chunk, column: str, name: str) -> list[str | None]:
    """The ids of rows, no two alike."""
    if column not in chunk.table.column_names:
        raise UsageError(
            f"{name} has no column {column!r} (--id); it has {listed(chunk.table.column_names)}."
        )
    ids = texts(chunk.table[column])
    seen: dict[str, int] = {}
    for i, value in enumerate(ids):
        if value is not None and seen.setdefault(value, i) != i:
            raise DataError(
                f"{name}: the id {value!r} stands in rows {chunk.places[seen[value]]} and "
                f"{chunk.places[i]}; ids must differ."
            )
    return ids
