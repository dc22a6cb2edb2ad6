"""How far a grid of runs is: a live table in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from demur.bench.spec import Spec
    from demur.bench.tally import Tally

_EVERY = 15.0  # seconds between the lines where there is no terminal
_SHOWN = 20  # failures that are told in full
_STATES = ("ok", "running", "failed", "waiting")
_HEADS = {"ok": "done"}


@contextmanager
def shown() -> Iterator[Any]:
    """Give what `run_grid` can be watched with."""
    console = Console()
    display = _Display(console)
    if not console.is_terminal:
        yield display.say
        return
    with Live(get_renderable=display.render, console=console, refresh_per_second=4):
        yield display.see


class _Display:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.tally: Tally | None = None
        self.said = 0.0

    def see(self, tally: Tally) -> None:
        if self.tally is None:
            self._say_shares(tally)
        self.tally = tally

    def say(self, tally: Tally) -> None:
        """A line, if the last one is long ago."""
        if self.tally is None:
            self._say_shares(tally)
        self.tally = tally
        now = time.monotonic()
        if now - self.said > _EVERY:
            self.said = now
            self.console.print(one_line(tally), highlight=False)

    def _say_shares(self, tally: Tally) -> None:
        for line in share_lines(tally):
            self.console.print(line, highlight=False, soft_wrap=True)

    def render(self) -> Any:
        return Text("") if self.tally is None else progress_table(self.tally)


def one_line(tally: Tally) -> str:
    """The state of a grid in one line."""
    counts = tally.count()
    parts = [f"{counts['ok']:,} of {len(tally.specs):,} done"]
    parts += [f"{counts[state]:,} {state}" for state in ("running", "failed") if counts[state]]
    if counts["waiting"] or counts["running"]:
        parts.append(f"about {duration(tally.seconds_left())} left")
    return f"{duration(tally.elapsed)}: {', '.join(parts)}"


def share_lines(tally: Tally) -> list[str]:
    """What each crew of workers is to do, or has done, and how long that takes."""
    lines = []
    for share in tally.shares:
        if not share.tasks:
            continue
        crew = "lane" if share.name == "networks" else "worker"
        told = (
            f"{share.name}: {share.runs:,} in {share.tasks:,} tasks with {share.workers} {crew}(s)"
        )
        about = f"about {duration(share.estimate)}"
        if share.seconds is None:
            lines.append(f"{told}, {about}")
        else:
            lines.append(f"{told} took {duration(share.seconds)}; expected was {about}")
    return lines


def progress_table(tally: Tally) -> Any:
    """A line for each method: runs done, running, failed and waiting, and seconds of work."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("method")
    for state in _STATES:
        table.add_column(_HEADS.get(state, state), justify="right")
    table.add_column("work", justify="right")
    methods = dict.fromkeys(spec.method for spec in tally.specs)
    sums: Counter[str] = Counter()
    for method in methods:
        specs = [spec for spec in tally.specs if spec.method == method]
        counts = tally.count(specs)
        sums.update(counts)
        cells = [_number(counts[state], state) for state in _STATES]
        table.add_row(method, *cells, duration(tally.seconds(specs)))
    done, total = sums["ok"] + sums["failed"], len(tally.specs)
    table.add_section()
    table.add_row("all", *(_number(sums[s], s) for s in _STATES), "", style="bold")
    told = [f"{done:,} of {total:,}", f"{duration(tally.elapsed)} passed"]
    if done < total:
        told.append(f"about {duration(tally.seconds_left())} left")
    if tally.old:
        told.append(f"{tally.old:,} were there before")
    if tally.elsewhere:
        told.append(f"{tally.elsewhere:,} are at work in another process")
    below = Table.grid()
    below.add_row(ProgressBar(total=max(total, 1), completed=done, width=60))
    below.add_row(", ".join(told))
    return Group(table, "", below)


def _number(n: int, state: str) -> Text:
    return Text(f"{n:,}" if n else "-", style="red" if n and state == "failed" else "")


def duration(seconds: float) -> str:
    """A time in two units.

    Examples
    --------
    >>> from demur.cli.progress import duration
    >>> [duration(s) for s in (0.034, 8.3, 75, 3700, 100_000)]
    ['0.03 s', '8.3 s', '1 min 15 s', '1 h 1 min', '27 h 46 min']
    """
    if seconds < 1.0:
        return f"{seconds:.2f} s" if seconds else "0 s"
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def parse_duration(text: str) -> float:
    """Seconds of a time as it is typed.

    Examples
    --------
    >>> from demur.cli.progress import parse_duration
    >>> [parse_duration(text) for text in ("90", "90s", "20m", "1h30m")]
    [90.0, 90.0, 1200.0, 5400.0]
    """
    found = re.fullmatch(r"(?:([\d.]+)h)?(?:([\d.]+)m(?:in)?)?(?:([\d.]+)s?)?", text.strip())
    try:
        parts = [float(part or 0) for part in found.groups()] if found and text.strip() else []
    except ValueError:
        parts = []
    if not parts:
        raise ValueError(f"{text!r} is no time; write 90s, 20m or 1h30m.")
    return parts[0] * 3600 + parts[1] * 60 + parts[2]


# ------------------------------------------------------------------------ before and after


def show_plan(tally: Tally) -> None:
    """What a grid would do, and about how long it would take."""
    console = Console()
    console.print(_plan_table(tally, "dataset", _dataset_of), "")
    console.print(_plan_table(tally, "method", lambda spec: spec.method))
    counts = tally.count()
    console.print(
        f"\n{len(tally.specs):,} runs: {counts['ok']:,} done, {counts['failed']:,} failed, "
        f"{counts['waiting']:,} to do in about {duration(tally.seconds_left())}.",
        highlight=False,
        soft_wrap=True,
    )
    if tally.encoders:
        work = duration(sum(tally.encoders.values()))
        told = f"{len(tally.encoders)} encoder(s) to train first, about {work} of work"
        console.print(told, highlight=False)
    for line in share_lines(tally):
        console.print(line, highlight=False, soft_wrap=True)
    if not tally.costs.is_learned:
        console.print(
            "None is done yet, so this is only the order of magnitude, by rates that were measured "
            "on another machine; each finished run makes it better.",
            soft_wrap=True,
        )


def _plan_table(tally: Tally, heading: str, name: Callable[[Spec], str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(heading)
    for head in ("runs", "to do", "work to do"):
        table.add_column(head, justify="right")
    groups: dict[str, list[Spec]] = {}
    for spec in tally.specs:
        groups.setdefault(name(spec), []).append(spec)
    for group, specs in groups.items():
        left = [spec for spec in specs if spec.run_id not in tally.status]
        work = duration(tally.estimate(left)) if left else "-"
        table.add_row(group, f"{len(specs):,}", f"{len(left):,}", work)
    return table


def _dataset_of(spec: Spec) -> str:
    return spec.dataset if spec.classes == "all" else f"{spec.dataset} ({spec.classes})"


def show_end(tally: Tally, out: Path) -> bool:
    """What became of a grid; whether anything failed."""
    from demur.bench.tally import UNFINISHED

    counts = tally.count()
    failures = tally.failures()
    for path in tally.damaged:
        typer.echo(f"{path} was damaged, and its run done anew.", err=True)
    for spec, why in failures[:_SHOWN]:
        typer.echo(f"failed: {spec}: {why}", err=True)
    if len(failures) > _SHOWN:
        typer.echo(f"... and {len(failures) - _SHOWN:,} more; the report tells all.", err=True)
    if tally.put_off:
        typer.echo("Not begun, for want of time (the same command goes on with them):")
        groups: dict[str, list[Spec]] = {}
        for spec in tally.put_off:
            groups.setdefault(f"{spec.method} on {spec.dataset}", []).append(spec)
        for name, specs in groups.items():
            work = duration(tally.estimate(specs))
            typer.echo(f"  {name}: {len(specs)} run(s), about {work} of work")
    for line in share_lines(tally):
        typer.echo(line)
    if counts["ok"] < len(tally.specs):
        typer.echo(f"What is not done is listed in {out / UNFINISHED}")
    typer.echo(
        f"{counts['ok']:,} of {len(tally.specs):,} runs are done ({tally.old:,} were before), "
        f"{len(failures):,} failed, in {duration(tally.elapsed)}. Next: demur bench tables {out}"
    )
    return bool(failures)
