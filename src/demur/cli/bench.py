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


@app.command()
def tables(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; by default DIR/tables.")
    ] = None,
) -> None:
    """Tables 1 to 3 of the text, areas and ranks: shown, and written as txt, md, tex and csv."""
    with usage_errors():
        from demur.bench.store import read_results
        from demur.bench.tables import make_tables

        results = read_results(folder)
        made = make_tables(results)
        out = folder / "tables" if out is None else out
        out.mkdir(parents=True, exist_ok=True)
        for table in made:
            table.write(out)
    typer.echo("\n\n".join(str(table) for table in made))
    failed = int((results.runs["status"] != "ok").sum())
    if failed:
        typer.echo(
            f"{failed} of {len(results.runs)} runs failed; `demur bench summary` says whose."
        )
    typer.echo(f"Written as text, Markdown, LaTeX and CSV to {out}")


@app.command()
def summary(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(help="File to write instead of showing it.")] = None,
) -> None:
    """Averages over the seeds of each setting and method, as CSV."""
    with usage_errors():
        from demur.bench.measures import measure_runs, summarise
        from demur.bench.published import reference_method
        from demur.bench.store import read_results

        results = read_results(folder)
        measures = measure_runs(results, reference=reference_method())
        text = summarise(measures, results.runs).to_csv(index=False, float_format="%.6g")
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(text, encoding="utf-8")
    if out is None:
        typer.echo(text, nl=False)
