"""`demur plan`: which rows to verify for a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli.shared import Debug, ModelFile, SkipBad, errors_in_one_line


def plan(
    model: ModelFile,
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Unlabelled rows to draw from; - is stdin.")
    ],
    max_risk: Annotated[float, typer.Option(help="Largest error among accepted predictions.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The rows to verify.")
    ],
    confidence: Annotated[float, typer.Option(help="Of the certificate.")] = 0.95,
    n_gold: Annotated[int, typer.Option(min=1, help="Rows that can be verified.")] = 100,
    group: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Draw one row of each value at most."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    skip_bad: SkipBad = None,
    debug: Debug = False,
) -> None:
    """Draw the rows to verify, so that an error rate can be certified with their labels.

    demur plan model.demur new.csv --max-risk 0.05 --n-gold 200 -o verify.csv
    """
    with errors_in_one_line(debug):
        from demur import files

        done = files.plan(
            model, table, output,
            max_risk=max_risk, confidence=confidence, n_gold=n_gold, group=group, seed=seed,
            skip_bad=skip_bad,
        )  # fmt: skip
        typer.echo(str(done))
