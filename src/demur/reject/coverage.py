"""The coverage dial: the threshold that accepts a wanted share of instances like these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGE_STEP = 0.01


class Cut(NamedTuple):
    """A threshold, and what becomes of the scores that equal it.

    Attributes
    ----------
    threshold : float
        Scores over it are accepted.
    tied_share : float
        Chance with which a score equal to the threshold is accepted.
    step : float
        Share of the scores that equal the threshold, if several do.
    expected : float
        Expected coverage of new instances like these.
    """

    threshold: float
    tied_share: float
    step: float
    expected: float


def cut_for_coverage(scores: NDArray[np.float64], coverage: float, *, ties: str = "drawn") -> Cut:
    """Threshold by the order of n scores; the expected coverage is within 1/(n + 1).

    A new score that is exchangeable with these n is as likely to come at each of the n + 1
    places among them. So accepting what comes above the k-th smallest accepts the share
    1 - k / (n + 1), whatever the distribution. Tied scores are put in a random order, which
    is the same as accepting a new score equal to the threshold with the chance returned.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Accept scores of instances that the model has not learned from.
    coverage : float
        Over 0 and at most 1.
    ties : {"drawn", "whole"}
        "whole" takes or leaves a tied step as a whole, whichever comes nearer, and gives up
        the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> cut = cut_for_coverage(np.arange(9.0), 0.8)
    >>> cut.threshold, round(cut.expected, 3)
    (1.0, 0.8)
    >>> tied = cut_for_coverage(np.array([0.0, 0.5, 0.5, 0.5, 1.0]), 0.5)
    >>> tied.threshold, tied.tied_share, tied.step, tied.expected
    (0.5, 0.5, 0.6, 0.5)
    """
    n = len(scores)
    k = min(round((n + 1) * (1.0 - coverage)), n)
    if k == 0:
        return Cut(-np.inf, 0.0, 0.0, 1.0)
    threshold = float(np.partition(scores, k - 1)[k - 1])
    below, tied = int((scores < threshold).sum()), int((scores == threshold).sum())
    if tied == 1:
        return Cut(threshold, 0.5 if ties == "drawn" else 0.0, 0.0, 1.0 - k / (n + 1))
    if ties == "drawn":
        # Of m tied scores in random order, the j-th lies at j / (m + 1) on average.
        tied_share = 1.0 - (k - below) / (tied + 1)
        return Cut(threshold, tied_share, tied / n, 1.0 - k / (n + 1))
    taken, left = 1.0 - below / n, 1.0 - (below + tied) / n
    if abs(taken - coverage) < abs(left - coverage):
        under = scores[scores < threshold]
        lower = float(under.max()) if len(under) else -np.inf
        return Cut(lower, 0.0, tied / n, taken)
    return Cut(threshold, 0.0, tied / n, left)
