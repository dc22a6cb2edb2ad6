"""The logarithmic pool of several opinions, and how loud each of them should be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]

FLOOR = 1e-3  # added to every probability, so that one opinion cannot rule a label out alone
FIRMNESS = 5.0  # how firmly weights are held at their start, in units of log-likelihood
BOUNDS = (-4.0, 2.0)  # of the weights' logarithms


def logarithms(opinions: Floats) -> Floats:
    """Logarithms of probabilities (..., l), none of which is zero any more."""
    raised = opinions + FLOOR
    return np.asarray(np.log(raised / raised.sum(axis=-1, keepdims=True)))


def pool(opinions: Floats, weights: Floats) -> Floats:
    """The normalised product of powers of the opinions.

    Parameters
    ----------
    opinions : ndarray of shape (m, n, l)
        Probabilities of n instances by m voices.
    weights : ndarray of shape (m,)
        The powers. More than 1 in sum makes the pool surer than its voices.

    Returns
    -------
    ndarray of shape (n, l)

    Examples
    --------
    >>> import numpy as np
    >>> from demur.methods.deep.pool import pool
    >>> agreed = pool(np.array([[[0.8, 0.2]], [[0.8, 0.2]]]), np.array([0.5, 0.5]))
    >>> opposed = pool(np.array([[[0.8, 0.2]], [[0.2, 0.8]]]), np.array([0.5, 0.5]))
    >>> agreed.round(2).tolist(), opposed.round(2).tolist()
    ([[0.8, 0.2]], [[0.5, 0.5]])
    """
    return _softmax(np.tensordot(weights, logarithms(opinions), axes=1))


def learn_weights(opinions: Floats, candidates: NDArray[np.bool_], start: Floats) -> Floats:
    """Weights under which the pool gives the candidate sets the largest likelihood.

    The opinions must be those of voices that have not seen the instance, or the one that has
    learned it by heart is believed. A penalty on the logarithms holds the weights near
    ``start`` where the sets say little.

    Parameters
    ----------
    opinions : ndarray of shape (m, n, l)
    candidates : ndarray of shape (n, l)
    start : ndarray of shape (m,)

    Returns
    -------
    ndarray of shape (m,)
    """
    logs = logarithms(opinions)
    first = np.log(start)

    def objective(theta: Floats) -> tuple[float, Floats]:
        weights = np.exp(theta)
        proba = _softmax(np.tensordot(weights, logs, axes=1))
        inside = np.maximum((proba * candidates).sum(axis=1), np.finfo(float).tiny)
        surplus = proba * (candidates / inside[:, None] - 1.0)  # d log(inside) / d logits
        slope = weights * np.tensordot(logs, surplus, axes=((1, 2), (0, 1)))
        away = theta - first
        return (
            -float(np.log(inside).sum()) + FIRMNESS * float(away @ away),
            2 * FIRMNESS * away - slope,
        )

    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=[BOUNDS] * len(first))
    return np.asarray(np.exp(found.x))


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
