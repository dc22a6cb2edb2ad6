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
    """
    with errors_in_one_line(debug), progress_of("deciding", None) as advance:
        from demur import files

        done = files.predict(
            model, table, output,
            threshold=threshold, form=form, rejected=rejected, label_studio=label_studio,
            skip_bad=skip_bad, advance=advance,
        )  # fmt: skip
    say(str(done), output)
