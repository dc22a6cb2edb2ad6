"""The tables of the published experiments, made of results: accuracy, risk, equal rejects, areas.

Everything is paired: a row of numbers is what all methods reached on one split of one setting
with the same candidates, and a pair that some method lacks is left out for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from demur.bench.curves import Setting, describe, in_order
from demur.bench.formats import Cell, Column, Table
from demur.bench.measures import SETTING, measure_runs, risk_of
from demur.bench.pairs import LinedUp, Ranking, line_up, rank_methods
from demur.bench.promises import has_dials, promises_table
from demur.bench.published import (
    Published,
    groups,
    published,
    published_costs,
    published_extent,
    reference_method,
)
from demur.bench.statistics import Better, bootstrap_intervals, compare_with_best
from demur.bench.store import Results

ALPHA = 0.05
_OTHER = "Other"  # datasets that are in no group of the text
_MARKED = (
    "Marked (bold, or *): the best mean, and those that do not differ significantly from it by a "
    f"paired t-test over settings and seeds at level {ALPHA}."
)
_BRACKETS = "In brackets: the number that the text prints."
_SPREAD = "± is the standard deviation over settings and seeds."
_READINGS = {
    "code": (
        "table-2-risk-as-published",
        "as published",
        "Errors are counted among the accepted only, at the threshold of a grid of 0.01 that is "
        "nearest to the method's own and leaves more than 10 accepted: so the published code, "
        "which made the text's numbers.",
    ),
    "text": (
        "table-2-risk-as-defined",
        "as the text defines it",
        "Errors are counted over all instances, at the method's own threshold: so the text's "
        "definition, for which it prints no numbers.",
    ),
}

Cells = dict[tuple[str, Column], Cell]
Told = dict[tuple[str, Column], Published]


class Ranked(NamedTuple):
    """A measure that methods are ranked by."""

    name: str
    values: str | pd.Series
    better: Better


def make_tables(results: Results) -> list[Table]:
    """All tables of some results.

    Parameters
    ----------
    results : Results
        What `read_results` gives.

    Returns
    -------
    list of Table
        Accuracy by group of datasets (table 1 of the text), risk (table 2), accuracy at the
        same share of rejects (table 3), areas under the risk-coverage curve, average ranks,
        accuracy by setting, and what the dials promised where there are some.
    """
    measures = measure_runs(results, reference=reference_method())
    return [
        accuracy_table(measures),
        risk_table(measures, "code"),
        risk_table(measures, "text"),
        same_rejects_table(measures),
        areas_table(measures),
        ranks_table(measures),
        settings_table(measures),
        *([promises_table(results)] if has_dials(results.runs) else []),
    ]


# --------------------------------------------------------------------- the text's tables


def accuracy_table(measures: pd.DataFrame) -> Table:
    """Table 1: test accuracy, averaged over the datasets of a group."""
    group_of = {name: group for group, names in groups().items() for name in names}
    groups_here = measures["dataset"].map(lambda name: group_of.get(name, _OTHER))
    cells: Cells = {}
    told: Told = {}
    notes, columns = [], []
    for group in [*groups(), _OTHER]:
        part = measures[groups_here == group]
        for noise in sorted(part["noise"].unique()):
            column = Column(group, noise)
            columns.append(column)
            of_noise = part[part["noise"] == noise]
            lined = line_up(of_noise, 100.0 * of_noise["accuracy"])
            cells |= _compared(column, lined, "higher")
            told |= _told(column, published("table1", group, noise))
            notes += _left_out(column, lined)
        notes += _whose(group, sorted(part["dataset"].unique()))
    return Table(
        "table-1-accuracy",
        "Table 1. Test accuracy in percent, averaged over the datasets of a group and the seeds",
        tuple(columns),
        _methods(measures),
        cells,
        told,
        (_MARKED, *([_BRACKETS] if told else []), _SPREAD, *notes),
    )


def _whose(group: str, datasets: list[str]) -> list[str]:
    """What a group is made of, where the text's is not known to be the same."""
    if not datasets:
        return []
    lacking = [name for name in groups().get(group, ()) if name not in datasets]
    if not lacking and group != _OTHER:
        return []
    more = f"; the text's group has also {', '.join(lacking)}" if lacking else ""
    return [f"{group} is here {', '.join(datasets)}{more}."]


def risk_table(measures: pd.DataFrame, reading: str) -> Table:
    """Table 2: the risk for several costs of a reject, in one of two readings; see `risk_of`."""
    cells: Cells = {}
    told: Told = {}
    columns = []
    for cost in published_costs():
        column = Column("", f"λ = {cost:.2f}", decimals=3, published_decimals=2)
        columns.append(column)
        lined = line_up(measures, risk_of(measures, cost, reading))
        cells |= _compared(column, lined, "lower")
        if reading == "code":
            told |= _told(column, published("table2", f"{cost:.2f}"))
    name, whose, how = _READINGS[reading]
    return Table(
        name,
        f"Table 2, {whose}. Risk, where an error costs 1 and a reject λ, averaged over settings "
        "and seeds",
        tuple(columns),
        _methods(measures),
        cells,
        told,
        (
            _MARKED,
            *([_BRACKETS] if told else []),
            how,
            _extent(measures),
            *_left_out("All columns", lined),
        ),
    )


def same_rejects_table(measures: pd.DataFrame) -> Table:
    """Table 3: accuracy of the accepted where all methods reject as much as the reference."""
    rejects, accuracy = (Column("", name, 2, 2) for name in ("rejects", "accuracy of the accepted"))
    shares = line_up(measures, 100.0 * measures["same_rejects"])
    reached = line_up(measures, 100.0 * measures["same_accuracy"])
    cells = _compared(rejects, shares, better=None) | _compared(accuracy, reached, "higher")
    told = _told(rejects, published("table3", "rejects"))
    told |= _told(accuracy, published("table3", "accuracy"))
    name = reference_method()
    notes = [
        _MARKED,
        _BRACKETS,
        f"In each setting all methods are brought to the share of rejects that {name} has there on "
        "average over the seeds, as near as the ties among their scores let them.",
        _extent(measures),
        *_left_out(accuracy, reached),
    ]
    if name not in set(measures["method"]):
        notes = [f"There are no results of {name}, whose rejects would be compared with."]
    return Table(
        "table-3-same-rejects",
        f"Table 3. Percent rejected, and accuracy of the accepted, at the rejects of {name}",
        (rejects, accuracy),
        _methods(measures),
        cells,
        told,
        tuple(notes),
    )


# ---------------------------------------------------------------------------- our own tables


def areas_table(measures: pd.DataFrame) -> Table:
    """Areas under the risk-coverage curve, with bootstrap intervals of the means."""
    cells: Cells = {}
    notes, columns = [], []
    for name in ("aurc", "excess_aurc", "augrc"):
        column = Column("", {"excess_aurc": "excess AURC"}.get(name, name.upper()), decimals=4)
        columns.append(column)
        lined = line_up(measures, name)
        cells |= _with_intervals(_compared(column, lined, "lower"), column, lined)
        notes += _left_out(column, lined)
    resampled = "seeds" if lined.n_settings == 1 else "settings, each with all its seeds"
    return Table(
        "table-4-areas",
        "Table 4. Areas under the risk-coverage curve, less is better, averaged over settings and "
        "seeds",
        tuple(columns),
        _methods(measures),
        cells,
        {},
        (
            _MARKED,
            "In parentheses: 95 % percentile intervals of the mean, from 10,000 bootstrap samples "
            f"of the {resampled}.",
            *dict.fromkeys(notes),
        ),
    )


def _with_intervals(cells: Cells, column: Column, lined: LinedUp) -> Cells:
    if not lined.values.size:
        return cells
    # Seeds of one setting are no independent witnesses of what holds over settings.
    rows = lined.values if lined.n_settings == 1 else lined.by_setting()
    # Each setting must weigh as much as it does in the mean; it does, unless pairs were left out.
    ends = bootstrap_intervals(rows)
    return {
        (method, column): cells[method, column]._replace(interval=(float(low), float(high)))
        for method, (low, high) in zip(lined.methods, ends, strict=True)
    }


def rankings(measures: pd.DataFrame) -> dict[str, Ranking]:
    """Average ranks by several measures, where at least two methods ran in the same setting."""
    ranked = (
        Ranked("accuracy", "accuracy", "higher"),
        Ranked("risk, λ = 0.10", risk_of(measures, 0.1, "text"), "lower"),
        Ranked("accuracy at the same rejects", "same_accuracy", "higher"),
        Ranked("AURC", "aurc", "lower"),
    )
    made = {r.name: rank_methods(measures, r.values, better=r.better, alpha=ALPHA) for r in ranked}
    return {name: ranking for name, ranking in made.items() if ranking is not None}


def ranks_table(measures: pd.DataFrame) -> Table:
    """Average ranks of the methods, by several measures."""
    cells: Cells = {}
    notes, columns = [], []
    for name, (methods, ranks) in rankings(measures).items():
        column = Column("", name, decimals=2)
        columns.append(column)
        best = ranks.average.min()
        differ = ranks.p_value < ALPHA
        for method, rank in zip(methods, ranks.average.tolist(), strict=True):
            near = not differ or rank - best <= ranks.critical_difference
            cells[method, column] = Cell(rank, n=ranks.n_settings, among_best=near)
        tested = "not tested" if np.isnan(ranks.p_value) else f"p = {ranks.p_value:.2g}"
        notes.append(
            f"By {name}: {ranks.n_settings} settings, Friedman {tested}, critical difference "
            f"{ranks.critical_difference:.2f}."
        )
    return Table(
        "table-5-ranks",
        "Table 5. Average ranks over settings, 1 is the best",
        tuple(columns),
        _methods(measures),
        cells,
        {},
        (
            "Marked (bold, or *): the best, and those nearer to it than the critical difference of "
            f"the Nemenyi test at level {ALPHA}; all, where the Friedman test finds no difference.",
            "Seeds of a setting are averaged first; the risk is the one that the text defines.",
            *notes,
        ),
    )


def settings_table(measures: pd.DataFrame) -> Table:
    """Accuracy in each setting."""
    cells: Cells = {}
    notes, columns = [], []
    keys = measures[SETTING].drop_duplicates().sort_values(SETTING).itertuples(index=False)
    settings = [Setting(*key) for key in keys]
    for setting in settings:
        name, _, noise = describe(setting, settings).rpartition(", ")
        column = Column(name, noise)
        columns.append(column)
        part = measures[(measures[SETTING] == list(setting)).all(axis=1)]
        lined = line_up(part, 100.0 * part["accuracy"])
        cells |= _compared(column, lined, "higher")
        notes += _left_out(column, lined)
    return Table(
        "accuracy-by-setting",
        "Test accuracy in percent in each setting, averaged over the seeds",
        tuple(columns),
        _methods(measures),
        cells,
        {},
        (_MARKED, "± is the standard deviation over the seeds.", *notes),
    )


# ------------------------------------------------------------------------------------ parts


def _methods(measures: pd.DataFrame) -> tuple[str, ...]:
    return tuple(in_order(measures["method"]))


def _compared(column: Column, lined: LinedUp, better: Better | None) -> Cells:
    """A cell for each method; without a better there is no best."""
    if not lined.values.size:
        return {}
    n = len(lined.values)
    means, stds, p_values, among_best = compare_with_best(
        lined.values, better=better or "higher", alpha=ALPHA
    )
    cells = {}
    for i, method in enumerate(lined.methods):
        cell = Cell(float(means[i]), float(stds[i]), n=n)
        if better is not None:
            cell = cell._replace(p_value=float(p_values[i]), among_best=bool(among_best[i]))
        cells[method, column] = cell
    return cells


def _told(column: Column, numbers: Mapping[str, Published]) -> dict[tuple[str, Column], Published]:
    return {(method, column): number for method, number in numbers.items()}


def _left_out(where: Column | str, lined: LinedUp) -> list[str]:
    """Which pairs a mean is without, and because of whom."""
    if not lined.n_left_out:
        return []
    title = where if isinstance(where, str) else where.title
    whose = ", ".join(f"{method} ({n})" for method, n in lined.left_out.items())
    total = lined.n_left_out + len(lined.values)
    return [
        f"{title}: {lined.n_left_out} of {total} pairs of setting and seed are left out for all, "
        f"as not every method has a number there: {whose}."
    ]


def _extent(measures: pd.DataFrame) -> str:
    settings, seeds = published_extent()
    ours = len(measures[SETTING].drop_duplicates()), measures["seed"].nunique()
    return (
        f"Averages and standard deviations (±) over {ours[0]} settings and {ours[1]} seeds; the "
        f"text's are over {settings} settings and {seeds} seeds, so the two differ also in that."
    )
