"""How the candidate sets of an instance's neighbours are assumed to be distributed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isclose
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.candidates import CandidateSets

Number = float | Fraction

TRUE, CONFUSED = 0, 1  # labels of an Assumption; all from 2 on are alike

MAX_LISTED_CLASSES = 16  # whose sets an Assumption lists


def _as_numbers(values: Iterable[Any], what: str) -> list[Number]:
    """Probabilities as Fractions where all are rational, else as floats."""
    listed = list(values)
    exact = all(isinstance(value, Rational) for value in listed)
    numbers: list[Number] = [Fraction(v) if exact else float(v) for v in listed]
    bad = [value for value in numbers if not value >= 0]
    if bad:
        raise ValueError(f"{what} holds {bad[0]}; probabilities are not negative.")
    total = sum(numbers)
    if total != 1 and (exact or not isclose(total, 1, abs_tol=1e-9)):
        raise ValueError(f"the probabilities of {what} sum to {total}; they must sum to 1.")
    return numbers


def check_whole(name: str, value: Any, least: int) -> int:
    """Refuse what is not a whole number from ``least``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number from {least}; got {value!r}.")
    return int(value)


def check_alpha(alpha: Number, exact: bool) -> Number:
    """Refuse what is not between 0 and 1; a Fraction of it if ``exact``, else a float."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, both excluded; got {alpha}.")
    return Fraction(alpha) if exact else float(alpha)


@dataclass(frozen=True)
class Assumption:
    """The text's assumption on the candidate sets of an instance's neighbours.

    Label 0 is the true label of the instance, 1 the one it is most often confused with. A
    neighbour's set is, independent of the others,

    - with probability p1 one that holds both, short of all labels;
    - with probability p2 one that holds the true label but not the confused one;
    - with probability p3 one that lacks the true label, but is not empty;

    and within each of the three any set is as likely as any other.

    Parameters
    ----------
    p : tuple of three numbers
        p1, p2 and p3: not negative, with sum 1. With Fractions, all that follows is exact.
        The text asks for p1 >= p2 >= p3 > 0; see `ordered`.
    n_classes : int
        At least 3.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from demur.theory import Assumption
    >>> assumption = Assumption((Fraction(2, 5), Fraction(7, 20), Fraction(1, 4)), n_classes=3)
    >>> for candidates, chance in assumption.distribution().items():
    ...     print(sorted(candidates), chance)
    [0] 7/40
    [1] 1/12
    [0, 1] 2/5
    [2] 1/12
    [0, 2] 7/40
    [1, 2] 1/12
    >>> assumption.probability({1, 2}, label=2)
    Fraction(1, 24)
    """

    p: tuple[Number, Number, Number]
    n_classes: int

    def __post_init__(self) -> None:
        numbers = _as_numbers(self.p, "p")
        if len(numbers) != 3:
            raise ValueError(f"p holds {len(numbers)} numbers; it must hold p1, p2 and p3.")
        object.__setattr__(self, "p", tuple(numbers))
        check_whole("n_classes", self.n_classes, 3)

    @property
    def exact(self) -> bool:
        """Whether p holds Fractions only."""
        return isinstance(self.p[0], Fraction)

    @property
    def ordered(self) -> bool:
        """Whether p1 >= p2 >= p3 > 0, as the text asks."""
        p1, p2, p3 = self.p
        return p1 >= p2 >= p3 > 0

    @property
    def group_sizes(self) -> tuple[int, int, int]:
        """How many sets share p1, p2 and p3."""
        l = self.n_classes
        return 2 ** (l - 2) - 1, 2 ** (l - 2), 2 ** (l - 1) - 1

    @property
    def per_set(self) -> tuple[Number, Number, Number]:
        """Probability of a single set in each of the three cases."""
        u1, u2, u3 = (share / size for share, size in zip(self.p, self.group_sizes, strict=True))
        return u1, u2, u3

    @property
    def mean_size(self) -> float:
        """Expected number of candidates of a neighbour."""
        others = self.n_classes - 2
        both, without, absent = self.group_sizes
        sizes = (
            2 + others * (2 ** (others - 1) - 1) / both,
            1 + others / 2,
            (others + 1) * without / absent,
        )
        return float(sum(share * size for share, size in zip(self.p, sizes, strict=True)))

    def probability(self, candidates: Iterable[int], label: int | None = None) -> Number:
        """Probability that a neighbour has these candidates.

        Parameters
        ----------
        candidates : iterable of int
            Labels from 0 to ``n_classes - 1``.
        label : int, optional
            Then: and that this is the neighbour's true label.
        """
        held = self._read(candidates)
        if len(held) in (0, self.n_classes):
            return self.number(0)
        u1, u2, u3 = self.per_set
        if TRUE in held:
            chance, holders = (u1 if CONFUSED in held else u2), frozenset({TRUE})
        else:
            chance, holders = u3, held
        if label is None:
            return chance
        return chance / len(holders) if label in holders else self.number(0)

    def commonality(self, labels: Iterable[int]) -> Number:
        """Probability that a neighbour's set holds all of these labels."""
        held = self._read(labels)
        others = len(held - {TRUE, CONFUSED})
        return self.commonality_of(TRUE in held, CONFUSED in held, others)

    def commonality_of(self, true: bool, confused: bool, others: int) -> Number:
        """Of a set that holds the true label, the confused one, and so many others."""
        u1, u2, u3 = self.per_set
        free: int = 2 ** (self.n_classes - 2 - others)  # ways to choose the labels not asked for
        chance = (free - 1) * u1
        if not confused:
            chance += free * u2
        if not true:
            chance += (free * (1 if confused else 2) - (not confused and others == 0)) * u3
        return chance

    def distribution(self) -> dict[frozenset[int], Number]:
        """The probability of every set that can occur."""
        if self.n_classes > MAX_LISTED_CLASSES:
            raise ValueError(
                f"{self.n_classes} classes have 2 ** {self.n_classes} sets, too many to list "
                f"(at most {MAX_LISTED_CLASSES} classes); ask for the probability of one set."
            )
        sets = (
            frozenset(y for y in range(self.n_classes) if bits >> y & 1)
            for bits in range(1, 2**self.n_classes - 1)
        )
        return {candidates: self.probability(candidates) for candidates in sets}

    def _read(self, labels: Iterable[int]) -> frozenset[int]:
        held = frozenset(labels)
        strange = held - frozenset(range(self.n_classes))
        if strange:
            raise ValueError(
                f"{min(strange, key=repr)!r} is no label; they are 0 (the true one), "
                f"1 (the confused one) to {self.n_classes - 1}."
            )
        return held

    def number(self, value: int) -> Number:
        """The value as a Fraction if p holds Fractions, else as a float."""
        return Fraction(value) if self.exact else float(value)


# What the text draws in its figure of the expected masses.
PAPER = Assumption((0.4, 0.35, 0.25), 3)

Distribution = Assumption | Mapping[Any, Any]


def read_distribution(distribution: Distribution) -> tuple[CandidateSets, NDArray[Any]]:
    """The sets and their probabilities: Fractions in an object array, or floats."""
    classes: Iterable[Any] | None = None
    if isinstance(distribution, Assumption):
        classes, distribution = range(distribution.n_classes), distribution.distribution()
    if not isinstance(distribution, Mapping):
        raise ValueError(
            "distribution must be an Assumption, or map sets of labels to probabilities; "
            f"got {type(distribution).__name__}."
        )
    numbers = _as_numbers(distribution.values(), "the distribution")
    sets = CandidateSets(list(distribution), classes=classes)
    exact = isinstance(numbers[0], Fraction)
    return sets, np.array(numbers, dtype=object if exact else np.float64)
