"""`demur predict`: a model and a table in, decisions out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli.shared import (
    Debug,
    ModelFile,
    SkipBad,
    Threshold,
    errors_in_one_line,
    progress_of,
    say,
)


def predict(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="New rows; - is stdin.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Decisions; - is stdout.")
    ] = Path("-"),
    threshold: Threshold = None,
    coverage: Annotated[
        float | None, typer.Option(help="Accept this share of the table, the surest.")
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(help="Of a rejection, where an error costs 1; nothing is guaranteed."),
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(help="Certified largest error of what is accepted; see `demur plan`."),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verified rows: the planned ones, for --max-risk."),
    ] = None,
    answer: Annotated[
        str | None, typer.Option(help="With --gold: the column of true labels (demur_answer).")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="csv, parquet or jsonl; default: by ending.")
    ] = None,
    rejected: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rejected rows, the most useful to look at first."),
    ] = None,
    label_studio: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="The same as tasks to import into Label Studio."),
    ] = None,
    skip_bad: SkipBad = None,
    debug: Debug = False,
) -> None:
    """Decide on every row: a label, accepted or not, and why not.

    demur predict model.demur new.csv -o decisions.parquet --rejected look-at.csv

    demur predict model.demur new.csv -o decisions.csv --max-risk 0.05 --gold verify.csv
    """
    with errors_in_one_line(debug), progress_of("deciding", None) as advance:
        from demur import files

        dial = files.Dial(coverage, cost, max_risk, gold, answer)
        done = files.predict(
            model, table, output,
            threshold=threshold, dial=dial if dial.turned else None, form=form, rejected=rejected,
            label_studio=label_studio, skip_bad=skip_bad, advance=advance,
        )  # fmt: skip
    say(str(done), output)
