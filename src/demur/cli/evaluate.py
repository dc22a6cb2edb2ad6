"""`demur evaluate`: how good a model is on rows whose labels are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli.shared import Debug, ModelFile, SkipBad, Threshold, errors_in_one_line


def evaluate(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Rows with labels; - is stdin.")],
    truth: Annotated[str, typer.Option(metavar="COLUMN", help="The column of true labels.")],
    threshold: Threshold = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Accuracy against share rejected.")
    ] = None,
    skip_bad: SkipBad = None,
    debug: Debug = False,
) -> None:
    """Measure a model: accuracy, coverage, accuracy of what it accepts.

    demur evaluate model.demur test.csv --truth label --plot curve.png
    """
    with errors_in_one_line(debug):
        from demur import files

        done = files.evaluate(
            model, table, truth, threshold=threshold, plot=plot, skip_bad=skip_bad
        )
        typer.echo(str(done))
