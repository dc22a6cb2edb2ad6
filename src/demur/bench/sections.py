"""The parts of the report that need no script: what was run, tables, time, failures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from demur.bench.curves import in_order
from demur.bench.dialing import describe_dial
from demur.bench.formats import Cell, Column, Table
from demur.bench.markup import Html, element, joined
from demur.bench.measures import missing_runs
from demur.bench.spec import Spec
from demur.bench.store import Results

_ABSENT = "–"
_SECONDS = ["seconds_prepare", "seconds_fit", "seconds_predict"]
NOT_RUN = "not run"  # as `missing_runs` says
_MOST_LISTED = 40  # runs of one failure


# -------------------------------------------------------------------------------- extent


def extent(runs: pd.DataFrame) -> Html:
    """What was run and on what, at a glance."""
    failed = int((runs["status"] != "ok").sum())
    settings = runs[["dataset", "classes", "noise"]].drop_duplicates()
    tiles = [
        _tile(f"{len(runs):,}", "run" if len(runs) == 1 else "runs"),
        _tile(len(settings), "setting" if len(settings) == 1 else "settings"),
        _tile(runs["method"].nunique(), "methods"),
        _tile(runs["seed"].nunique(), "seeds"),
        _tile(duration(_seconds(runs).to_numpy().sum()), "computing"),
        _tile(f"{failed:,}", "failed", bad=failed > 0),
    ]
    dials = [json.loads(text) for text in dict.fromkeys(_texts(runs, "dial"))]
    told = {
        "Datasets": ", ".join(sorted(runs["dataset"].unique())),
        "Methods": ", ".join(in_order(runs["method"])),
        **({"Dials": "; ".join(map(describe_dial, dials))} if dials else {}),
        "When": _when(runs),
        "Machine": _counted(_machines(runs)),
        "Device": _counted(_texts(runs, "device")),
        "Versions": _counted(_versions(runs)),
    }
    rows = [
        element(tag, text)
        for pair in told.items()
        for tag, text in zip(("dt", "dd"), pair, strict=False)
    ]
    return joined([element("div", *tiles, class_="tiles"), element("dl", *rows, class_="told")])


def _tile(value: object, what: str, *, bad: bool = False) -> Html:
    kind = "tile card bad" if bad else "tile card"
    return element("div", element("b", value), element("span", what), class_=kind)


def _when(runs: pd.DataFrame) -> str:
    times = sorted(_texts(runs, "time"))
    if not times:
        return _ABSENT
    first, last = (
        time.replace("T", " ").replace("+00:00", " UTC") for time in (times[0], times[-1])
    )
    return first if first == last else f"{first} to {last}"


def _texts(runs: pd.DataFrame, column: str) -> list[str]:
    return [str(v) for v in runs[column].dropna()] if column in runs else []


def _machines(runs: pd.DataFrame) -> Iterable[str]:
    for text in _texts(runs, "machine"):
        told = json.loads(text)
        cores = f"{told['cores']} cores" if told.get("cores") else None
        yield ", ".join(str(v) for v in (told.get("processor"), cores, told.get("system")) if v)


def _versions(runs: pd.DataFrame) -> Iterable[str]:
    for text in _texts(runs, "versions"):
        yield ", ".join(f"{name} {version}" for name, version in json.loads(text).items())


def _counted(texts: Iterable[str]) -> str:
    """The different texts, with the number of runs of each where there are several."""
    counts = pd.Series(list(texts), dtype=object).value_counts()
    if counts.empty:
        return _ABSENT
    if len(counts) == 1:
        return str(counts.index[0])
    return "; ".join(f"{text} ({n:,} runs)" for text, n in counts.items())


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them.

    Examples
    --------
    >>> from demur.bench.sections import duration
    >>> [duration(s) for s in (0.0123, 4.56, 90, 5400, 90000)]
    ['12 ms', '4.6 s', '1.5 min', '1.5 h', '25.0 h']
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


# -------------------------------------------------------------------------------- tables


def data_table(head: Sequence[object], rows: Iterable[Sequence[object]], texts: int = 1) -> Html:
    """A table whose first columns hold text, and the others numbers."""
    kinds = ["text" if i < texts else None for i in range(len(head))]
    top = [element("th", h, scope="col", class_=k) for h, k in zip(head, kinds, strict=True)]
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", v, class_=k) for v, k in zip(row[1:], kinds[1:], strict=True)),
        )
        for row in rows
    ]
    table = element(
        "table", element("thead", element("tr", *top)), element("tbody", *body), class_="data"
    )
    return element("div", table, class_="scroll card", tabindex="0")


def table_markup(table: Table) -> Html:
    """A table of the benchmark, with its title and notes."""
    parts = {column: _parts_of(column, table) for column in table.columns}
    wide = {column: len(kinds) for column, kinds in parts.items()}
    heads = [element("th", "method", scope="col")]
    heads += [element("th", c.name, scope="col", colspan=wide[c]) for c in table.columns]
    top = [element("tr", *heads)]
    groups = [(group, list(columns)) for group, columns in groupby(table.columns, _group)]
    if any(group for group, _ in groups):
        over = [
            element("th", _long(group), colspan=sum(wide[c] for c in columns), class_="group")
            for group, columns in groups
        ]
        top.insert(0, element("tr", element("th"), *over))
    body = [
        element(
            "tr",
            element("th", method, scope="row"),
            *(cell for c in table.columns for cell in _cells(method, c, table, parts[c])),
        )
        for method in table.methods
    ]
    whole = element("table", element("thead", *top), element("tbody", *body), class_="data")
    notes = [element("li", note) for note in table.notes]
    return joined(
        [
            element("h3", table.title),
            element("div", whole, class_="scroll card", tabindex="0"),
            element("ul", *notes, class_="notes") if notes else None,
        ]
    )


def _group(column: Column) -> str:
    return column.group


def _long(text: str) -> Html:
    """A name that may be too long to be shown in full."""
    return element("span", text, class_="long", title=text)


def _parts_of(column: Column, table: Table) -> list[str]:
    """What is told in a column; each part has a place of its own, so that numbers line up."""
    cells = [table.cells.get((method, column)) for method in table.methods]
    spreads = any(cell is not None and _spread(column, cell) for cell in cells)
    printed = any((method, column) in table.published for method in table.methods)
    return ["mean", *(["spread"] if spreads else []), *(["printed"] if printed else [])]


def _cells(method: str, column: Column, table: Table, parts: list[str]) -> list[Html]:
    cell, told = table.cells.get((method, column)), table.published.get((method, column))
    texts = {
        "mean": _ABSENT if cell is None else f"{cell.mean:.{column.decimals}f}",
        "spread": "" if cell is None else _spread(column, cell),
        "printed": "" if told is None else f"[{told.mean:.{column.published_decimals}f}]",
    }
    best = {"mean": cell is not None and cell.among_best, "printed": told is not None and told.best}
    return [
        element(
            "td",
            texts[part],
            class_=" ".join(
                [
                    part,
                    *(["best"] if best.get(part) else []),
                    *(["end"] if part == parts[-1] else []),
                ]
            ),
        )
        for part in parts
    ]


def _spread(column: Column, cell: Cell) -> str:
    digits = column.decimals
    if cell.interval is not None:
        low, high = cell.interval
        return f"({low:.{digits}f} to {high:.{digits}f})"
    return "" if np.isnan(cell.std) else f"± {cell.std:.{digits}f}"


# ---------------------------------------------------------------------------------- time


def time_section(runs: pd.DataFrame) -> Html:
    """Seconds and memory of each method."""
    taken = _seconds(runs).assign(method=runs["method"], peak=runs["peak_mib"])
    by = {str(method): part for method, part in taken.groupby("method")}
    total = {method: float(part[_SECONDS].to_numpy().sum()) for method, part in by.items()}
    longest = max(total.values(), default=0.0)
    rows = []
    for method in in_order(by):
        part = by[method]
        prepare, fit, predict = part[_SECONDS].mean()
        rows.append(
            [
                method,
                len(part),
                *(duration(s) for s in (prepare, fit, predict)),
                duration(total[method]),
                _bar(part, longest),
                _ABSENT if part["peak"].isna().all() else f"{part['peak'].max():,.0f} MiB",
            ]
        )
    head = ["method", "runs", "prepare", "fit", "predict", "in all", "", "peak memory"]
    return joined(
        [
            element(
                "p",
                "Means of a run, and the sum over all runs, failed ones included. To prepare is to "
                "load, split, scale and draw candidates. Runs trained as one stack share its time "
                "evenly; the peak is of the process that did the work. Bars: preparing is grey, "
                "fitting dark, predicting light.",
                class_="soft",
            ),
            data_table(head, rows),
        ]
    )


def _seconds(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[_SECONDS].astype(np.float64).fillna(0.0)


def _bar(part: pd.DataFrame, longest: float) -> Html:
    """Seconds of all steps one after the other; the longest method's bar is full."""
    rects, start = [], 0.0
    for name in _SECONDS:
        width = 100.0 * float(part[name].sum()) / (longest or 1.0)
        kind = name.removeprefix("seconds_")
        rects.append(
            element("rect", class_=kind, x=f"{start:.2f}", width=f"{width:.2f}", height=10)
        )
        start += width
    return element(
        "svg",
        *rects,
        class_="bar",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


# ------------------------------------------------------------------------------ failures


def failures_section(results: Results) -> Html:
    """Runs that failed, by reason, and runs that are not there."""
    missing = missing_runs(results.runs)
    if missing.empty and not results.damaged:
        return element("p", "None: every run of every method is there.", class_="soft")
    tracebacks = _tracebacks(results.runs)
    absent = missing["why"] == NOT_RUN
    parts = [
        _failure(method, why, part, tracebacks)
        for (method, why), part in missing[~absent].groupby(["method", "why"], sort=False)
    ]
    parts += [
        _listed(f"{_count(part)} of {method} ", "not run, though others ran there", part)
        for method, part in missing[absent].groupby("method", sort=False)
    ]
    if results.damaged:
        names = ", ".join(path.name for path in results.damaged)
        parts.append(element("p", f"Files that cannot be read, and are left out: {names}"))
    return joined(parts)


def _failure(
    method: str, why: str, part: pd.DataFrame, tracebacks: dict[tuple[Any, ...], str]
) -> Html:
    keys = part.itertuples(index=False, name=None)
    trace = next((tracebacks[key] for key in keys if key in tracebacks), None)
    more = None if trace is None else element("pre", trace)
    return _listed(f"{_count(part)} of {method} failed: ", why, part, more, kind="card failure")


def _count(part: pd.DataFrame) -> str:
    return f"{len(part):,} run{'' if len(part) == 1 else 's'}"


def _listed(
    head: str, why: str, part: pd.DataFrame, more: Html | None = None, kind: str = "card"
) -> Html:
    """Runs with the same fate, to be unfolded."""
    where = [
        str(Spec(r.dataset, r.method, r.noise, r.seed, classes=r.classes))
        for r in part.head(_MOST_LISTED).itertuples()
    ]
    if len(part) > _MOST_LISTED:
        where.append(f"and {len(part) - _MOST_LISTED} more")
    runs = element("ul", *(element("li", text) for text in where), class_="notes")
    return element("details", element("summary", element("b", head), why), runs, more, class_=kind)


def _tracebacks(runs: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    if "traceback" not in runs:
        return {}
    failed = runs[runs["traceback"].notna()]
    keys = ["dataset", "classes", "noise", "seed", "method", "error"]
    return dict(
        zip(failed[keys].itertuples(index=False, name=None), failed["traceback"], strict=True)
    )


# -------------------------------------------------------------------------- what was run


def runs_section(runs: pd.DataFrame) -> Html:
    """Settings and methods with their parameters."""
    facts = runs.reindex(columns=[*runs.columns, *_absent(runs, "mean_candidates", "stack")])
    settings = [
        [
            dataset,
            classes,
            noise,
            _parameters(part["noise_parameters"]),
            *(_one(part[name]) for name in ("n_train", "n_test", "n_features", "n_classes")),
            _one(part["mean_candidates"], "{:.2f}"),
            _ok_of(part),
        ]
        for (dataset, classes, noise), part in facts.groupby(["dataset", "classes", "noise"])
    ]
    by = {str(method): part for method, part in facts.groupby("method")}
    methods = [
        [
            method,
            _parameters(by[method]["parameters"]),
            _parameters(by[method]["encoder"]),
            _one(by[method]["threshold"], "{:g}"),
            _ok_of(by[method]),
        ]
        for method in in_order(by)
    ]
    return joined(
        [
            element("h3", "Settings"),
            data_table(
                ["dataset", "classes", "noise", "its parameters", "train", "test", "features",
                 "labels", "candidates", "runs"],
                settings,
                texts=4,
            ),
            element(
                "ul",
                element("li", "candidates: mean size of the sets to learn from."),
                element("li", "runs: those that finished, of all."),
                class_="notes",
            ),
            element("h3", "Methods"),
            data_table(
                ["method", "parameters other than by default", "encoder", "accepts over", "runs"],
                methods,
                texts=3,
            ),
        ]
    )  # fmt: skip


def _absent(runs: pd.DataFrame, *names: str) -> list[str]:
    return [name for name in names if name not in runs]


def _parameters(texts: pd.Series) -> str:
    """Parameters as they differ among the runs, each once."""
    told = [
        ", ".join(f"{name} = {value}" for name, value in json.loads(text).items())
        for text in texts.unique()
    ]
    return "; ".join(text for text in told if text) or _ABSENT


def _one(values: pd.Series, form: str = "{:,.0f}") -> str:
    """A number, or the range it has over the runs."""
    numbers = values.dropna().astype(np.float64)
    if numbers.empty:
        return _ABSENT
    ends = dict.fromkeys(form.format(v) for v in (numbers.min(), numbers.max()))
    return " to ".join(ends)


def _ok_of(part: pd.DataFrame) -> str:
    ok = int((part["status"] == "ok").sum())
    return f"{ok:,}" if ok == len(part) else f"{ok:,} of {len(part):,}"
