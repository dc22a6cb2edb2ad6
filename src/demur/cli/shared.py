"""What the commands on files share: their errors in one line, progress, and common options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
SkipBad = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Go on without bad rows; they and the reasons go here."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="File that `demur fit` wrote.")]
Threshold = Annotated[
    float | None,
    typer.Option(help="Accept scores over it; by default the method's own."),
]


@contextmanager
def errors_in_one_line(debug: bool) -> Iterator[None]:
    """Tell what is wrong in one line: exit code 1 for bad data, 2 for wrong usage."""
    from demur.files.errors import DataError, UsageError

    try:
        yield
    except BrokenPipeError:
        sys.stderr.close()  # nobody reads on, as with `head`; there is nothing to say
        raise typer.Exit(1) from None
    except (DataError, UsageError, ImportError, ValueError, OSError) as error:
        if debug:
            raise
        code = 2 if isinstance(error, (UsageError, ImportError)) else 1
        typer.echo(f"demur: {error}", err=True)
        raise typer.Exit(code) from None
    except MemoryError:
        if debug:
            raise
        typer.echo("demur: this takes more memory than there is.", err=True)
        raise typer.Exit(1) from None


def split_list(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


@contextmanager
def progress_of(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error that counts rows, where a person looks on."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns: tuple[Any, ...] = (
        TextColumn(description),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(description, total=total)
        yield lambda rows: progress.advance(task, rows)


def say(text: str, output: Path) -> None:
    """A summary, which must not stand among decisions on standard output."""
    typer.echo(text, err=str(output) == "-")
