"""`demur bench`: run a grid of experiments, and make tables, figures and a report of it.

Each command is one function here, which parses, calls the library and prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True)

# What the commands that read results take: the folder that `demur bench run` filled.
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that `run --out` filled.")]


@app.callback()
def bench() -> None:
    """Run a grid of experiments, and make tables, figures and a report of it."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """What the library says of wrong input is told in one line, and the exit code is 2."""
    try:
        yield
    except (ValueError, ImportError, OSError) as error:
        typer.echo(f"demur: {error}", err=True)
        raise typer.Exit(2) from None


@app.command("list")
def list_presets() -> None:
    """The presets, and how many runs each has."""
    from demur.bench.grid import expand, preset_names, read_preset

    for name in preset_names():
        preset = read_preset(name)
        typer.echo(f"{name:12} {len(expand(preset)):6,} runs  {preset['title']}")


# ------------------------------------------------------------------- commands on results
# tables, figures and report: a function each, `def tables(folder: Folder, ...)`, that imports
# what it needs inside, and does its work `with usage_errors():`.
