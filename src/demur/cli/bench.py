"""`demur bench`: run a grid of experiments, and make tables, figures and a report of it.

Each command is one function here, which parses, calls the library and prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
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
    except KeyboardInterrupt:
        typer.echo("\ndemur: interrupted; what is finished is kept.", err=True)
        raise typer.Exit(130) from None


@app.command("list")
def list_presets() -> None:
    """The presets, and how many runs each has."""
    from demur.bench.grid import expand, preset_names, read_preset

    for name in preset_names():
        preset = read_preset(name)
        typer.echo(f"{name:12} {len(expand(preset)):6,} runs  {preset['title']}")


@app.command()
def run(
    preset: Annotated[str, typer.Argument(help="A preset (see list), or a TOML file like one.")],
    out: Annotated[Path, typer.Option(help="Folder of the results; made if missing.")],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE,...",
            help="Runs with these values, or with others (FIELD!=VALUE): dataset, classes, noise, "
            "method, seed, test_size, run_id. Can be repeated; all must hold.",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="So many seeds, whatever the preset says.")
    ] = None,
    add_method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A method beside the preset's. Can be repeated."),
    ] = None,
    dial: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="What every method accepts by, in place of its own threshold: coverage=0.8, "
            "cost=0.1, or max_risk=0.05,n_gold=200.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Workers; -1 is one for each core.")] = -1,
    backend: Annotated[str, typer.Option(help="loky (this machine), dask or ray.")] = "loky",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask or Ray cluster that runs already.")
    ] = None,
    device: Annotated[str, typer.Option(help="Of networks: auto, cpu, cuda, ...")] = "auto",
    lanes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Workers for networks alone; by default one where there is a GPU, else none.",
        ),
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most networks to train in one go; else all, or on a CPU a few minutes' worth.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the datasets; else DEMUR_DATA's.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Begin nothing that would end later than so: 90s, 20m, 1h30m."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Do again what failed before.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show what would be done, and how long.")
    ] = False,
) -> None:
    """Do all runs of a preset. Killed at any moment, the same command goes on."""
    with usage_errors():
        from demur.bench.dialing import parse_dial
        from demur.bench.grid import expand, parse_filter, read_preset, select
        from demur.bench.run import run_grid
        from demur.cli import progress

        asked = None if dial is None else parse_dial(dial)
        grid = expand(read_preset(preset), seeds, add_method or [], asked)
        specs = select(grid, map(parse_filter, only or []))
        work = partial(
            run_grid,
            specs,
            out,
            jobs=jobs,
            backend=backend,
            scheduler=scheduler,
            device=device,
            lanes=lanes,
            data=data,
            retry_failed=retry_failed,
            budget=None if budget is None else progress.parse_duration(budget),
            stack=stack,
        )
        if plan:
            progress.show_plan(work(plan_only=True))
            return
        with progress.shown() as watch:
            tally = work(watch=watch)
    if progress.show_end(tally, out):
        raise typer.Exit(1)


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
        from demur.bench.promises import with_promises
        from demur.bench.published import reference_method
        from demur.bench.store import read_results

        results = read_results(folder)
        measures = measure_runs(results, reference=reference_method())
        averages = with_promises(summarise(measures, results.runs), results)
        text = averages.to_csv(index=False, float_format="%.6g")
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(text, encoding="utf-8")
    if out is None:
        typer.echo(text, nl=False)


@app.command()
def figures(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; by default DIR/figures.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Draw only this: trade-off, ranks, k-sensitivity, neighbors or expected-masses. "
            "May be given several times.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the datasets, for what looks at neighbours.")
    ] = None,
    draws: Annotated[
        int, typer.Option(min=2, help="Simulated draws for each number of neighbours.")
    ] = 100_000,
) -> None:
    """Trade-off curves, ranks, and what neighbourhoods hold: PDF and PNG, for paper and screen."""
    with usage_errors():
        from demur.bench.figures import KINDS, draw_figures

        drawn = draw_figures(
            folder,
            out,
            kinds=only or KINDS,
            data=data,
            n_draws=draws,
            watch=lambda name: typer.echo(f"drawing {name}"),
        )
    for reason in drawn.left_out:
        typer.echo(f"left out: {reason}")
    if drawn.files:
        typer.echo(f"{len(drawn.files)} files in {drawn.files[0].parent}")


@app.command()
def report(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="File to write; by default DIR/report.html.")
    ] = None,
) -> None:
    """One HTML page of everything: opens in any browser, offline."""
    with usage_errors():
        from demur.bench.report import write_report

        path = write_report(folder, out)
    typer.echo(f"The report: {path.resolve()}")
