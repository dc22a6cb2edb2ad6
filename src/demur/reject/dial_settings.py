"""The dials, and what they may be set to."""

from __future__ import annotations

from demur._parameters import check_whole
from demur.reject.certificate import check_coverage, check_share

DIALS = ("coverage", "cost", "max_risk")
TIES = ("drawn", "whole")


def turned_dial(
    *,
    coverage: float | None = None,
    cost: float | None = None,
    max_risk: float | None = None,
    confidence: float = 0.95,
    ambiguity: float | None = None,
    ties: str = "drawn",
    attempts: int = 1,
) -> str:
    """The name of the one dial that is turned; all that is out of range is refused.

    Examples
    --------
    >>> turned_dial(max_risk=0.05)
    'max_risk'
    >>> turned_dial(coverage=0.8, cost=0.1)
    Traceback (most recent call last):
    ValueError: turn exactly one dial, coverage, cost or max_risk; coverage and cost are set.
    """
    given = {"coverage": coverage, "cost": cost, "max_risk": max_risk}
    turned = {name: value for name, value in given.items() if value is not None}
    if len(turned) != 1:
        what = "none is" if not turned else f"{' and '.join(turned)} are"
        raise ValueError(f"turn exactly one dial, coverage, cost or max_risk; {what} set.")
    ((dial, value),) = turned.items()
    if dial == "coverage":
        check_coverage(value)
    else:
        check_share(dial, value)
    check_share("confidence", confidence)
    if ambiguity is not None:
        if dial != "max_risk":
            raise ValueError(f"ambiguity goes with max_risk, not with {dial}.")
        if ambiguity != 0:
            check_share("ambiguity", ambiguity)
    if ties not in TIES:
        raise ValueError(f"ties must be 'drawn' or 'whole'; got {ties!r}.")
    check_whole("attempts", attempts, 1)
    return dial
