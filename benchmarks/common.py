"""Timing that a busy machine disturbs as little as can be: the sides alternate in one run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

# Else the threads of one side spin for a while after it ends, in the other side's time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
from numpy.typing import NDArray


def rounds(*sides: Callable[[], object], repeats: int = 5) -> NDArray[np.float64]:
    """Seconds, rounds by sides; one round runs every side once, after a round untimed."""
    times = np.empty((repeats + 1, len(sides)))
    for row in times:
        for i, side in enumerate(sides):
            start = time.perf_counter()
            side()
            row[i] = time.perf_counter() - start
    return times[1:]


def seconds(*sides: Callable[[], object], repeats: int = 5) -> list[float]:
    """Median seconds of each side over the rounds."""
    return [float(median) for median in np.median(rounds(*sides, repeats=repeats), axis=0)]


def ratio(ours: int, theirs: int, times: NDArray[np.float64]) -> dict[str, float]:
    """Their seconds for one of ours: median over the rounds, and of the quickest of each."""
    quickest = times.min(axis=0)
    return {
        "ratio": float(np.median(times[:, theirs] / times[:, ours])),
        "ratio_of_quickest": float(quickest[theirs] / quickest[ours]),
    }


def report(**fields: object) -> None:
    """One result as a line of JSON, floats to four digits."""
    rounded = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in fields.items()}
    print(json.dumps(rounded), flush=True)


def clouds(
    n: int, d: int, l: int, n_queries: int, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Overlapping Gaussian clouds, one a class: points, labels, new points."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(l, d))
    y, new = rng.integers(l, size=n), rng.integers(l, size=n_queries)
    X = centers[y] + rng.normal(size=(n, d))
    return X, y, centers[new] + rng.normal(size=(n_queries, d))


def candidates(y: NDArray[np.intp], l: int, rate: float, seed: int = 0) -> NDArray[np.bool_]:
    """The true label, and every other one with the chance ``rate``."""
    S = np.random.default_rng(seed).random((len(y), l)) < rate
    S[np.arange(len(y)), y] = True
    return S
