"""Expected masses worked out: by the nested sums of the text, and by inclusion-exclusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets
from demur.theory.assumption import (
    CONFUSED,
    TRUE,
    Assumption,
    Distribution,
    Number,
    check_alpha,
    check_whole,
    read_distribution,
)

MAX_CLASSES = 20  # over all of whose sets a table is kept
MAX_TERMS = 1_000_000  # of nested sums: about ten seconds

# ---------------------------------------------------------------- the sums of the text


def nested_sums(
    assumption: Assumption, n_neighbors: int, *, label: int = TRUE, alpha: Number = 0.5
) -> Number:
    """Expected mass of the true or the confused label by the nested sums of the text.

    Counts the ways in which the sets taken at their word hold each label so and so often,
    and leaves out those where a set holds all labels. About ``n_neighbors ** n_classes``
    terms.

    Parameters
    ----------
    assumption : Assumption
    n_neighbors : int
    label : {0, 1}, default=0
        0 for the true label, 1 for the confused one.
    alpha : float or Fraction, default=0.5
        Mass that a neighbour leaves undecided.

    Returns
    -------
    mass : float, or Fraction where p holds Fractions

    Examples
    --------
    >>> from fractions import Fraction
    >>> from demur.theory import Assumption, nested_sums
    >>> p = Fraction(2, 5), Fraction(7, 20), Fraction(1, 4)
    >>> nested_sums(Assumption(p, n_classes=3), 2)
    Fraction(231, 1280)
    """
    l, k = assumption.n_classes, check_whole("n_neighbors", n_neighbors, 1)
    if label not in (TRUE, CONFUSED):
        raise ValueError(
            f"label is {label!r}; the text gives sums for the true label, 0, and the confused "
            "one, 1. expected_masses has those of all."
        )
    stays = check_alpha(alpha, assumption.exact)
    n_terms = sum(n ** (l - 1) for n in range(1, k + 1))
    if n_terms > MAX_TERMS:
        raise ValueError(
            f"the nested sums for {l} classes and {k} neighbours have about {n_terms:.1g} terms, "
            f"more than {MAX_TERMS:.0g}; expected_masses gives the same value at once."
        )
    total = assumption.number(0)
    for h in range(k):  # of k neighbours, h leave their mass on the frame
        n = k - h
        chance = sum(_chances(assumption, n, label), assumption.number(0))
        total += comb(k, n) * stays**h * (1 - stays) ** n * chance
    return total


def _chances(assumption: Assumption, n: int, label: int) -> Iterator[Number]:
    """Chances that n sets have the label alone in common, by how many hold the other of the two."""
    u1, u2, u3 = assumption.per_set
    alone = u2 if label == TRUE else u3
    for i in range(n):  # sets that hold the other one, too
        ways = sum(
            # The first term counts all; the rest leaves out those with b full sets or more.
            (-1) ** b * comb(n, b) * comb(n - b, i - b) * prod(comb(n - b, j - b) for j in js)
            for js in product(range(n), repeat=assumption.n_classes - 2)
            for b in range(min(i, *js) + 1)
        )
        yield ways * u1**i * alone ** (n - i)


# ---------------------------------------------------------------- inclusion and exclusion


def expected_masses(
    distribution: Distribution,
    n_neighbors: int | Sequence[int] | NDArray[Any],
    *,
    alpha: Number = 0.5,
) -> NDArray[Any]:
    """Expected mass of every label by inclusion and exclusion over commonalities.

    A set A of labels keeps the commonality 1 of a neighbour whose set S holds it, and alpha of
    any other. Neighbours are independent, so the mass of the singleton of y is expected to be

        sum over A that hold y of (-1) ** (|A| - 1) * (alpha + (1 - alpha) P(A in S)) ** k.

    Parameters
    ----------
    distribution : Assumption, or mapping from sets of labels to probabilities
        Of one neighbour's candidates. A mapping costs ``2 ** n_classes``, for at most 20
        classes; an `Assumption` has only about two different terms a class, and is summed
        exactly for any number of them.
    n_neighbors : int or sequence of int
    alpha : float or Fraction, default=0.5
        Mass that a neighbour leaves undecided.

    Returns
    -------
    masses : ndarray of shape (n_classes,), or (len(n_neighbors), n_classes)
        Of the labels in their order. Floats, or Fractions where all probabilities are; see Notes.

    Notes
    -----
    The sums over a mapping in floats have errors of about ``1e-16 * 2 ** (n_classes / 2)``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from demur.theory import expected_masses
    >>> expected_masses({("a", "b"): 0.5, ("a", "c"): 0.5}, [1, 2]).tolist()
    [[0.0, 0.0, 0.0], [0.125, 0.0, 0.0]]
    >>> expected_masses({("a", "b"): Fraction(1, 2), ("a", "c"): Fraction(1, 2)}, 2)[0]
    Fraction(1, 8)
    """
    ks = np.atleast_1d(np.asarray(n_neighbors))
    if ks.ndim != 1 or ks.dtype.kind not in "iu" or ks.min(initial=1) < 1:
        raise ValueError(f"n_neighbors must be whole numbers from 1; got {n_neighbors!r}.")
    if isinstance(distribution, Assumption):
        masses = np.array([_assumed_masses(distribution, k, alpha) for k in ks.tolist()])
    else:
        masses = _summed_masses(*read_distribution(distribution), ks.tolist(), alpha)
    return masses[0] if np.ndim(n_neighbors) == 0 else masses


def _assumed_masses(assumption: Assumption, k: int, alpha: Number) -> list[Number]:
    """The sums with terms that are alike taken together, in Fractions: nothing cancels badly."""
    p1, p2, p3 = (Fraction(share) for share in assumption.p)
    total = p1 + p2 + p3  # floats need not sum to 1 exactly
    exact = Assumption((p1 / total, p2 / total, p3 / total), assumption.n_classes)
    stays = check_alpha(alpha, exact=True)
    n_others = assumption.n_classes - 2

    def term(true: bool, confused: bool, others: int) -> Fraction:
        held = Fraction(exact.commonality_of(true, confused, others))
        return Fraction((-1) ** (true + confused + others - 1) * (stays + (1 - stays) * held) ** k)

    both = (False, True)
    masses: list[Number] = [
        sum(comb(n_others, a) * term(True, c, a) for a in range(n_others + 1) for c in both),
        sum(comb(n_others, a) * term(t, True, a) for a in range(n_others + 1) for t in both),
        sum(
            comb(n_others - 1, a) * term(t, c, a + 1)
            for a in range(n_others)
            for t in both
            for c in both
        ),
    ]
    masses += [masses[-1]] * (n_others - 1)
    return masses if assumption.exact else [float(mass) for mass in masses]


def _summed_masses(
    sets: CandidateSets, chances: NDArray[Any], ks: list[int], alpha: Number
) -> NDArray[Any]:
    l = sets.n_classes
    if l > MAX_CLASSES:
        raise ValueError(f"sums over all sets of at most {MAX_CLASSES} labels are done; got {l}.")
    exact = chances.dtype == object
    stays: Any = check_alpha(alpha, exact)
    held = np.full(2**l, Fraction(0), dtype=object) if exact else np.zeros(2**l)
    np.add.at(held, sets.words[:, 0].astype(np.intp), chances)
    for y in range(l):  # from the chance of a set to that of all that hold it
        pairs = held.reshape(-1, 2, 2**y)
        pairs[:, 0] += pairs[:, 1]
    commonality = stays + (1 - stays) * held
    sign = np.where(np.bitwise_count(np.arange(2**l)) % 2, 1, -1)
    masses = np.empty((len(ks), l), dtype=held.dtype)
    for row, k in enumerate(ks):
        terms = sign * commonality**k
        for y in range(l):
            masses[row, y] = terms.reshape(-1, 2, 2**y)[:, 1].sum()
    return masses
