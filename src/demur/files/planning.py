"""Draw the rows to verify for a certificate, and fix its tests before any label is seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from sklearn.frozen import FrozenEstimator

from demur.files.columns import listed, texts
from demur.files.dialing import ids_of, judged_training
from demur.files.errors import BadRows, DataError, UsageError
from demur.files.model_file import load
from demur.files.output import format_of, table_writer, write_bad_rows
from demur.files.plan_file import PlanFile, checksum, place_of
from demur.files.predicting import keep_rows
from demur.files.rejected import ANSWER, OURS
from demur.files.tables import open_table, read_whole
from demur.reject import Plan, RejectClassifier, least_gold
from demur.reject.certificate import check_share


@dataclass
class Planned:
    """What `plan` did."""

    plan: Plan
    path: str
    plan_path: str
    n_rows: int
    n_bad: int
    group: str | None = None

    def __str__(self) -> str:
        lines = [str(self.plan)]
        if self.n_bad:
            lines.append(f"bad rows skipped: {self.n_bad:,}")
        if self.group is not None:
            # A model file keeps no such column of its training rows, to leave them out by.
            lines.append(
                f"the certificate holds if no {self.group} of these rows was trained on, which the "
                "model cannot check"
            )
        return "\n".join(
            [
                *lines,
                f"wrote {self.path} ({self.plan.n_gold:,} of {self.n_rows:,} rows) and "
                f"{self.plan_path}",
                f"fill in {ANSWER} in every row, one true label each; then: demur predict MODEL "
                f"TABLE --max-risk {self.plan.max_risk:g} --gold {self.path}",
            ]
        )


def plan(
    model_path: str | Path,
    table: str | Path,
    output: str | Path,
    *,
    max_risk: float,
    confidence: float = 0.95,
    n_gold: int = 100,
    group: str | None = None,
    seed: int = 0,
    skip_bad: str | Path | None = None,
) -> Planned:
    """Draw the rows to verify from a table, and keep the plan beside the model.

    The predicted labels are not written, so that they cannot sway who verifies.

    Parameters
    ----------
    model_path, table, output : str or path
        The model file, unlabelled rows like those that it will meet, and where the rows to
        verify go (.csv or .parquet).
    max_risk, confidence : float
    n_gold : int
    group : str, optional
        A column: at most one row of each of its values is drawn.
    seed : int
    skip_bad : str or path, optional
        Where bad rows go; by default they are an error.
    """
    _check(max_risk, confidence, n_gold, output)
    model = load(model_path)
    digest = checksum(model_path)
    before = PlanFile.of(model_path)
    if before is not None and before.tested is not None and before.model == digest:
        raise UsageError(
            f"{model_path} has been tested with gold labels already ({before.path}); to draw again "
            "until a test passes would make the certificate worthless."
        )
    with open_table(table) as source:
        bad = BadRows(source.name, source.unit, keep=skip_bad is not None)
        model.preparation.check_names(source.columns, source.name)
        for name in (model.id_column, group):
            if name is not None and name not in source.columns:
                raise DataError(
                    f"{source.name} lacks the column {name!r}; it has {listed(source.columns)}."
                )
        chunk = read_whole(source)
        encoded = model.preparation.encode(chunk, source.name)
    bad.add(sorted(chunk.bad + encoded.bad))
    bad.check()
    if not len(encoded.X):
        raise DataError(f"{source.name} holds no usable row.")
    rows = keep_rows(chunk, encoded.good).table
    named = [None if name is None else texts(rows[name]) for name in (model.id_column, group)]
    X, held_out = judged_training(model)
    dial = RejectClassifier(
        FrozenEstimator(model.method), max_risk=max_risk, confidence=confidence, random_state=seed
    )
    dial.adopt(held_out, X, ids=ids_of(model))
    made = dial.plan(model.preparation.scale(encoded.X), n_gold, ids=named[0], groups=named[1])
    drawn = rows.take(pa.array(made.rows))
    drawn = drawn.drop_columns([name for name in OURS if name in drawn.column_names])
    drawn = drawn.append_column(ANSWER, pa.array([""] * len(drawn), pa.string()))
    with table_writer(output, format_of(output, None), drawn.schema) as writer:
        writer.write(drawn)
    PlanFile(place_of(model_path), digest, made, group).write()
    if skip_bad is not None:
        write_bad_rows(skip_bad, bad.rows, source.unit)
    return Planned(made, str(output), str(place_of(model_path)), len(rows), bad.count, group)


def _check(max_risk: float, confidence: float, n_gold: int, output: str | Path) -> None:
    try:
        check_share("max_risk", max_risk)
        check_share("confidence", confidence)
    except ValueError as error:
        raise UsageError(f"--{str(error).replace('_', '-', 1)}") from None
    least = least_gold(max_risk, confidence)
    if n_gold < least:
        raise UsageError(
            f"--n-gold {n_gold} is too few: an error of at most {max_risk:g} with {confidence:g} "
            f"confidence needs {least} verified rows without a single error."
        )
    if str(output) == "-" or format_of(output, None) == "jsonl":
        raise UsageError(f"{output}: give a file that ends in .csv or .parquet, to be filled in.")
