"""`demur data`: what named datasets there are, fetch them, check them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from demur.datasets import Entry

app = typer.Typer(no_args_is_help=True)

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", show_default=False)]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of the files; else the one that DEMUR_DATA names, then your own.",
    ),
]


@app.callback()
def data() -> None:
    """Named datasets: show them, fetch them, check their files."""


@app.command("list")
def list_datasets(names: Names = None, folder: Folder = None) -> None:
    """Show all datasets in a table, or all that is known of those named."""
    from demur.datasets import registry, user_folder

    chosen = _entries(names)
    if names:
        for one in chosen:
            _describe(one, folder)
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=130)  # a file or a pipe takes whole lines
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "rows", "features", "classes", "candidates", "here"):
        numbers = column in ("rows", "features", "classes")
        table.add_column(column, justify="right" if numbers else "left", no_wrap=True)
    told = console.width >= 90
    if told:
        table.add_column("what", overflow="ellipsis", no_wrap=True)
    for one in chosen:
        shape = [f"{number:,}" for number in one.shape]
        own = "yes" if one.candidates else "-"
        title = [one.title] if told else []
        table.add_row(one.name, *shape, own, _state(one, folder), *title)
    console.print(table, highlight=False)
    n_here = sum(_state(one, folder) == "yes" for one in chosen)
    typer.echo(
        f"\n{n_here} of {len(registry())} are here. `demur data get NAME` fetches one into "
        f"{folder or user_folder()};\n`demur data list NAME` tells its source and licence."
    )


@app.command("get")
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME...")], folder: Folder = None
) -> None:
    """Fetch what lacks of datasets, and check it; put it in --folder or your own folder."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from demur.datasets import download

    failed = False
    columns = (TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn())
    for one in _entries(names):
        try:
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                fetched = download(one.name, folder, progress=_Bar(progress, one.name))
        except (OSError, ValueError, ImportError) as error:
            typer.echo(f"demur: {error}", err=True)
            failed = True
            continue
        for path in fetched:
            typer.echo(f"{one.name}: {path}")
        typer.echo(f"{one.name}: {'fetched' if fetched else 'was here already'}")
        typer.echo(f"  licence: {one.licence}")
    if failed:
        raise typer.Exit(1)


@app.command("check")
def check(names: Names = None, folder: Folder = None) -> None:
    """Check files by their checksums, and read them; all that are here unless NAME tells."""
    from demur.datasets import load

    bad = 0
    for one in _entries(names):
        state = _state(one, folder)
        if not names and state != "yes":
            told = "not here" if state == "no" else f"not whole: {state} files are here"
            typer.echo(f"{one.name:26} {told}")
            continue
        try:
            found = load(one.name, folder=folder)
            shape = (*found.X.shape, len(found.classes))
            if shape != one.shape:
                raise ValueError(f"{one.name} has the shape {shape}; expected is {one.shape}.")
        except (OSError, ValueError) as error:
            typer.echo(f"{one.name:26} FAILS")
            typer.echo(f"demur: {error}", err=True)
            bad += 1
            continue
        typer.echo(
            f"{one.name:26} good: {shape[0]:,} rows, {shape[1]:,} features, {shape[2]} classes"
        )
    if bad:
        raise typer.Exit(1)


def _entries(names: list[str] | None) -> list[Entry]:
    from demur.datasets import entry, registry

    try:
        return [entry(name) for name in names] if names else list(registry().values())
    except ValueError as error:
        typer.echo(f"demur: {error}", err=True)
        raise typer.Exit(2) from None


def _state(one: Entry, folder: Path | None) -> str:
    from demur.datasets import find

    here = sum(find(file, folder) is not None for file in one.files)
    if here == len(one.files):
        return "yes"
    return f"{here} of {len(one.files)}" if here else "no"


def _describe(one: Entry, folder: Path | None) -> None:
    from demur.datasets import find

    rows, features, classes = one.shape
    typer.echo(f"{one.name}: {one.title}")
    typer.echo(f"  {rows:,} rows, {features:,} features, {classes} classes")
    typer.echo(f"  candidates  {'its own' if one.candidates else 'none; noise makes some'}")
    if one.parts:
        typer.echo(f"  parts       {', '.join(one.parts)}")
    typer.echo(f"  origin      {one.origin}")
    typer.echo(f"  licence     {one.licence}")
    for file in one.files:
        typer.echo(f"  file        {find(file, folder) or f'{file.path} (not here)'}")
        typer.echo(f"    from      {file.url or 'no address is known'}")
        typer.echo(f"    check     {file.check.replace(':', ' ')}")


class _Bar:
    """What pooch asks of a progress bar, shown by rich."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task: Any = progress.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: float) -> None:
        self._progress.update(self._task, total=size)

    def update(self, amount: int) -> None:
        self._progress.advance(self._task, amount)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        """Nothing is left open."""
