"""How likely each prediction is wrong, as far as candidate sets can tell, and the cost dial."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit, logsumexp

from demur.reject.scores import Fresh

Floats = NDArray[np.float64]

FLOOR = 1e-3  # share of the mass spread evenly: a method's zeros are not to be believed
TEMPERATURES = (0.1, 10.0)
NEAR_ZERO = 1e-3  # estimates are kept this far from 0 and 1 where their logit is taken
SHRINKAGE = 1.0  # weight of "no change" against the likelihood of the gold labels
MIN_GOLD = 50


def temperature(proba: Floats, held: NDArray[np.bool_]) -> float:
    """The temperature under which the candidate sets are most likely.

    Examples
    --------
    Half of these sure predictions lie outside their sets, so they are to be less sure.

    >>> import numpy as np
    >>> proba = np.tile([0.98, 0.01, 0.01], (10, 1))
    >>> held = np.tile([True, False, False], (10, 1))
    >>> held[5:] = [False, True, False]
    >>> bool(temperature(proba, held) > 2)
    True
    """
    logs = _logs(proba)
    inside = np.where(held, logs, -np.inf)

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float(np.mean(logsumexp(logs * scale, axis=1) - logsumexp(inside * scale, axis=1)))

    low, high = np.log(TEMPERATURES)
    return float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded").x))


def error_estimates(fresh: Fresh) -> Floats:
    """For each prediction the estimated chance that it is wrong.

    It is 1 where the prediction lies outside its candidate set. Elsewhere it is 1 less the
    predicted label's share among the candidates, after the temperature. Without candidate
    sets it is 1 less the largest probability.
    """
    rows = np.arange(len(fresh.top))
    if fresh.held is None:
        return np.asarray(1.0 - fresh.proba[rows, fresh.top])
    logs = _logs(fresh.proba) / temperature(fresh.proba, fresh.held)
    inside = np.where(fresh.held, logs, -np.inf)
    shares = np.exp(inside[rows, fresh.top] - logsumexp(inside, axis=1))
    return np.where(fresh.outside, 1.0, 1.0 - shares)


def _logs(proba: Floats) -> Floats:
    return np.asarray(np.log((1.0 - FLOOR) * proba + FLOOR / proba.shape[1]))


def recalibrate(estimates: Floats, rows: NDArray[np.intp], wrong: NDArray[np.bool_]) -> Floats:
    """Move the logits of the estimates to agree with verified rows, shrunk to no change.

    Estimates of 1 (outside the candidate set) are certain, and stay.
    """
    told = rows[estimates[rows] < 1.0]
    y = wrong[estimates[rows] < 1.0].astype(np.float64)
    z = _logits(estimates)

    def loss(ab: Floats) -> tuple[float, Floats]:
        u = ab[0] + ab[1] * z[told]
        value = np.sum(np.logaddexp(0.0, u) - y * u)
        slope = expit(u) - y
        off = ab - np.array([0.0, 1.0])
        gradient = np.array([slope.sum(), (slope * z[told]).sum()])
        return float(value + SHRINKAGE * (off @ off)), gradient + 2.0 * SHRINKAGE * off

    best = minimize(loss, np.array([0.0, 1.0]), jac=True, method="L-BFGS-B")
    a, b = best.x
    # A negative slope would call the surest the most doubtful: then only the level moves.
    return np.where(estimates < 1.0, expit(a + max(b, 0.0) * z), 1.0)


def _logits(estimates: Floats) -> Floats:
    return np.asarray(logit(np.clip(estimates, NEAR_ZERO, 1.0 - NEAR_ZERO)))


def threshold_for_cost(scores: Floats, estimates: Floats, cost: float) -> float:
    """The threshold of least estimated error + cost x rejected; equal scores go together.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([0.9, 0.8, 0.7, 0.6])
    >>> threshold_for_cost(scores, np.array([0.0, 0.1, 0.5, 0.6]), cost=0.2)
    0.7
    >>> threshold_for_cost(scores, np.array([0.9, 0.9, 0.9, 0.9]), cost=0.2)
    0.9
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    gain = np.concatenate([[0.0], np.cumsum(cost - estimates[order])])
    # Accepting the first j is possible where the next score is lower than the last taken.
    possible = np.concatenate([[True], ranked[1:] != ranked[:-1], [True]])
    taken = int(np.argmax(np.where(possible, gain, -np.inf)))
    return float(ranked[taken]) if taken < len(ranked) else -np.inf
