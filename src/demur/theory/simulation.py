"""Masses simulated: neighbours are drawn, their evidence is combined, and the masses averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.evidence.combine import MAX_NEIGHBORS, combine
from demur.theory.assumption import (
    PAPER,
    Distribution,
    check_alpha,
    check_whole,
    read_distribution,
)
from demur.theory.closed_form import expected_masses

Floats = NDArray[np.float64]

MAX_FOLDED_CLASSES = 8  # for more neighbours than the kernel takes
CHUNK_CELLS = 2**21  # numbers held at once by a simulation: 16 MB an array


class SimulatedMasses(NamedTuple):
    """Masses of the labels over many draws of neighbours.

    Attributes
    ----------
    mean, standard_error : ndarray of shape (n_classes,)
    """

    mean: Floats
    standard_error: Floats


def simulate_masses(
    distribution: Distribution,
    n_neighbors: int,
    *,
    n_draws: int = 100_000,
    alpha: float = 0.5,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> SimulatedMasses:
    """Mean mass of every label over neighbours drawn at random.

    Up to 64 neighbours are combined by the kernel that predicts, more of them (for at most 8
    classes) by merging equal sets. Memory does not grow with ``n_draws``.

    Parameters
    ----------
    distribution : Assumption, or mapping from sets of labels to probabilities
        Of one neighbour's candidates; an Assumption of at most 16 classes.
    n_neighbors : int
    n_draws : int, default=100_000
        At least 2.
    alpha : float, default=0.5
        Mass that a neighbour leaves undecided.
    random_state : int, numpy Generator, or None
        The same integer gives the same masses.
    n_jobs : int, optional
        Threads; the masses are the same.

    Returns
    -------
    masses : SimulatedMasses

    Notes
    -----
    With many neighbours a few draws hold most of the mass. The mean is then likely too small,
    and the standard error with it.

    Examples
    --------
    >>> from demur.theory import simulate_masses
    >>> drawn = simulate_masses({("a", "b"): 0.5, ("a", "c"): 0.5}, 2, random_state=0)
    >>> drawn.mean.round(2).tolist(), (drawn.standard_error < 1e-3).all().item()
    ([0.12, 0.0, 0.0], True)
    """
    k = check_whole("n_neighbors", n_neighbors, 1)
    check_whole("n_draws", n_draws, 2)
    stays = float(check_alpha(alpha, exact=False))
    sets, listed = read_distribution(distribution)
    chances = listed.astype(np.float64) / float(listed.sum())
    l = sets.n_classes
    if k > MAX_NEIGHBORS and l > MAX_FOLDED_CLASSES:
        raise ValueError(
            f"more than {MAX_NEIGHBORS} neighbours are simulated for at most "
            f"{MAX_FOLDED_CLASSES} classes; got {k} neighbours and {l} classes."
        )
    rng = np.random.default_rng(random_state)
    chunk = max(1, CHUNK_CELLS // (k if k <= MAX_NEIGHBORS else len(sets) + 2**l))
    total, squares = np.zeros(l), np.zeros(l)
    for start in range(0, n_draws, chunk):
        size = min(chunk, n_draws - start)
        if k <= MAX_NEIGHBORS:
            drawn = np.searchsorted(chances.cumsum()[:-1], rng.random((size, k)), side="right")
            frame = CandidateSets(np.ones((1, l), dtype=bool)).words
            masses = combine(
                sets.words, drawn, frame, l, alpha=stays, top_sets=False, n_jobs=n_jobs
            ).belief
        else:
            masses = _fold_counts(sets, rng.multinomial(k, chances, size=size), stays)
        total += masses.sum(axis=0)
        squares += (masses**2).sum(axis=0)
    mean = total / n_draws
    variance = np.maximum(squares - n_draws * mean**2, 0.0) / (n_draws - 1)
    return SimulatedMasses(mean, np.sqrt(variance / n_draws))


def _fold_counts(sets: CandidateSets, counts: NDArray[np.int64], alpha: float) -> Floats:
    """Masses of the labels where ``counts[i, s]`` neighbours have set s.

    Equal sets act as one that leaves ``alpha ** count``, so many neighbours cost no more than
    there are sets.
    """
    l = sets.n_classes
    frame = 2**l - 1
    masses = np.zeros((2**l, len(counts)))
    masses[frame] = 1.0
    for candidates, count in zip(sets.words[:, 0].tolist(), counts.T, strict=True):
        stays = alpha**count
        for focal in range(1, 2**l):
            if focal & ~candidates:
                masses[focal & candidates] += masses[focal] * (1 - stays)
                masses[focal] *= stays
    singles: Floats = masses[1 << np.arange(l)].T
    return singles


class ExpectedMassCurve(NamedTuple):
    """Expected masses by the number of neighbours, worked out and simulated.

    Attributes
    ----------
    n_neighbors : ndarray of shape (m,)
    closed_form, simulated, standard_error : ndarray of shape (m, n_classes)
        Of an Assumption, column 0 is the true label and column 1 the confused one.
    """

    n_neighbors: NDArray[np.intp]
    closed_form: Floats
    simulated: Floats
    standard_error: Floats


def expected_mass_curve(
    distribution: Distribution = PAPER,
    n_neighbors: Iterable[int] = range(1, 101),
    *,
    n_draws: int = 100_000,
    alpha: float = 0.5,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> ExpectedMassCurve:
    """Expected masses for each number of neighbours, in closed form and simulated.

    Every point is simulated with draws of its own. The defaults are those of the text's
    figure, and take about half a minute on one core.

    Parameters
    ----------
    distribution : Assumption, or mapping from sets of labels to probabilities
    n_neighbors : iterable of int, default=range(1, 101)
    n_draws : int, default=100_000
        For each number of neighbours.
    alpha : float, default=0.5
    random_state : int, numpy Generator, or None
    n_jobs : int, optional

    Returns
    -------
    curve : ExpectedMassCurve

    Examples
    --------
    >>> from demur.theory import expected_mass_curve
    >>> curve = expected_mass_curve(n_neighbors=(1, 5), n_draws=1000, random_state=0)
    >>> curve.closed_form.round(4).tolist()
    [[0.0875, 0.0417, 0.0417], [0.3061, 0.1115, 0.0505]]
    >>> bool((abs(curve.simulated - curve.closed_form) < 4 * curve.standard_error).all())
    True
    """
    ks = [check_whole("n_neighbors", k, 1) for k in n_neighbors]
    rng = np.random.default_rng(random_state)
    simulated = [
        simulate_masses(
            distribution, k, n_draws=n_draws, alpha=alpha, random_state=rng, n_jobs=n_jobs
        )
        for k in ks
    ]
    return ExpectedMassCurve(
        np.asarray(ks, dtype=np.intp),
        expected_masses(distribution, ks, alpha=alpha).astype(np.float64),
        np.array([masses.mean for masses in simulated]),
        np.array([masses.standard_error for masses in simulated]),
    )
