"""Exact tests of the error among accepted predictions: what gold labels can certify."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def p_value(errors: int | Ints, accepted: int | Ints, max_risk: float) -> Floats:
    """Chance of so few errors or fewer, were the risk just above ``max_risk``.

    Examples
    --------
    >>> p_value(0, 59, 0.05).round(4).tolist()
    0.0485
    """
    return np.asarray(binom.cdf(errors, accepted, max_risk), dtype=np.float64)


def least_gold(max_risk: float, confidence: float = 0.95, errors: int = 0) -> int:
    """Least number of accepted gold labels with which a test can pass in spite of ``errors``.

    Examples
    --------
    >>> [least_gold(0.05, 0.95, k) for k in (0, 1, 2)]
    [59, 93, 124]
    >>> [least_gold(0.10, 0.95, k) for k in (0, 1, 2)]
    [29, 46, 61]
    """
    check_share("max_risk", max_risk)
    check_share("confidence", confidence)
    high = errors + 1
    while p_value(errors, high, max_risk) > 1.0 - confidence:
        high *= 2
    low = high // 2  # too few, or equal to the number of errors
    while high - low > 1:
        middle = (low + high) // 2
        if p_value(errors, middle, max_risk) > 1.0 - confidence:
            low = middle
        else:
            high = middle
    return high


def most_errors(counts: Ints, max_risk: float, level: float) -> Ints:
    """For numbers of accepted, the most errors with which the test passes; -1 where none will do.

    Examples
    --------
    >>> most_errors(np.array([58, 59, 92, 93]), 0.05, 0.05).tolist()
    [-1, 0, 0, 1]
    """
    most = binom.ppf(level, counts, max_risk).astype(np.intp)
    # ppf gives the first k whose cdf reaches the level; the largest that stays within it
    # is that k or the one before.
    within = binom.cdf(most, counts, max_risk) <= level
    return np.asarray(np.where(within, most, most - 1), dtype=np.intp)


class Tests(NamedTuple):
    """Tests from strict to loose thresholds, all of them worked out; see ``passed``.

    Attributes
    ----------
    thresholds : ndarray of shape (n_tests,)
    accepted, errors : ndarrays of shape (n_tests,)
        Gold labels over each threshold, and wrong predictions among them.
    p_values : ndarray of shape (n_tests,)
    passed : int
        How many tests passed before the first that failed: only these count.
    """

    thresholds: Floats
    accepted: Ints
    errors: Ints
    p_values: Floats
    passed: int

    @property
    def threshold(self) -> float:
        """The loosest threshold that passed; infinity when none did."""
        return float(self.thresholds[self.passed - 1]) if self.passed else np.inf


def fixed_sequence(
    scores: Floats,
    wrong: NDArray[np.bool_],
    thresholds: Floats,
    *,
    max_risk: float,
    confidence: float = 0.95,
) -> Tests:
    """Test thresholds in the given order, each at full level, and stop at the first failure.

    If the true risk at some thresholds is over ``max_risk``, the first of these in the order
    must pass before any of them can be certified; it does with chance 1 - confidence at most.
    So the thresholds and their order must be fixed before the labels are seen, and nothing
    else is assumed: neither that the risk falls with the threshold, nor anything on the scores.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Accept scores of gold instances.
    wrong : ndarray of bool, shape (n,)
        Whether each prediction differs from the gold label.
    thresholds : ndarray of shape (n_tests,)
        From strict to loose; scores over it are accepted.
    max_risk : float
    confidence : float, default=0.95

    Examples
    --------
    >>> import numpy as np
    >>> scores, wrong = np.linspace(1, 0, 200, endpoint=False), np.zeros(200, dtype=bool)
    >>> wrong[100::4] = True
    >>> tests = fixed_sequence(scores, wrong, np.array([0.6, 0.5, 0.25]), max_risk=0.05)
    >>> tests.accepted.tolist(), tests.errors.tolist(), tests.passed, tests.threshold
    ([80, 100, 150], [0, 0, 13], 2, 0.5)
    """
    order = np.argsort(-scores, kind="stable")
    accepted = np.searchsorted(-scores[order], -thresholds, side="left")
    errors = np.concatenate([[0], np.cumsum(wrong[order])])[accepted]
    p_values = p_value(errors, accepted, max_risk)
    failed = np.flatnonzero(p_values > 1.0 - confidence)
    passed = int(failed[0]) if len(failed) else len(thresholds)
    return Tests(thresholds, accepted.astype(np.intp), errors.astype(np.intp), p_values, passed)


def gold_worth_drawing(
    risk: float, max_risk: float, confidence: float = 0.95, power: float = 0.8
) -> int | None:
    """Accepted gold labels with which a threshold of this risk passes with chance ``power``.

    None where the risk is not below the bound, or so near to it that 100,000 are not enough.

    Examples
    --------
    >>> gold_worth_drawing(0.02, 0.05), gold_worth_drawing(0.06, 0.05)
    (235, None)
    """
    if risk >= max_risk:
        return None
    counts, most = _ladder(max_risk, confidence)
    enough = np.flatnonzero((most >= 0) & (binom.cdf(most, counts, risk) >= power))
    return int(counts[enough[0]]) if len(enough) else None


@lru_cache
def _ladder(max_risk: float, confidence: float) -> tuple[Ints, Ints]:
    """Numbers of accepted gold labels, and the most errors with which each passes."""
    counts = np.geomspace(least_gold(max_risk, confidence), 100_000, 1000).astype(np.intp)
    return counts, most_errors(counts, max_risk, 1.0 - confidence)


def check_coverage(value: float) -> None:
    """Refuse what is not over 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"coverage must be a number over 0 and at most 1; got {value!r}.")
    if not 0.0 < value <= 1.0:
        raise ValueError(f"coverage must be over 0 and at most 1; got {value}.")


def check_share(name: str, value: float) -> None:
    """Refuse what is not strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"{name} must be a number between 0 and 1; got {value!r}.")
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, both excluded; got {value}.")
