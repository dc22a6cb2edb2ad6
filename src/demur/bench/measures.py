"""What each run reached, computed once: one row a run. All tables are averages of these rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from demur.bench.store import Results
from demur.metrics import (
    accepted_accuracy,
    augrc,
    aurc,
    excess_aurc,
    reject_risk,
    risk_coverage_curve,
)

SETTING = ["dataset", "classes", "noise"]
PAIR = [*SETTING, "seed"]  # methods are compared on the same split with the same candidates

_GRID_STEP = 0.01
_LEAST_ACCEPTED = 10  # the published code looks only at thresholds that leave more than these
_DIGITS = 12  # shares are ratios of counts; those nearer to each other than this are equal


def measure_runs(results: Results, *, reference: str) -> pd.DataFrame:
    """Measure every finished run.

    Parameters
    ----------
    results : Results
        What `read_results` gives.
    reference : str
        The method whose share of rejects, averaged over the seeds of a setting, all others
        are brought to in the columns of the same rejects.

    Returns
    -------
    DataFrame
        One row a finished run: dataset, classes, noise, method, seed, and

        - ``accuracy`` of all predictions; ``coverage`` and ``accepted_accuracy`` (NaN where
          none is accepted) at the method's own threshold;
        - ``error_text`` and ``rejects_text``, ``error_code`` and ``rejects_code``: the two
          parts of the risk ``error + lam * rejects`` in both readings (see `risk_of`);
        - ``same_rejects`` and ``same_accuracy``: share of rejects nearest to the reference's
          in this setting, and the accuracy of the rest; NaN where there is no reference;
        - ``aurc``, ``excess_aurc``, ``augrc``;
        - ``seconds`` of fitting and predicting.
    """
    runs = _finished(results.runs)
    rows = results.rows
    if rows[["y_true", "y_pred", "accept_score"]].isna().to_numpy().any():
        raise ValueError("some rows of the results lack a label or an accept score.")
    places = rows.groupby("run_id", sort=False).indices
    wrong = (rows["y_true"] != rows["y_pred"]).to_numpy()
    score = rows["accept_score"].to_numpy(np.float64)
    lost = [run for run in runs["run_id"] if run not in places]
    if lost:
        raise ValueError(f"run {lost[0]} is finished but has no rows ({len(lost)} such run(s)).")
    judged = {run: (wrong[places[run]], score[places[run]]) for run in runs["run_id"]}
    wanted = _rejects_of(reference, runs, judged)
    measured = [
        _measure(
            *judged[run.run_id],
            run.threshold,
            rejects=wanted.get((run.dataset, run.classes, run.noise), np.nan),
            is_reference=run.method == reference,
        )
        for run in runs.itertuples()
    ]
    kept = runs[[*SETTING, "method", "seed"]].reset_index(drop=True)
    seconds = runs[["seconds_fit", "seconds_predict"]].astype(np.float64).sum(axis=1, min_count=1)
    return kept.join(pd.DataFrame(measured)).assign(seconds=seconds.to_numpy())


def _finished(runs: pd.DataFrame) -> pd.DataFrame:
    finished = runs[runs["status"] == "ok"]
    if finished.empty:
        raise ValueError(f"none of the {len(runs)} runs is finished, so there is nothing to show.")
    twice = finished[finished.duplicated([*PAIR, "method"])]
    if len(twice):
        run = twice.iloc[0]
        raise ValueError(
            f"{run['method']} ran more than once on {run['dataset']} ({run['classes']}), "
            f"{run['noise']}, seed {run['seed']}, with different parameters; tables need one run "
            "of each, so keep results of other parameters in a folder of their own."
        )
    return finished


def _rejects_of(
    method: str,
    runs: pd.DataFrame,
    judged: dict[str, tuple[NDArray[np.bool_], NDArray[np.float64]]],
) -> dict[tuple[str, ...], float]:
    """Mean share of rejects of a method in each setting."""
    own = runs[runs["method"] == method]
    shares = [
        float(np.mean(~(judged[run][1] > threshold)))
        for run, threshold in zip(own["run_id"], own["threshold"], strict=True)
    ]
    means = own[SETTING].assign(rejects=shares).groupby(SETTING)["rejects"].mean()
    return {setting: float(mean) for setting, mean in means.items()}


def _measure(
    wrong: NDArray[np.bool_],
    score: NDArray[np.float64],
    threshold: float,
    *,
    rejects: float,
    is_reference: bool,
) -> dict[str, float]:
    # Right and wrong are all that the metrics need to know of the labels.
    truth, predicted = np.zeros(len(wrong), dtype=np.int8), wrong.astype(np.int8)
    own = score > threshold
    on_grid = score > grid_threshold(score, threshold)
    reached = accepted_accuracy(truth, predicted, own)
    if is_reference:
        same = (1.0 - float(own.mean()), reached)
    else:
        same = _at_same_rejects(truth, predicted, score, rejects)
    return {
        "accuracy": 1.0 - float(wrong.mean()),
        "coverage": float(own.mean()),
        "accepted_accuracy": reached,
        "error_text": reject_risk(truth, predicted, own, lam=0.0, reading="text"),
        "rejects_text": 1.0 - float(own.mean()),
        "error_code": reject_risk(truth, predicted, on_grid, lam=0.0, reading="code"),
        "rejects_code": 1.0 - float(on_grid.mean()),
        "same_rejects": same[0],
        "same_accuracy": same[1],
        "aurc": aurc(truth, predicted, score),
        "excess_aurc": excess_aurc(truth, predicted, score),
        "augrc": augrc(truth, predicted, score),
    }


def grid_threshold(score: NDArray[np.float64], threshold: float) -> float:
    """The threshold of the published code: on a grid of 0.01, with more than 10 accepted.

    It is the nearest to the method's own. With 10 instances or fewer there is none, and the
    method's own is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from demur.bench.measures import grid_threshold
    >>> score = np.linspace(0.0, 0.94, 95)
    >>> grid_threshold(score, 0.5), grid_threshold(score, 0.9)
    (0.5, 0.83)
    """
    if len(score) <= _LEAST_ACCEPTED:
        return float(threshold)
    # A higher threshold accepts no more, so the nearest is the own one or lies below it.
    last = np.sort(score)[-(_LEAST_ACCEPTED + 1)]
    point = np.minimum(np.round(threshold / _GRID_STEP), np.ceil(last / _GRID_STEP))
    per_one = round(1 / _GRID_STEP)  # a division rounds once, where a product might miss 0.9
    while np.sum(score > point / per_one) <= _LEAST_ACCEPTED:
        point -= 1.0
    return float(point / per_one)


def _at_same_rejects(
    truth: NDArray[Any], predicted: NDArray[Any], score: NDArray[np.float64], rejects: float
) -> tuple[float, float]:
    """Share of rejects, and accuracy of the rest, where a threshold comes nearest to a share.

    Of two thresholds that are as near, the one that accepts more.
    """
    if np.isnan(rejects):
        return rejects, rejects
    coverages, risks, _ = risk_coverage_curve(truth, predicted, score)
    away = np.abs(1.0 - coverages - rejects).round(_DIGITS)
    nearest = np.flatnonzero(away == away.min())[-1]
    return float(1.0 - coverages[nearest]), float(1.0 - risks[nearest])


def risk_of(measures: pd.DataFrame, lam: float, reading: str) -> pd.Series:
    """Risk of each run where an error costs 1 and a reject ``lam``.

    Parameters
    ----------
    measures : DataFrame
        Of `measure_runs`.
    lam : float
    reading : {"text", "code"}
        "text" counts errors over all instances, at the method's own threshold; "code" counts
        them over the accepted ones, at the `grid_threshold`, as the published tables do.
    """
    return measures[f"error_{reading}"] + lam * measures[f"rejects_{reading}"]


def summarise(measures: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Averages over the seeds of each setting and method, few enough to be kept and published.

    Parameters
    ----------
    measures : DataFrame
        Of `measure_runs`.
    runs : DataFrame
        All runs, for the failed among them.

    Returns
    -------
    DataFrame
        A row for each dataset, classes, noise and method, with ``seeds`` and ``failed`` (numbers
        of runs), ``accuracy`` and its ``accuracy_std`` over the seeds, and the averages
        ``coverage``, ``accepted_accuracy`` (over the seeds that accept any), ``aurc``,
        ``excess_aurc``, ``augrc`` and ``seconds``.
    """
    keys = [*SETTING, "method"]
    averaged = ["coverage", "accepted_accuracy", "aurc", "excess_aurc", "augrc", "seconds"]
    by = measures.groupby(keys)
    reached = by.agg(
        seeds=("seed", "size"),
        accuracy=("accuracy", "mean"),
        accuracy_std=("accuracy", "std"),
        **{name: (name, "mean") for name in averaged},
    )
    failed = runs[runs["status"] != "ok"].groupby(keys).size()
    table = reached.reindex(reached.index.union(failed.index))
    table.insert(1, "failed", failed.reindex(table.index).fillna(0).astype(int))
    table["seeds"] = table["seeds"].fillna(0).astype(int)
    return table.reset_index()


def missing_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that failed, or that other methods have and this one has not.

    Returns
    -------
    DataFrame
        dataset, classes, noise, seed, method, why.
    """
    methods = pd.DataFrame({"method": runs["method"].unique()})
    whole = runs[PAIR].drop_duplicates().merge(methods, how="cross")
    told = whole.merge(runs[[*PAIR, "method", "status", "error"]], how="left")
    why = told["error"].astype(object).where(told["error"].notna(), "failed")
    told["why"] = why.where(told["status"].notna(), "not run")
    absent = told[told["status"] != "ok"]
    return absent[[*PAIR, "method", "why"]].sort_values([*PAIR, "method"], ignore_index=True)
