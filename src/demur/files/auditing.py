"""Look at training data before learning from it: what is wrong, and what will be hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.files.answers import NO_CANDIDATE, Answers
from demur.files.errors import SHOWN_ROWS, BadRow, DataError
from demur.files.features import learn_preparation
from demur.files.tables import open_table
from demur.files.training import Wanted, read_training

SHOWN_PAIRS, SHOWN_WORKERS, SHOWN_LABELS = 5, 5, 10
FEW_ROWS = 10  # a label with fewer is too rare to learn: a neighbourhood has as many
FEW_ANSWERS = 10  # fewer tell nothing of an annotator


@dataclass
class Audited:
    """What `audit` found, in plain words.

    Attributes
    ----------
    n_rows : int
        Rows with candidates.
    findings : list of str
        One thing a line.
    bad : list of BadRow
    """

    name: str
    n_rows: int
    findings: list[str]
    bad: list[BadRow]
    unit: str

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.n_rows:,} usable rows", *self.findings]
        if self.bad:
            lines.append(f"bad rows: {len(self.bad):,}")
            lines += [f"  {self.unit} {row.place}: {row.reason}" for row in self.bad[:SHOWN_ROWS]]
            if len(self.bad) > SHOWN_ROWS:
                lines.append(f"  and {len(self.bad) - SHOWN_ROWS:,} more")
        return "\n".join(lines)


def audit(
    path: str | Path,
    *,
    wanted: Wanted,
    features: str | Sequence[str] | None = None,
    text: Sequence[str] = (),
    max_values: int = 50,
) -> Audited:
    """Audit a training table; with features, also for rows that contradict each other.

    Parameters
    ----------
    path : str or path
    wanted : Wanted
        Where ids and candidates come from.
    features, text, max_values
        As for `demur.files.fit`.

    Returns
    -------
    Audited
    """
    with open_table(path) as source:
        read = read_training(source, wanted, keep_bad=True)
    if not read.lists:
        bad = read.bad.rows
        why = f" ({source.unit} {bad[0].place}: {bad[0].reason})" if bad else ""
        raise DataError(f"{source.name} holds no row with candidates{why}.")
    sets = CandidateSets(read.lists, classes=wanted.classes)
    places = read.chunk.places
    findings = [*read.notes, *_sizes(sets, places, source.unit, read.bad.rows)]
    findings += _confused(sets) + _rare(sets)
    if read.answers is not None:
        findings += _workers(read.answers)
    if features is not None:
        wanted.refuse_features(features, source.columns)
        preparation = learn_preparation(
            read.chunk, source.name, features, text=text, max_values=max_values
        )
        encoded = preparation.encode(read.chunk, source.name)
        read.bad.add(encoded.bad)
        kept = CandidateSets._packed(sets.words[encoded.good], sets.classes)
        findings += _contradictions(encoded.X, kept, places[encoded.good], source.unit)
    return Audited(source.name, len(read.lists), findings, sorted(read.bad.rows), source.unit)


def name_places(places: NDArray[np.int64], unit: str) -> str:
    """Some places for people to look at.

    Examples
    --------
    >>> import numpy as np
    >>> from demur.files.auditing import name_places
    >>> name_places(np.array([2, 5, 7]), "line")
    'lines 2, 5, 7'
    """
    shown = ", ".join(str(int(p)) for p in places[:5])
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    return f"{unit}{'s' * (len(places) > 1)} {shown}{more}"


def _sizes(
    sets: CandidateSets, places: NDArray[np.int64], unit: str, bad: list[BadRow]
) -> list[str]:
    sizes = sets.sizes
    single, full = sizes == 1, sizes == sets.n_classes
    empty = sum(row.reason.endswith(NO_CANDIDATE) for row in bad)
    lines = [
        f"labels: {sets.n_classes}; candidates a row: {sizes.mean():.2f} on average, "
        f"{int(sizes.max())} at most",
        f"one candidate (nothing to disambiguate): {_count(single)}",
        f"every label a candidate (tells nothing): {_count(full)}"
        + (f", {name_places(places[full], unit)}" if full.any() else ""),
    ]
    if empty:
        lines.append(f"no candidate at all: {empty:,}, among the bad rows below")
    return lines


def _count(which: NDArray[np.bool_]) -> str:
    return f"{int(which.sum()):,} ({which.mean():.1%})"


def _confused(sets: CandidateSets) -> list[str]:
    """Pairs of labels that stand together most, and those that are never told apart."""
    held = sets.to_indicator().astype(np.int64)
    together = held.T @ held
    count = np.diag(together)
    lines = []
    rows, columns = np.nonzero(np.triu(together, k=1))
    order = np.argsort(-together[rows, columns], kind="stable")
    for i, j in [(int(rows[k]), int(columns[k])) for k in order[:SHOWN_PAIRS]]:
        a, b, n = sets.classes[i], sets.classes[j], int(together[i, j])
        lines.append(
            f"  {a} and {b}: {n:,} row{'s' * (n > 1)}, {n / count[i]:.0%} of those with {a}, "
            f"{n / count[j]:.0%} of those with {b}"
        )
    if lines:
        lines.insert(0, "most often candidates together:")
    same = (together[rows, columns] == count[rows]) & (count[rows] == count[columns])
    pairs = [
        f"{sets.classes[i]} and {sets.classes[j]}"
        for i, j in zip(rows[same].tolist(), columns[same].tolist(), strict=True)
    ]
    if pairs:
        lines.append(f"labels that never part, so that nothing tells them apart: {_some(pairs)}")
    return lines


def _some(things: list[str]) -> str:
    more = f" and {len(things) - SHOWN_LABELS:,} more" if len(things) > SHOWN_LABELS else ""
    return ", ".join(things[:SHOWN_LABELS]) + more


def _rare(sets: CandidateSets) -> list[str]:
    """Labels with too few rows, or never alone."""
    held = sets.to_indicator()
    count = held.sum(axis=0)
    alone = held[sets.sizes == 1].sum(axis=0)

    def told(which: NDArray[np.bool_]) -> str:
        order = [int(j) for j in np.argsort(count, kind="stable") if which[j]]
        return _some([f"{sets.classes[j]} ({count[j]:,})" for j in order])

    few = count < FEW_ROWS
    covered = (alone == 0) & ~few
    lines = []
    if few.any():
        lines.append(f"labels too rare to learn, with their rows: {told(few)}")
    if covered.any():
        lines.append(f"labels that are never the only candidate, with their rows: {told(covered)}")
    return lines


def _workers(answers: Answers) -> list[str]:
    """Annotators whose answers differ most from what the others said of the same items."""
    votes: dict[str, dict[str, set[str]]] = {}
    for item, worker, label in zip(answers.items, answers.workers, answers.labels, strict=True):
        votes.setdefault(item, {}).setdefault(label, set()).add(worker)
    given: dict[str, int] = {}
    differ: dict[str, int] = {}
    for item, worker, label in zip(answers.items, answers.workers, answers.labels, strict=True):
        others = {v: len(by - {worker}) for v, by in votes[item].items()}
        if any(others.values()):
            given[worker] = given.get(worker, 0) + 1
            alone = others[label] < max(others.values())
            differ[worker] = differ.get(worker, 0) + alone
    known = [worker for worker, n in given.items() if n >= FEW_ANSWERS]
    known.sort(key=lambda worker: (-differ[worker] / given[worker], worker))
    lines = [
        f"  {w}: {differ[w]:,} of {given[w]:,} ({differ[w] / given[w]:.0%})"
        for w in known[:SHOWN_WORKERS]
    ]
    few = len(set(answers.workers)) - len(known)
    if lines:
        lines.insert(0, "annotators who differ most from the other annotators of the same item:")
    if few:
        lines.append(f"annotators with fewer than {FEW_ANSWERS} answers to compare: {few}")
    return lines


def _contradictions(
    X: NDArray[np.float64], sets: CandidateSets, places: NDArray[np.int64], unit: str
) -> list[str]:
    """Rows with the same features whose sets share no label: one of them lacks the truth."""
    _, group, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    repeated = int((counts - 1).sum())
    order = np.argsort(group.ravel(), kind="stable")
    shared = np.bitwise_and.reduceat(sets.words[order], np.cumsum(counts) - counts, axis=0)
    groups = np.split(places[order], np.cumsum(counts)[:-1])
    apart = [groups[g] for g in np.flatnonzero(~shared.any(axis=1))]
    apart.sort(key=lambda rows: int(rows[0]))
    lines = [f"rows that repeat another's features: {repeated:,}"]
    if apart:
        lines.append(
            f"groups of them without a common candidate (the truth cannot be in all): "
            f"{len(apart):,}"
        )
        lines += [f"  {name_places(rows, unit)}" for rows in apart[:SHOWN_PAIRS]]
    return lines
