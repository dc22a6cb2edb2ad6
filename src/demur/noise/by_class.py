"""Noise that knows at most the true label: uniform, and by pairs of classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.candidates import CandidateSets
from demur.noise.truth import check_chance, read_truth, skip


def uniform_noise(
    y: ArrayLike,
    *,
    n_noise: int = 3,
    share: float = 0.7,
    classes: Iterable[Any] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> CandidateSets:
    """Add wrong labels, any as likely as any other.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels; each stays in its candidate set.
    n_noise : int, default=3
        Number of different wrong labels that a noisy instance gets.
    share : float, default=0.7
        Chance of an instance to be noisy, independent of the others. (The share that comes
        out scatters around it, as in the published experiments.)
    classes : array-like, optional
        All labels; by default those that occur, sorted.
    random_state : int, numpy Generator, or None
        The same integer gives the same sets.

    Returns
    -------
    CandidateSets

    Examples
    --------
    >>> from demur.noise import uniform_noise
    >>> y = ["ant", "bee", "cat", "dog"]
    >>> uniform_noise(y, n_noise=1, share=1.0, random_state=0).to_lists()
    [['ant', 'bee'], ['bee', 'dog'], ['bee', 'cat'], ['cat', 'dog']]
    """
    check_chance("share", share)
    truth, sets = read_truth(y, classes)
    if n_noise not in range(sets.n_classes):
        raise ValueError(
            f"n_noise is {n_noise}, but {sets.n_classes} classes leave 0 to "
            f"{sets.n_classes - 1} wrong labels for an instance."
        )
    rng = np.random.default_rng(random_state)
    noisy = np.flatnonzero(rng.random(len(truth)) < share)
    truth = truth[noisy]
    held = sets.to_indicator()
    n_others = sets.n_classes - 1
    # Floyd's way to draw different numbers: one that was drawn before gives way to the last.
    for last in range(n_others - int(n_noise), n_others):
        drawn = skip(rng.integers(0, last + 1, size=len(noisy)), truth)
        column = np.where(held[noisy, drawn], skip(last, truth), drawn)
        held[noisy, column] = True
    return CandidateSets(held, classes=sets.classes)


def class_dependent_noise(
    y: ArrayLike,
    *,
    share: float = 0.7,
    partner_probability: float = 1.0,
    classes: Iterable[Any] | None = None,
    random_state: int | np.random.Generator | None = None,
) -> CandidateSets:
    """Pair the classes at random, and add mostly the partner of the true label.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels; each stays in its candidate set.
    share : float, default=0.7
        Chance of an instance to get one wrong label, independent of the others.
    partner_probability : float, default=1.0
        Chance of that label to be the partner; else it is any other wrong label, all as
        likely. With an odd number of classes one has no partner: its instances get any
        wrong label.
    classes : array-like, optional
        All labels; by default those that occur, sorted.
    random_state : int, numpy Generator, or None
        The same integer gives the same sets. The pairs are ``pair_classes(n_classes,
        random_state)``.

    Returns
    -------
    CandidateSets

    Examples
    --------
    >>> from demur.noise import class_dependent_noise
    >>> y = ["ant", "bee", "cat", "dog"]
    >>> class_dependent_noise(y, share=1.0, random_state=0).to_lists()
    [['ant', 'dog'], ['bee', 'cat'], ['bee', 'cat'], ['ant', 'dog']]
    """
    check_chance("share", share)
    check_chance("partner_probability", partner_probability)
    truth, sets = read_truth(y, classes)
    needed = 2 if partner_probability == 1 else 3
    if sets.n_classes < needed:
        raise ValueError(
            f"partner_probability={partner_probability} needs at least {needed} classes: the "
            f"true one, its partner{' and another' * (needed > 2)}; got {sets.n_classes}."
        )
    rng = np.random.default_rng(random_state)
    partners = pair_classes(sets.n_classes, rng)
    noisy = np.flatnonzero(rng.random(len(truth)) < share)
    truth = truth[noisy]
    added = partners[truth]
    alone = added == truth
    astray = np.flatnonzero(alone | (rng.random(len(noisy)) >= partner_probability))
    low = np.minimum(truth, added)[astray]
    high = np.maximum(truth, added)[astray]
    drawn = skip(rng.integers(0, sets.n_classes - np.where(alone[astray], 1, 2)), low)
    added[astray] = np.where(alone[astray], drawn, skip(drawn, high))
    held = sets.to_indicator()
    held[noisy, added] = True
    return CandidateSets(held, classes=sets.classes)


def pair_classes(
    n_classes: int, random_state: int | np.random.Generator | None = None
) -> NDArray[np.intp]:
    """Random pairs of classes: the partner of each, or itself for the odd one out.

    Examples
    --------
    >>> from demur.noise import pair_classes
    >>> pair_classes(5, random_state=0).tolist()
    [4, 1, 3, 2, 0]
    """
    order = np.random.default_rng(random_state).permutation(n_classes)
    half = n_classes // 2
    partners = np.arange(n_classes)
    partners[order[:half]] = order[half : 2 * half]
    partners[order[half : 2 * half]] = order[:half]
    return partners
