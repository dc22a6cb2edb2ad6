"""`demur explain`: why one row is decided as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli.shared import Debug, ModelFile, errors_in_one_line


def explain(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The table with the row.")],
    row: Annotated[int | None, typer.Option(help="Which row, from 1, the header not counted.")] = (
        None
    ),
    id_value: Annotated[
        str | None, typer.Option("--id", metavar="VALUE", help="Or the row with this id.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Say why one row is accepted or not.

    demur explain model.demur new.csv --row 17
    """
    with errors_in_one_line(debug):
        from demur import files

        typer.echo(files.explain(model, table, row, id_value))
