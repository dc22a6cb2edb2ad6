"""One HTML page of all results: it opens offline, and asks nothing of any other place."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from demur import __version__
from demur.bench.curves import TradeOffCurve, describe, in_order, trade_off_curves
from demur.bench.formats import Table
from demur.bench.markup import Html, as_script_data, element, joined
from demur.bench.measures import measure_runs
from demur.bench.published import reference_method
from demur.bench.sections import (
    extent,
    failures_section,
    runs_section,
    table_markup,
    time_section,
)
from demur.bench.statistics import alike_groups
from demur.bench.store import Results, read_results
from demur.bench.styles import styles_of
from demur.bench.tables import make_tables, rankings

_DIGITS = 5  # of shares in the page: a thousandth of a percent
_CURVES = (
    "Accuracy of the predictions that are kept, against the share that is rejected: a mean over "
    "the seeds. A marker is what a method's own threshold gives; there is none where that rejects "
    "everything. Lines end where fewer than {least} predictions are left, as the accuracy of so "
    "few is mostly chance. Point at a chart to read it."
)
_LEAST = 10


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a folder of results.

    Parameters
    ----------
    folder : path
        Of ``demur bench run --out``.
    out : path, optional
        The file; ``folder/report.html`` by default.

    Returns
    -------
    Path
    """
    results = read_results(folder)
    path = Path(folder, "report.html") if out is None else Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    page = make_page(results, Path(folder).resolve().name)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.write_text(page, encoding="utf-8", newline="\n")
    os.replace(draft, path)
    return path


def make_page(results: Results, name: str) -> str:
    """The whole page, as text.

    Parameters
    ----------
    results : Results
    name : str
        What the page is called by.
    """
    if (results.runs["status"] == "ok").any():
        measures = measure_runs(results, reference=reference_method())
        curves = trade_off_curves(results, min_accepted=_LEAST)
        tables = make_tables(results)
        ranks = _ranks(rankings(measures))
    else:
        curves, tables, ranks = [], [], []
    methods = in_order(results.runs["method"])
    style = _read("report.css") + _colors(methods)
    script = _read("report.js")
    return Template(_read("report.html")).substitute(
        policy=(
            f"default-src 'none'; img-src data:; style-src {_sha256(style)}; "
            f"script-src {_sha256(script)}; base-uri 'none'; form-action 'none'"
        ),
        title=joined([f"{name} – demur"]),
        style=style,
        body=_body(results, name, tables, bool(curves), [r["name"] for r in ranks]),
        data=as_script_data(_data(curves, methods, ranks)),
        script=script,
    )


def _read(name: str) -> str:
    return (resources.files("demur.bench") / "page" / name).read_text("utf-8")


def _sha256(text: str) -> str:
    """The one script, or style, that the browser may use."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _colors(methods: list[str]) -> str:
    """Rules for the colour of each method, by its place."""
    styles = list(styles_of(methods).values())
    light = "".join(f".m{i}{{--c:{style.color}}}" for i, style in enumerate(styles))
    dark = "".join(f".m{i}{{--c:{style.on_dark}}}" for i, style in enumerate(styles))
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


# ------------------------------------------------------------- what the script works with


def _data(
    curves: list[TradeOffCurve], methods: list[str], ranks: list[dict[str, Any]]
) -> dict[str, Any]:
    place = {name: i for i, name in enumerate(methods)}
    settings = list(dict.fromkeys(curve.setting for curve in curves))
    for ranked in ranks:
        ranked["methods"] = [place[name] for name in ranked["methods"]]
    return {
        "methods": [
            {"name": name, "dashes": style.dashes, "marker": style.marker}
            for name, style in styles_of(methods).items()
        ],
        "datasets": sorted({setting.dataset for setting in settings}),
        "noises": sorted({setting.noise for setting in settings}),
        "settings": [
            {
                "dataset": setting.dataset,
                "noise": setting.noise,
                "title": describe(setting, settings),
                "curves": [_curve(c, place) for c in curves if c.setting == setting],
            }
            for setting in settings
        ],
        "ranks": ranks,
    }


def _curve(curve: TradeOffCurve, place: dict[str, int]) -> dict[str, Any]:
    point = [_number(value) for value in curve.operating_point]
    return {
        "method": place[curve.method],
        "runs": curve.n_runs,
        "end": _number(curve.rejected[-1]),
        "accuracy": np.round(curve.accuracy, _DIGITS).tolist(),
        "point": None if point[0] is None else point,
        "aurc": round(curve.aurc, 6),
    }


def _number(value: float) -> float | None:
    """JSON knows no NaN."""
    return None if np.isnan(value) else round(float(value), _DIGITS)


def _ranks(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "methods": list(methods),
            "average": ranks.average.round(_DIGITS).tolist(),
            "critical": round(ranks.critical_difference, _DIGITS),
            "settings": ranks.n_settings,
            "groups": alike_groups(ranks.average, ranks.critical_difference),
        }
        for name, (methods, ranks) in found.items()
    ]


# ------------------------------------------------------------------------ what is written


def _body(
    results: Results, name: str, tables: list[Table], has_curves: bool, ranked: list[str]
) -> Html:
    sections: dict[str, tuple[str, Html]] = {}
    if has_curves:
        sections["curves"] = "Trade-off curves", _curves_section()
        sections["tables"] = "Tables", joined(table_markup(table) for table in tables)
    if ranked:
        sections["ranks"] = "Ranks", _ranks_section()
    sections["time"] = "Time", time_section(results.runs)
    sections["failures"] = "Failures", failures_section(results)
    sections["runs"] = "Runs", runs_section(results.runs)
    links = [element("a", title, href=f"#{key}") for key, (title, _) in sections.items()]
    return joined(
        [
            element(
                "div",
                element("p", "demur benchmark report", class_="lead"),
                element("h1", name),
                extent(results.runs),
                class_="top",
            ),
            element("nav", element("div", *links), aria_label="Sections"),
            element(
                "main",
                *(
                    element("section", element("h2", title), content, id=key)
                    for key, (title, content) in sections.items()
                ),
                element(
                    "footer", f"Made by demur {__version__}, from the files of these runs only."
                ),
            ),
            element("div", class_="tip card", id="tip", hidden="hidden", role="status"),
        ]
    )


def _curves_section() -> Html:
    return joined(
        [
            element("p", _CURVES.format(least=_LEAST), class_="soft"),
            element("div", class_="filters card", id="filters"),
            element("p", class_="count", id="count", role="status"),
            element("div", class_="charts", id="charts"),
            element(
                "details",
                element("summary", "The numbers of these settings and methods"),
                element(
                    "p", "Rejected and accepted: at each method's own threshold.", class_="soft"
                ),
                element("div", class_="scroll", id="numbers"),
                class_="card",
            ),
            element(
                "noscript",
                element("p", "The curves are drawn by a script, which is turned off here."),
            ),
        ]
    )


def _ranks_section() -> Html:
    return joined(
        [
            element(
                "p",
                "Average ranks over the settings that all the methods have; 1 is the best. A bar "
                "joins methods that differ by no more than the critical difference (Nemenyi test).",
                class_="soft",
            ),
            element("div", class_="ranks", id="rank-charts"),
        ]
    )
