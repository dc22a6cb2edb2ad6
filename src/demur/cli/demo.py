"""`demur demo`: two methods on the digits, at a glance."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from demur.demo import Demo


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture; made if missing.")] = Path(
        "demo"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Splits and noise to average over.")] = 5,
) -> None:
    """DST-PLL against PL-KNN on scikit-learn's digits: table, explanation, picture."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console()
    start = time.perf_counter()
    console.print(
        "1,797 images of digits; 70 % of those to learn from carry a wrong label beside the right "
        "one.\nEach method predicts the other fifth, and withholds what it is not sure of.\n"
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("loading", total=2 * seeds)
        from demur.demo import run_demo

        progress.update(task, description="learning")
        shown = run_demo(seeds, advance=lambda: progress.advance(task))
    console.print(_table(shown, seeds))
    console.print(f"\nOne image that dst-pll withholds; its label is {shown.digit_label}:\n")
    console.print(_image(shown), highlight=False)
    console.print(str(shown.explanation), highlight=False, markup=False)
    _draw(shown, out)
    console.print(f"\n{time.perf_counter() - start:.1f} s in all")


def _table(shown: Demo, seeds: int) -> Table:
    from rich.table import Table

    from demur.demo import MEASURES

    table = Table(title=f"Mean and standard deviation over {seeds} seed(s)", title_justify="left")
    table.add_column("method")
    for measure in MEASURES:
        table.add_column(measure, justify="right")
    for result in shown.results:
        cells = []
        for measure in MEASURES:
            mean, deviation = result.summary(measure)
            if measure == "AURC":
                cells.append(f"{mean:.4f} ± {deviation:.4f}")
            else:
                cells.append(f"{100 * mean:.1f} ± {100 * deviation:.1f} %")
        table.add_row(result.name, *cells)
    table.caption = (
        "coverage: share not withheld, by each method's own rule; "
        "AURC: mean error over all coverages, less is better"
    )
    return table


def _image(shown: Demo) -> str:
    """The digit in shades, two characters a pixel."""
    shades = " ░▒▓█"
    levels = (shown.digit / 16 * (len(shades) - 1)).round().astype(int)
    return "\n".join("    " + "".join(2 * shades[v] for v in row) for row in levels) + "\n"


def _draw(shown: Demo, out: Path) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        typer.echo('\nNo picture: it needs matplotlib, pip install "demur[plot]".')
        return
    mpl.use("Agg")
    path = out / "trade-off.png"
    try:
        out.mkdir(parents=True, exist_ok=True)
        shown.draw(path)
    except OSError as error:
        typer.echo(f"cannot write {path}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"\nThe trade-off between rejecting and being right: {path.resolve()}")
