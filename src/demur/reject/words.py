"""The promises of the dials, put into words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from demur.reject.certificate import Tests
from demur.reject.coverage import Cut
from demur.reject.planning import Plan
from demur.reject.promise import Promise

Floats = NDArray[np.float64]


def say_coverage(coverage: float, cut: Cut, n: int, ties: str, *, fresh: bool) -> Promise:
    """What the coverage dial promises: a guarantee by a fresh batch only."""
    holds = fresh and (ties == "drawn" or cut.step == 0)
    if holds:
        said = f"accepts {coverage:.1%}, within 1/({n} + 1) on average"
    elif ties == "whole" and cut.step:
        said = f"accepts about {cut.expected:.1%}, the nearest that whole tied steps allow"
    else:
        said = f"accepts about {coverage:.1%}; calibrate(X) with an unlabelled batch guarantees it"
    source = (
        "instances of an unlabelled batch"
        if fresh
        else "training instances, each judged by a model that has not seen it"
    )
    rests = [
        f"set by {n} {source}",
        "for instances like these; nothing is promised on the error",
    ]
    if ties == "drawn" and cut.step:
        rests.append(
            f"{cut.step:.1%} of the scores equal the threshold; of such, {cut.tied_share:.0%} are "
            "accepted, drawn by seed"
        )
    return Promise("coverage", holds, said, tuple(rests), cut.threshold, cut.expected)


def say_cost(
    cost: float,
    threshold: float,
    kept: NDArray[np.bool_],
    estimates: Floats,
    outside: NDArray[np.bool_],
    n_gold: int,
) -> Promise:
    """What the cost dial found; it promises nothing."""
    source = (
        f"estimates by candidate sets, corrected by {n_gold} gold labels"
        if n_gold
        else "estimates by candidate sets alone, which may be too low"
    )
    rests = [source]
    if kept.any():
        rests.append(
            f"accepts {kept.mean():.1%} of the training instances, out of fold; estimated error "
            f"of these {estimates[kept].mean():.1%}"
        )
        rests.append(
            f"{outside[kept].mean():.1%} of these lie outside their candidate sets and are surely "
            "wrong: a lower bound of the error"
        )
    else:
        rests.append("rejects everything: no prediction seems worth its risk")
    return Promise(
        "cost",
        False,
        f"least estimated error + {cost:.3g} x rejected; nothing is guaranteed",
        tuple(rests),
        threshold,
        float(kept.mean()),
    )


def say_uncertified(max_risk: float, confidence: float) -> Promise:
    """Before any gold label was tested."""
    return Promise(
        "certificate",
        False,
        f"not certified yet for an error of at most {max_risk:.1%} with {confidence:.1%} "
        "confidence; everything is rejected",
        ("plan(X, n_gold) says which rows to verify; certify(X_gold, y_gold) tests them",),
        np.inf,
        0.0,
    )


def say_certificate(
    plan: Plan, tests: Tests, confidence: float, worth: tuple[int, float] | None
) -> Promise:
    """What the gold labels certified, or that they did not."""
    if tests.passed:
        last = tests.passed - 1
        coverage = float(plan.coverages[last])
        return Promise(
            "certificate",
            True,
            f"with {confidence:.1%} confidence the error among accepted predictions is at most "
            f"{plan.max_risk:.1%}",
            (
                f"rests on {tests.accepted[last]} gold labels over the threshold "
                f"{tests.threshold:.6g}, {tests.errors[last]} of them wrong "
                f"(p = {tests.p_values[last]:.2g}); {tests.passed} of {len(tests.thresholds)} "
                "planned thresholds passed",
                "holds if the gold labels are right and were drawn at random from instances like "
                "those to come, none used in fit; nothing is assumed about candidate sets",
                f"accepts about {coverage:.0%}",
            ),
            tests.threshold,
            coverage,
        )
    start = (
        f"the strictest planned threshold has {tests.accepted[0]} gold labels, {tests.errors[0]} "
        f"of them wrong (p = {tests.p_values[0]:.2g}, needed {1 - plan.confidence:.2g})"
    )
    if worth is None:
        advice = (
            "more gold labels are not worth drawing: at no planned threshold is the error seen "
            f"below {plan.max_risk:.1%}. A better model, or a larger max_risk, would help"
        )
    else:
        advice = (
            f"about {worth[0]} new gold labels from the same region would be worth drawing, for "
            f"{worth[1]:.0%} coverage, in an attempt that was declared beforehand (attempts=)"
        )
    return Promise(
        "certificate",
        False,
        f"nothing passed for an error of at most {plan.max_risk:.1%} with {confidence:.1%} "
        "confidence; everything is rejected",
        (start, advice),
        np.inf,
        0.0,
    )


def say_conditional(
    max_risk: float, confidence: float, ambiguity: float, tests: Tests, n: int
) -> Promise:
    """A bound that a declared ambiguity would give."""
    condition = (
        f"conditional on the declared ambiguity: if a wrong accepted prediction lies inside its "
        f"candidate set with a chance of at most {ambiguity:.3g}. This cannot be checked by "
        "candidate sets, and was not"
    )
    if not tests.passed:
        return Promise(
            "conditional bound",
            False,
            f"nothing passed for an error of at most {max_risk:.1%}, conditional on ambiguity "
            f"{ambiguity:.3g}; everything is rejected",
            (condition,),
            np.inf,
            0.0,
        )
    last = tests.passed - 1
    share = tests.errors[last] / tests.accepted[last]
    return Promise(
        "conditional bound",
        True,
        f"the error among accepted predictions is at most {max_risk:.1%} with {confidence:.1%} "
        f"confidence, conditional on ambiguity {ambiguity:.3g}",
        (
            condition,
            f"also on the true label being in every set, and on the model being like those of "
            f"the folds; {tests.errors[last]} of "
            f"{tests.accepted[last]} accepted training instances lie outside their sets, out of "
            f"fold: {share:.1%} / (1 - {ambiguity:.3g}) = {share / (1 - ambiguity):.1%}",
        ),
        tests.threshold,
        float(tests.accepted[last] / n),
    )
