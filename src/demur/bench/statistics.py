"""Statistics of a comparison: paired t-test, bootstrap intervals, Friedman test, ranks.

All take one matrix: a row for each pair of setting and seed, or for each setting; a column for
each method. A row holds what the methods reached on the same split, so everything is paired.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr
from scipy.stats import friedmanchisquare, rankdata, studentized_range

Better = Literal["higher", "lower"]

_RESAMPLES_AT_ONCE = 1000  # bounds the memory of the bootstrap, whatever is asked for
_DIGITS = 12  # what differs only by rounding errors is equal


def _matrix(values: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"values must be a table with a row for each pair of setting and seed and a column "
            f"for each method; got shape {matrix.shape}."
        )
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"values hold {matrix[row, column]} at row {row}, column {column} ({len(bad)} such "
            "cell(s)); leave out the rows that not every method has."
        )
    return matrix


def paired_p_value(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p value of the paired t-test; NaN for a single pair, which cannot be tested.

    Where all pairs differ by the same amount there is no spread to test against: p is 1 if
    that amount is 0, else 0.

    Examples
    --------
    >>> from demur.bench.statistics import paired_p_value
    >>> round(paired_p_value([1, 2, 3, 4], [0, 2, 2, 2]), 4)
    0.0917
    """
    exact = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    differences = exact.round(_DIGITS)
    n = len(differences)
    if n < 2:
        return float("nan")
    if (differences == differences[0]).all():
        return float(differences[0] == 0.0)
    error = differences.std(ddof=1) / np.sqrt(n)
    return float(2.0 * stdtr(n - 1, -abs(differences.mean()) / error))


class Comparison(NamedTuple):
    """How the methods stand to the best of them.

    Attributes
    ----------
    means : ndarray of shape (n_methods,)
    stds : ndarray of shape (n_methods,)
        Standard deviation over the rows, n - 1 in the denominator; NaN for a single row.
    p_values : ndarray of shape (n_methods,)
        Of the paired t-test against the best; 1 for the best itself.
    among_best : ndarray of shape (n_methods,)
        The best, and those not significantly different from it.
    """

    means: NDArray[np.float64]
    stds: NDArray[np.float64]
    p_values: NDArray[np.float64]
    among_best: NDArray[np.bool_]


def compare_with_best(
    values: ArrayLike, *, better: Better = "higher", alpha: float = 0.05
) -> Comparison:
    """Find the best mean, and test each other method against it.

    Parameters
    ----------
    values : array-like of shape (n_pairs, n_methods)
    better : {"higher", "lower"}, default="higher"
    alpha : float, default=0.05
        Level of the paired t-test. A single pair cannot be tested: then only the best is.

    Examples
    --------
    >>> from demur.bench.statistics import compare_with_best
    >>> compared = compare_with_best([[0.9, 0.8, 0.4], [0.8, 0.9, 0.5], [0.9, 0.8, 0.3]])
    >>> compared.among_best.tolist()
    [True, True, False]
    """
    if better not in ("higher", "lower"):
        raise ValueError(f"better must be 'higher' or 'lower'; got {better!r}.")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is the level of a test and must be between 0 and 1; got {alpha}.")
    matrix = _matrix(values)
    means = matrix.mean(axis=0)
    best = int(means.argmax() if better == "higher" else means.argmin())
    p_values = np.array([paired_p_value(column, matrix[:, best]) for column in matrix.T])
    p_values[best] = 1.0
    stds = matrix.std(axis=0, ddof=1) if len(matrix) > 1 else np.full(len(means), np.nan)
    return Comparison(means, stds, p_values, (p_values >= alpha) | (means == means[best]))


def bootstrap_intervals(
    values: ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.float64]:
    """Percentile bootstrap intervals of the column means.

    The rows are resampled whole, so that all methods are judged on the same resamples.

    Parameters
    ----------
    values : array-like of shape (n_pairs, n_methods)
    level : float, default=0.95
        Share of the resamples inside an interval.
    n_resamples : int, default=10000
    random_state : int, numpy Generator, or None, default=0
        The same integer gives the same intervals.

    Returns
    -------
    ndarray of shape (n_methods, 2)
        Lower and upper ends.

    Examples
    --------
    >>> from demur.bench.statistics import bootstrap_intervals
    >>> bootstrap_intervals([[0.0, 3.0], [1.0, 3.0]], random_state=0).tolist()
    [[0.0, 1.0], [3.0, 3.0]]
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is the share inside an interval, between 0 and 1; got {level}.")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1; got {n_resamples}.")
    matrix = _matrix(values)
    n = len(matrix)
    chance = np.random.default_rng(random_state)
    means = np.empty((n_resamples, matrix.shape[1]))
    for start in range(0, n_resamples, _RESAMPLES_AT_ONCE):
        part = means[start : start + _RESAMPLES_AT_ONCE]
        # How often each row was drawn is all that a mean needs to know of a resample.
        part[:] = chance.multinomial(n, np.full(n, 1.0 / n), size=len(part)) @ matrix / n
    tail = (1.0 - level) / 2.0
    return np.quantile(means, [tail, 1.0 - tail], axis=0).T


def nemenyi_critical_difference(n_methods: int, n_settings: int, *, alpha: float = 0.05) -> float:
    """Smallest difference of average ranks that the Nemenyi test calls significant [1]_.

    References
    ----------
    .. [1] J. Demšar. Statistical comparisons of classifiers over multiple data sets. Journal
       of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from demur.bench.statistics import nemenyi_critical_difference
    >>> round(nemenyi_critical_difference(10, 34), 2)
    2.32
    """
    if n_methods < 2 or n_settings < 1:
        raise ValueError(
            f"ranks need at least 2 methods and 1 setting; got {n_methods} and {n_settings}."
        )
    spread = studentized_range.ppf(1.0 - alpha, n_methods, np.inf) / np.sqrt(2.0)
    return float(spread * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_settings)))


class Ranks(NamedTuple):
    """Average ranks of methods, and what may be concluded from them.

    Attributes
    ----------
    average : ndarray of shape (n_methods,)
        1 is the best; equals share the mean of their ranks.
    p_value : float
        Of the Friedman test that all methods are alike; NaN where it needs more of them.
    critical_difference : float
        Average ranks further apart than this differ significantly (Nemenyi).
    n_settings : int
    """

    average: NDArray[np.float64]
    p_value: float
    critical_difference: float
    n_settings: int


def average_ranks(values: ArrayLike, *, better: Better = "higher", alpha: float = 0.05) -> Ranks:
    """Rank the methods in each setting, and average.

    Parameters
    ----------
    values : array-like of shape (n_settings, n_methods)
        One row a setting: seeds of one setting are averaged before, as they are not
        independent of one another.
    better : {"higher", "lower"}, default="higher"
    alpha : float, default=0.05
        Level of the critical difference.

    Examples
    --------
    >>> from demur.bench.statistics import average_ranks
    >>> ranks = average_ranks([[0.9, 0.8, 0.7], [0.9, 0.6, 0.6]])
    >>> ranks.average.tolist()
    [1.0, 2.25, 2.75]
    """
    if better not in ("higher", "lower"):
        raise ValueError(f"better must be 'higher' or 'lower'; got {better!r}.")
    matrix = _matrix(values).round(_DIGITS)
    ranks = rankdata(-matrix if better == "higher" else matrix, axis=1)
    n_settings, n_methods = ranks.shape
    return Ranks(
        ranks.mean(axis=0),
        _friedman_p_value(ranks),
        nemenyi_critical_difference(n_methods, n_settings, alpha=alpha),
        n_settings,
    )


def _friedman_p_value(ranks: NDArray[np.float64]) -> float:
    if ranks.shape[1] < 3 or len(ranks) < 2:
        return float("nan")
    if (ranks == ranks[:, :1]).all():  # all tied everywhere: nothing speaks for a difference
        return 1.0
    return float(friedmanchisquare(*ranks.T).pvalue)


def alike_groups(average: ArrayLike, critical_difference: float) -> list[tuple[int, ...]]:
    """Largest groups of methods whose average ranks differ by no more than the critical one.

    Returns
    -------
    list of tuples of int
        Columns, best first, of each group of two or more that no other group contains.

    Examples
    --------
    >>> from demur.bench.statistics import alike_groups
    >>> alike_groups([1.0, 2.0, 2.8, 4.5], critical_difference=1.0)
    [(0, 1), (1, 2)]
    """
    ranks = np.asarray(average, dtype=np.float64)
    order = np.argsort(ranks, kind="stable")
    ends = np.searchsorted(ranks[order], ranks[order] + critical_difference, side="right")
    groups, reached = [], 0
    for start, end in enumerate(ends.tolist()):
        if end > reached and end - start > 1:
            groups.append(tuple(order[start:end].tolist()))
        reached = max(reached, end)
    return groups
