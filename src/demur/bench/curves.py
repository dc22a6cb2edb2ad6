"""The mean trade-off curve of each method in each setting: what figures and report draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.methods import METHODS
from demur.metrics import (
    RiskCoverageCurve,
    accepted_accuracy,
    aurc,
    coverage,
    risk_coverage_curve,
)


class Setting(NamedTuple):
    """Where methods are compared: a dataset, what of it is used, and the noise.

    Attributes
    ----------
    dataset, classes, noise : str
        Names, as in the results.
    """

    dataset: str
    classes: str
    noise: str


@dataclass(frozen=True, eq=False)
class TradeOffCurve:
    """Accuracy of the accepted predictions against the share rejected: a mean over seeds.

    Attributes
    ----------
    setting : Setting
    method : str
    n_runs : int
        Number of runs (seeds) that the mean is over.
    rejected : ndarray of shape (n_points,)
        Share rejected, from 0 on in even steps.
    accuracy : ndarray of shape (n_points,)
        Accuracy of the others: for each run, the errors that are to be expected when exactly
        this share is rejected and instances of one score go in random order. Of n instances, its
        mean over the shares 0, 1/n, ..., (n-1)/n is 1 - AURC.
    operating_point : tuple of two floats
        Share rejected and accuracy of the accepted at the method's own threshold, each a mean
        over the runs; the accuracy over those that accept any, NaN where none does. Both are
        NaN where the results tell no threshold.
    aurc : float
        Mean over the runs of the area under the whole risk-coverage curve.
    """

    setting: Setting
    method: str
    n_runs: int
    rejected: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    operating_point: tuple[float, float]
    aurc: float


class _Run(NamedTuple):
    n: int
    curve: RiskCoverageCurve
    operating_point: tuple[float, float]
    aurc: float


def trade_off_curves(
    results: Any, *, min_accepted: int = 10, n_points: int = 101
) -> list[TradeOffCurve]:
    """Mean trade-off curves over the seeds, of every setting and method in the results.

    Parameters
    ----------
    results : Results
        Rows and runs of a benchmark; the rows of the split ``test`` are judged.
    min_accepted : int, default=10
        The curves end where fewer than this are accepted, as the accuracy of so few is mostly
        chance.
    n_points : int, default=101
        Points of each curve.

    Returns
    -------
    list of TradeOffCurve
        By setting, then by method in the order of the registry.
    """
    if min_accepted < 1:
        raise ValueError(f"min_accepted must be at least 1; got {min_accepted}.")
    rows = results.rows
    judged = rows[rows["split"] == "test"].groupby("run_id", sort=False)
    together: dict[tuple[Setting, str], list[_Run]] = {}
    facts = results.runs[results.runs["run_id"].isin(list(judged.groups))]
    for run in facts.itertuples():
        setting = Setting(run.dataset, run.classes, run.noise)
        threshold = np.nan if run.threshold is None else float(run.threshold)
        try:
            read = _read(judged.get_group(run.run_id), threshold)
        except ValueError as error:
            where = f"{run.method} on {run.dataset}, {run.noise}, seed {run.seed}"
            raise ValueError(f"no curve of {where}: {error}") from error
        together.setdefault((setting, run.method), []).append(read)
    curves = [
        _mean(setting, method, group, min_accepted, n_points)
        for (setting, method), group in together.items()
    ]
    rank = {name: place for place, name in enumerate(in_order(c.method for c in curves))}
    return sorted(curves, key=lambda c: (c.setting, rank[c.method]))


def in_order(names: Any) -> list[str]:
    """Methods without repetition: those of the registry in its order, then the others.

    Examples
    --------
    >>> from demur.bench.curves import in_order
    >>> from demur.methods import METHODS
    >>> in_order(["zebra", METHODS[2], METHODS[0], "ant", METHODS[2]]) == [
    ...     METHODS[0], METHODS[2], "ant", "zebra"
    ... ]
    True
    """
    found = set(names)
    return [name for name in METHODS if name in found] + sorted(found.difference(METHODS))


def _read(run: Any, threshold: float) -> _Run:
    y_true, y_pred = run["y_true"].to_numpy(), run["y_pred"].to_numpy()
    score = run["accept_score"].to_numpy()
    accepted = score > threshold
    operating_point = (1.0 - coverage(accepted), accepted_accuracy(y_true, y_pred, accepted))
    return _Run(
        n=len(run),
        curve=risk_coverage_curve(y_true, y_pred, score),
        operating_point=(np.nan, np.nan) if np.isnan(threshold) else operating_point,
        aurc=aurc(y_true, y_pred, score),
    )


def _mean(
    setting: Setting, method: str, runs: list[_Run], min_accepted: int, n_points: int
) -> TradeOffCurve:
    fewest = min(run.n for run in runs)
    rejected = np.linspace(0.0, max(0.0, 1.0 - min_accepted / fewest), n_points)
    shares, accuracies = np.array([run.operating_point for run in runs]).T
    told = ~np.isnan(accuracies)
    return TradeOffCurve(
        setting=setting,
        method=method,
        n_runs=len(runs),
        rejected=rejected,
        accuracy=np.mean([_accuracy_at(run.curve, 1.0 - rejected) for run in runs], axis=0),
        operating_point=(
            float(shares.mean()),
            float(accuracies[told].mean()) if told.any() else float("nan"),
        ),
        aurc=float(np.mean([run.aurc for run in runs])),
    )


def _accuracy_at(curve: RiskCoverageCurve, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected accuracy at any share accepted: through a tie the errors grow linearly."""
    errors = np.interp(
        shares, np.append(0.0, curve.coverages), np.append(0.0, curve.risks * curve.coverages)
    )
    # The clip takes away a rounding error only.
    return np.asarray(np.clip(1.0 - errors / shares, 0.0, 1.0))


def describe(setting: Setting, among: list[Setting]) -> str:
    """A setting's name, with the classes used only where that tells it from others.

    Examples
    --------
    >>> from demur.bench.curves import Setting, describe
    >>> ecoli = Setting("ecoli", "all", "uniform")
    >>> describe(ecoli, [ecoli])
    'ecoli, uniform'
    >>> describe(ecoli, [ecoli, Setting("ecoli", "frequent-95", "uniform")])
    'ecoli (all), uniform'
    """
    several = len({s.classes for s in among if s.dataset == setting.dataset}) > 1
    which = f" ({setting.classes})" if several else ""
    return f"{setting.dataset}{which}, {setting.noise}"
