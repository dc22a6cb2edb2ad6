"""What the dials promised, and whether the judged instances bear it out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import betabinom, binom

from demur.bench.curves import in_order
from demur.bench.dialing import describe_dial
from demur.bench.formats import Cell, Column, Table
from demur.bench.measures import SETTING
from demur.bench.store import Results

LEVEL = 0.05
_PER_CENT = ("promised", "coverage", "accepted_accuracy", "over_bound", "kept")
_NAMES = {
    "promised": "promised",
    "coverage": "coverage",
    "accepted_accuracy": "accuracy of the accepted",
    "risk": "risk",
    "over_bound": "over the bound",
    "kept": "kept",
}
_NOTES = {
    "coverage": (
        "Coverage: half of the test part set the threshold, the other half is judged. The risk is "
        "the error among the accepted, on which nothing is promised. Kept: the share accepted is "
        "one of the middle 95 % that chance allows for two such halves."
    ),
    "cost": ("Cost: nothing is promised. The risk is error + cost x rejected over all instances."),
    "certificate": (
        "Certificate: the gold labels were drawn from half of the test part, the other half is "
        "judged. The risk is the error among the accepted. Promised: where some threshold passed; "
        "elsewhere everything is rejected. Over the bound, of those promised: the error among the "
        "accepted judged instances is larger than what was certified, which so few may show by "
        "chance. Kept: all but those where chance would show so many errors in at most 5 % if the "
        "bound were true; a certificate may be false in 1 - confidence of the runs."
    ),
    "conditional bound": (
        "Conditional: the bound holds if a wrong accepted prediction lies inside its candidate set "
        "with no more than the declared ambiguity, which nothing checks. Over the bound and kept: "
        "as for a certificate, without gold labels."
    ),
}


def has_dials(runs: pd.DataFrame) -> bool:
    """Whether any finished run has a dial."""
    return "promise" in runs and bool(runs["promise"].notna().any())


def measure_promises(results: Results) -> pd.DataFrame:
    """What each finished run with a dial promised, and what came of it.

    Returns
    -------
    DataFrame
        One row a run: dataset, classes, noise, method, seed, ``dial`` in words, ``kind`` of the
        promise, and

        - ``promised``: 1 where anything is promised, else 0;
        - ``coverage``, and ``accepted_accuracy`` (NaN where none is accepted);
        - ``risk``: for a cost, error + cost x rejected; else the error among the accepted;
        - ``over_bound``: of a promised bound, 1 where the risk of the judged is larger;
        - ``kept``: 0 where the judged speak against the promise at a level of 5 %, else 1; NaN
          where nothing is promised, or a bound has nothing to be seen by.
    """
    runs = results.runs[(results.runs["status"] == "ok") & results.runs["promise"].notna()]
    rows = results.rows
    places = rows.groupby("run_id", sort=False).indices
    wrong = (rows["y_true"] != rows["y_pred"]).to_numpy()
    score = rows["accept_score"].to_numpy(np.float64)
    measured = []
    for run in runs.itertuples():
        here = places[run.run_id]
        accepted = score[here] > run.threshold
        measured.append(
            _measure(
                json.loads(run.dial),
                json.loads(run.promise),
                n=len(here),
                n_aside=int(run.n_aside),
                accepted=int(accepted.sum()),
                errors=int((wrong[here] & accepted).sum()),
            )
        )
    kept = runs[[*SETTING, "method", "seed"]].reset_index(drop=True)
    return kept.join(pd.DataFrame(measured))


def _measure(
    dial: dict[str, Any],
    promise: dict[str, Any],
    *,
    n: int,
    n_aside: int,
    accepted: int,
    errors: int,
) -> dict[str, Any]:
    error = errors / accepted if accepted else np.nan
    found = {
        "dial": describe_dial(dial),
        "kind": promise["kind"],
        "promised": float(promise["holds"]),
        "coverage": accepted / n,
        "accepted_accuracy": 1.0 - error,
        "risk": error,
        "over_bound": np.nan,
        "kept": np.nan,
    }
    if "cost" in dial:
        found["risk"] = (errors + dial["cost"] * (n - accepted)) / n
    elif promise["holds"] and "coverage" in dial:
        found["kept"] = float(_coverage_kept(dial["coverage"], n_aside, accepted, n))
    elif promise["holds"] and accepted:
        found["over_bound"] = float(error > dial["max_risk"])
        chance = binom.sf(errors - 1, accepted, dial["max_risk"])
        found["kept"] = float(chance > LEVEL)
    return found


def _coverage_kept(wanted: float, n_batch: int, accepted: int, n: int) -> bool:
    """Whether so many accepted are among the middle 95 % that chance allows.

    The threshold is a place in the order of the batch. How many of n other instances come above
    it, if all are exchangeable, is beta-binomial, whatever the distribution of the scores.
    """
    left = min(round((n_batch + 1) * (1.0 - wanted)), n_batch)
    if left == 0:
        return accepted == n
    chance = betabinom(n, n_batch + 1 - left, left)
    return bool(min(chance.cdf(accepted), chance.sf(accepted - 1)) > LEVEL / 2)


def with_promises(summary: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The averages of each setting and method, and those of its promises if it has a dial."""
    if not has_dials(results.runs):
        return summary
    keys = [*SETTING, "method"]
    means = measure_promises(results).groupby([*keys, "dial"])
    averaged = means[["promised", "risk", "over_bound", "kept"]].mean().reset_index()
    return summary.merge(averaged, how="left", on=keys)


def promises_table(results: Results) -> Table:
    """What every method reached with each dial, averaged over settings and seeds."""
    measured = measure_promises(results)
    cells: dict[tuple[str, Column], Cell] = {}
    columns = []
    dials = sorted(measured["dial"].unique())
    for dial, part in measured.groupby("dial"):
        for name, title in _NAMES.items():
            if part[name].isna().all():
                continue
            scale, decimals = (100.0, 1) if name in _PER_CENT else (1.0, 3)
            column = Column(str(dial) if len(dials) > 1 else "", title, decimals=decimals)
            columns.append(column)
            for method, some in part.groupby("method")[name]:
                values = scale * some.dropna()
                if len(values):
                    cells[str(method), column] = Cell(float(values.mean()), n=len(values))
    kinds = dict.fromkeys(measured["kind"])
    return Table(
        "promises",
        f"What the dial {' or '.join(dials)} promised and what came of it, averaged over settings "
        "and seeds",
        tuple(columns),
        tuple(in_order(measured["method"])),
        cells,
        {},
        (
            "All in percent but the risk. The accuracy of the accepted, and their error, are "
            "averages over the runs that accept any.",
            *(_NOTES[kind] for kind in kinds),
        ),
    )
