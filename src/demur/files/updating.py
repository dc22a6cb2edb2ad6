"""Add people's answers to a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.files.columns import texts
from demur.files.decisions import decide
from demur.files.errors import BadRows, DataError, share
from demur.files.fitting import learn
from demur.files.model_file import Model, load, save
from demur.files.output import check_outputs, write_bad_rows
from demur.files.predicting import judged_pieces, keep_rows
from demur.files.tables import open_table
from demur.files.training import read_answered


@dataclass
class Updated:
    """What `update` changed."""

    path: str
    n_new: int
    n_settled: int
    n_agreed: int
    n_waiting: int
    waiting_before: int
    waiting_after: int
    n_checked: int
    checked_before: int
    checked_after: int
    n_bad: int

    def __str__(self) -> str:
        answers = self.n_new + self.n_settled
        lines = [
            f"{answers:,} answer{'s' * (answers != 1)}: {self.n_new:,} for new rows, "
            f"{self.n_settled:,} for rows that the model had learned from",
            f"the model had said the same for {share(self.n_agreed, answers)} of them",
        ]
        if self.n_waiting:
            lines.append(
                f"waiting rows accepted: {share(self.waiting_before, self.n_waiting)} before, "
                f"{share(self.waiting_after, self.n_waiting)} now"
            )
        if self.n_checked:
            lines.append(
                f"coverage: {share(self.checked_before, self.n_checked)} before, "
                f"{share(self.checked_after, self.n_checked)} now"
            )
        if self.n_bad:
            lines.append(f"bad rows skipped: {self.n_bad:,}")
        return "\n".join([*lines, f"wrote {self.path}"])


def update(
    path: str | Path,
    answered: str | Path,
    *,
    output: str | Path | None = None,
    answer: str | None = None,
    control: str | None = None,
    check: str | Path | None = None,
    skip_bad: str | Path | None = None,
) -> Updated:
    """Add people's answers to a model and fit it anew; rows without an answer wait on.

    Parameters
    ----------
    path : str or path
        The model file.
    answered : str or path
        Rows that were rejected, with answers: a table with a column ``demur_answer``, or an
        export of Label Studio.
    output : str or path, optional
        By default the model file is replaced.
    answer : str, optional
        Another name of the column of answers; several labels are separated by ``|``.
    control : str, optional
        Whose choices to take in an export with several questions.
    check : str or path, optional
        A table whose coverage to tell, before and after.
    skip_bad : str or path, optional
        Where bad rows go; by default they are an error.

    Returns
    -------
    Updated
    """
    check_outputs([answered, check], [output or path, skip_bad])
    model = load(path)
    with open_table(answered) as source:
        chunk, found, waiting, bad = read_answered(
            source, model, answer, control, keep_bad=skip_bad is not None
        )
        encoded = model.preparation.encode(chunk, source.name)
    bad.add(encoded.bad)
    bad.check()
    good = encoded.good
    X, waiting = encoded.X, waiting[good]
    lists = [row for row, keep in zip(found.lists, good, strict=True) if keep]
    if waiting.all():
        raise DataError(f"{source.name} holds no answers; fill in the column of answers.")
    before = decide(model.method, model.preparation.scale(X))
    checked_before = _coverage(model, check)
    kept = keep_rows(chunk, good)
    ids = [f"{source.name}, {source.unit} {place}" for place in kept.places]
    if model.id_column is not None:
        ids = [str(value) for value in texts(kept.table[model.id_column])]
    asked = np.flatnonzero(~waiting).tolist()
    agreed = sum(before.classes[before.top[i]] in lists[i] and len(lists[i]) == 1 for i in asked)
    settled = _add(model, X, lists, ids, asked)
    learn(model, model.sets)
    after = decide(model.method, model.preparation.scale(X[waiting])) if waiting.any() else None
    checked_after = _coverage(model, check)
    save(model, output or path)
    if skip_bad is not None:
        write_bad_rows(skip_bad, bad.rows, source.unit)
    return Updated(
        path=str(output or path),
        n_new=len(asked) - settled,
        n_settled=settled,
        n_agreed=agreed,
        n_waiting=int(waiting.sum()),
        waiting_before=int(before.accepted[waiting].sum()),
        waiting_after=0 if after is None else int(after.accepted.sum()),
        n_checked=checked_before[0],
        checked_before=checked_before[1],
        checked_after=checked_after[1],
        n_bad=bad.count,
    )


def _add(
    model: Model,
    X: NDArray[np.float64],
    lists: list[list[str]],
    ids: list[str],
    asked: list[int],
) -> int:
    """Put answered rows into the training data; how many of them were there already."""
    training = model.training
    words = CandidateSets([lists[i] for i in asked], classes=model.method.classes_).words
    place = {value: i for i, value in enumerate(training.ids)} if model.id_column else {}
    known = np.asarray([place.get(ids[i], -1) for i in asked])
    new, old = np.flatnonzero(known < 0), np.flatnonzero(known >= 0)
    training.words = training.words.copy()
    training.words[known[old]] = words[old]
    rows = np.asarray(asked)[new]
    training.X = np.concatenate([training.X, X[rows]])
    training.words = np.concatenate([training.words, words[new]])
    training.ids = [*training.ids, *(ids[i] for i in rows)]
    return len(old)


def _coverage(model: Model, path: str | Path | None) -> tuple[int, int]:
    """Rows of a table, and how many the model accepts."""
    if path is None:
        return 0, 0
    n = accepted = 0
    with open_table(path) as source:
        bad = BadRows(source.name, source.unit, keep=False)
        for chunk, decisions in judged_pieces(model, source, bad):
            n += len(chunk.table)
            accepted += int(decisions.accepted.sum())
    bad.check()
    return n, accepted
