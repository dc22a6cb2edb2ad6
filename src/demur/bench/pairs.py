"""Line up what the methods reached on the same splits: what tests, ranks and means are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from demur.bench.curves import in_order
from demur.bench.measures import PAIR, SETTING
from demur.bench.statistics import Better, Ranks, average_ranks


class LinedUp(NamedTuple):
    """One measure of several methods on the same splits.

    Attributes
    ----------
    methods : tuple of str
        In the order of the registry; those without any value are not among them.
    pairs : DataFrame
        dataset, classes, noise and seed of each row.
    values : ndarray of shape (n_pairs, n_methods)
    left_out : dict of str to int
        For how many other pairs of setting and seed each method lacks a value; these pairs are
        left out for all.
    n_left_out : int
        Number of those pairs.
    """

    methods: tuple[str, ...]
    pairs: pd.DataFrame
    values: NDArray[np.float64]
    left_out: dict[str, int]
    n_left_out: int

    def by_setting(self) -> NDArray[np.float64]:
        """Averages over the seeds of each setting, one row a setting."""
        keys = [self.pairs[name] for name in SETTING]
        means: NDArray[np.float64] = pd.DataFrame(self.values).groupby(keys).mean().to_numpy()
        return means

    @property
    def n_settings(self) -> int:
        """Number of settings that some row is of."""
        return len(self.pairs[SETTING].drop_duplicates())


def line_up(measures: pd.DataFrame, values: str | pd.Series) -> LinedUp:
    """Line up a measure by pairs of setting and seed.

    Parameters
    ----------
    measures : DataFrame
        Of `measure_runs`, or some of its rows.
    values : str or Series
        A column of it, or values for its rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from demur.bench.pairs import line_up
    >>> rows = [("pl-knn", 0, 0.7), ("dst-pll", 0, 0.8), ("pl-knn", 1, 0.6)]
    >>> measures = pd.DataFrame(rows, columns=["method", "seed", "accuracy"]).assign(
    ...     dataset="iris", classes="all", noise="uniform"
    ... )
    >>> lined = line_up(measures, "accuracy")
    >>> lined.methods, lined.values.tolist(), lined.left_out
    (('dst-pll', 'pl-knn'), [[0.8, 0.7]], {'dst-pll': 1})
    """
    column = measures[values] if isinstance(values, str) else values
    long = measures[[*PAIR, "method"]].assign(value=column.to_numpy(np.float64))
    wide = long.pivot(index=PAIR, columns="method", values="value").dropna(axis=1, how="all")
    wide = wide[in_order(wide.columns)]
    there = wide.notna().all(axis=1)
    lacking = wide.isna().sum()
    return LinedUp(
        tuple(wide.columns),
        wide.index[there].to_frame(index=False),
        wide[there].to_numpy(np.float64),
        {method: int(n) for method, n in lacking.items() if n},
        int((~there).sum()),
    )


class Ranking(NamedTuple):
    """Average ranks of named methods; what a critical-difference plot shows.

    Attributes
    ----------
    methods : tuple of str
    ranks : Ranks
        Their average ranks in the same order, and the critical difference.
    """

    methods: tuple[str, ...]
    ranks: Ranks


def rank_methods(
    measures: pd.DataFrame, values: str | pd.Series, *, better: Better, alpha: float = 0.05
) -> Ranking | None:
    """Rank the methods in each setting, by their average over its seeds.

    Returns
    -------
    Ranking or None
        None if there are not two methods that ran in the same setting.
    """
    lined = line_up(measures, values)
    if len(lined.methods) < 2 or not len(lined.values):
        return None
    return Ranking(lined.methods, average_ranks(lined.by_setting(), better=better, alpha=alpha))
