"""Plan a certificate before any gold label is seen: what to draw, where to start, what to expect.

Nothing here is needed for the certificate to hold. The plan decides how much it will be worth,
and may therefore lean on estimates that candidate sets give, however wrong they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.reject.certificate import check_share, least_gold, most_errors

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

STEP = 0.02  # thresholds are considered at every such step of coverage
STRIDES = (1, 2, 4)  # a test at each, every second, every fourth of them
REGIONS = 2  # regions are considered at every second of them
DRAWS = 100  # in each of the worlds
# Candidate sets cannot tell how many predictions inside them are wrong. So there are worlds in
# which these errors are so many times the estimate, and a plan must do well in each of them.
WORLDS = (0.25, 0.5, 1.0, 2.0)
# A stricter start is a stay where even the worst of these is too good; taken if it costs no more.
SLACK = 0.01


@dataclass(frozen=True)
class Plan:
    """What to verify for a certificate, and what to expect of it.

    Attributes
    ----------
    max_risk, confidence : float
        What each test is for; confidence is that of this attempt.
    n_gold : int
        Gold labels to draw, at random, among the instances with a score over ``region``.
    region : float
        Minus infinity for all instances.
    region_coverage : float
        Share of the instances that lie in the region.
    thresholds : ndarray
        Those that will be tested, from strict to loose. The first is the start.
    coverages : ndarray
        Share of the instances that each accepts.
    expected_coverage : float
        What the certificate will accept, on average over draws of the gold labels and over
        worlds better and worse than estimated; failures count as 0.
    chance : float
        That some threshold passes, on the same average.
    rows : ndarray of int, or None
        Rows of the batch to verify, drawn at random.
    prints : ndarray of uint64, or None
        Fingerprints of these rows, by which `RejectClassifier.certify` knows them again.
    """

    max_risk: float
    confidence: float
    n_gold: int
    region: float
    region_coverage: float
    thresholds: Floats
    coverages: Floats
    expected_coverage: float
    chance: float
    rows: Ints | None = None
    prints: NDArray[np.uint64] | None = None

    @property
    def least(self) -> tuple[int, int, int]:
        """Least accepted gold labels with which a test passes with 0, 1 and 2 errors."""
        none, one, two = (least_gold(self.max_risk, self.confidence, k) for k in range(3))
        return none, one, two

    def __str__(self) -> str:
        where = (
            "all instances"
            if self.region == -np.inf
            else f"the surest {self.region_coverage:.0%} (score over {self.region:.6g})"
        )
        none, one, two = self.least
        return (
            f"to certify an error of at most {self.max_risk:.3g} among the accepted, "
            f"with {self.confidence:.3g} confidence\n"
            f"  verify             {self.n_gold} labels, drawn at random among {where}\n"
            f"  tests              {len(self.thresholds)}, from {self.coverages[0]:.0%} to "
            f"{self.coverages[-1]:.0%} coverage, until the first fails\n"
            f"  a test passes with at least {none}, {one} or {two} accepted gold labels "
            "for 0, 1 or 2 errors\n"
            f"  expect             {self.expected_coverage:.0%} coverage, failures counted as 0; "
            f"something passes with a chance of {self.chance:.0%}\n"
            "  The last line rests on estimates by candidate sets; the certificate will not."
        )


class _Bins(NamedTuple):
    """Instances grouped by the thresholds that they pass, strict ones first."""

    thresholds: Floats
    coverages: Floats
    share: Floats  # of the instances that know their error estimate
    risk: Floats  # mean estimate
    sure: Floats  # share that is surely wrong


def make_plan(
    scores: Floats,
    estimates: Floats,
    *,
    max_risk: float,
    confidence: float = 0.95,
    n_gold: int,
    batch: Floats | None = None,
    n_drawable: int | None = None,
    whole: bool = False,
    seed: int = 0,
) -> Plan:
    """The start, the steps and the region that promise most, whether estimates are high or low.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Accept scores of instances that the model has not learned from.
    estimates : ndarray of shape (n,)
        Estimated chance of each prediction to be wrong; 1 where it surely is.
    max_risk, confidence : float
    n_gold : int
    batch : ndarray of shape (m,), optional
        Accept scores of the instances that the gold will be drawn from.
    n_drawable : int, optional
        How many of these can be drawn: a region must hold as many as are to be drawn.
    whole : bool
        No other region than all instances, as for gold that was drawn already.
    seed : int
    """
    check_share("max_risk", max_risk)
    check_share("confidence", confidence)
    least = least_gold(max_risk, confidence)
    if n_gold < least:
        raise ValueError(
            f"{n_gold} gold labels are too few: an error of at most {max_risk:.3g} with "
            f"{confidence:.3g} confidence needs {least} accepted ones without a single error."
        )
    bins = _bins(scores, estimates, scores if batch is None else batch)
    m = len(bins.thresholds)
    most = most_errors(np.arange(n_gold + 1), max_risk, 1.0 - confidence)
    rng = np.random.default_rng(seed)
    options: list[_Option] = []
    for last in [m - 1] if whole else range(m - 1, -1, -REGIONS):
        if n_drawable is not None and bins.coverages[last] * n_drawable < n_gold and options:
            break
        passes = _simulate(bins, last, n_gold, most, rng)
        options += _options(passes, bins.coverages)
    tests, start, won, chance = _best(options)
    order = tests[start:]
    everywhere = order[-1] == m - 1
    return Plan(
        max_risk=max_risk,
        confidence=confidence,
        n_gold=n_gold,
        region=-np.inf if everywhere else float(bins.thresholds[order[-1]]),
        region_coverage=1.0 if everywhere else float(bins.coverages[order[-1]]),
        thresholds=bins.thresholds[order],
        coverages=bins.coverages[order],
        expected_coverage=float(won.mean()),
        chance=float(chance.mean()),
    )


def _bins(scores: Floats, estimates: Floats, batch: Floats) -> _Bins:
    ranked = np.sort(batch)[::-1]
    places = np.unique(np.ceil(np.arange(STEP, 1.0, STEP) * len(ranked)).astype(np.intp))
    thresholds = np.unique(np.append(ranked[places[places < len(ranked)]], -np.inf))[::-1]
    coverages = np.searchsorted(-ranked, -thresholds, side="left") / len(ranked)
    thresholds, coverages = thresholds[coverages > 0], coverages[coverages > 0]
    # The first threshold that a score passes; thresholds fall, so their negatives rise.
    place = np.searchsorted(-thresholds, -scores, side="right")
    place = np.minimum(place, len(thresholds) - 1)
    count = np.bincount(place, minlength=len(thresholds))
    total = np.bincount(place, weights=estimates, minlength=len(thresholds))
    surely = np.bincount(place, weights=estimates >= 1.0, minlength=len(thresholds))
    known = np.maximum(count, 1)
    return _Bins(
        thresholds, coverages, np.diff(coverages, prepend=0.0), total / known, surely / known
    )


class _Option(NamedTuple):
    """A way to test: which thresholds, and what it comes to in each world."""

    tests: Ints
    start: int  # the tests before it are left out
    won: Floats  # expected coverage
    chance: Floats  # that anything passes


def _simulate(
    bins: _Bins, last: int, n_gold: int, most: Ints, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which tests pass in each world, over draws of the gold from the region up to ``last``."""
    share = bins.share[: last + 1]
    drawn = rng.multinomial(n_gold, share / share.sum(), size=(len(WORLDS), DRAWS))
    inside = (bins.risk - bins.sure)[: last + 1]
    risk = bins.sure[: last + 1] + np.multiply.outer(np.asarray(WORLDS), inside)
    errors = rng.binomial(drawn, np.minimum(risk, 1.0)[:, None, :])
    return np.asarray(errors.cumsum(axis=2) <= most[drawn.cumsum(axis=2)])


def _options(passes: NDArray[np.bool_], coverages: Floats) -> Iterator[_Option]:
    """Every start and stride of tests that end at the region's edge."""
    last = passes.shape[2] - 1
    for stride in STRIDES:
        order = np.arange(last, -1, -stride)[::-1]
        won = np.zeros(passes.shape[:2])
        # From the loosest start to the strictest: what is won from each place on.
        for i in range(len(order) - 1, -1, -1):
            j = order[i]
            won = np.where(passes[:, :, j], np.where(won > 0, won, coverages[j]), 0.0)
            yield _Option(order, i, won.mean(axis=1), (won > 0).mean(axis=1))


def _best(options: list[_Option]) -> _Option:
    """The option that comes nearest to what is best in each world, on average over them.

    On average over coverages a plan would bet on the worlds in which much can be won, and fail
    where the estimates are right. Where nothing can pass, all options are as good.
    """
    won = np.array([option.won for option in options])
    most = won.max(axis=0)
    value = (won / np.where(most > 0, most, 1.0)).mean(axis=1)
    best = options[int(value.argmax())]
    near = [options[i] for i in np.flatnonzero(value >= value.max() - SLACK)]
    return min((o for o in near if o.tests is best.tests), key=lambda o: o.start)


def draw_rows(
    scores: Floats,
    plan: Plan,
    rng: np.random.Generator,
    groups: Any = None,
    drawable: NDArray[np.bool_] | None = None,
) -> Ints:
    """Rows of a batch to verify: at random within the region, at most one of each group.

    With groups one instance of each is drawn first, so that each group counts the same,
    and the rows that are drawn are independent of each other.
    """
    rows = np.arange(len(scores)) if drawable is None else np.flatnonzero(drawable)
    if groups is not None:
        shuffled = rng.permutation(rows)
        _, first = np.unique(np.asarray(groups)[shuffled], return_index=True)
        rows = np.sort(shuffled[first])
    rows = rows[scores[rows] > plan.region]
    if len(rows) < plan.n_gold:
        what = "rows" if groups is None else "groups"
        raise ValueError(
            f"{plan.n_gold} rows are to be verified, but this batch has only {len(rows)} {what} to "
            "draw from; give a larger batch, or plan for less gold."
        )
    return np.sort(rng.choice(rows, plan.n_gold, replace=False))
