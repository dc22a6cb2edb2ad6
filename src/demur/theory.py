"""Expected masses of labels under the text's assumption, and how well that holds in data.

The assumption says how the candidate sets of an instance's neighbours are distributed. What
mass the neighbours' combined evidence then gives each label on average is worked out by three
routes that share nothing but the distribution: `nested_sums`, `expected_masses` by inclusion
and exclusion, and `simulate_masses`. `check_assumption` looks at data.

>>> from demur.theory import Assumption, expected_masses, nested_sums, simulate_masses
>>> assumption = Assumption((0.4, 0.35, 0.25), n_classes=3)
>>> expected_masses(assumption, 5).round(6).tolist()
[0.306098, 0.11149, 0.050484]
>>> [round(nested_sums(assumption, 5, label=label), 6) for label in range(3)]
[0.306098, 0.11149, 0.050484]
>>> simulate_masses(assumption, 5, random_state=0).mean.round(2).tolist()
[0.31, 0.11, 0.05]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import product
from math import comb, isclose, prod
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from sklearn.utils.validation import check_array

from demur.candidates import CandidateSets
from demur.evidence.combine import MAX_NEIGHBORS, combine
from demur.neighbors import build_index

Number = float | Fraction
Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

TRUE, CONFUSED = 0, 1  # labels of an Assumption; all from 2 on are alike

MAX_LISTED_CLASSES = 16  # whose sets an Assumption lists
MAX_CLASSES = 20  # over all of whose sets a table is kept
MAX_FOLDED_CLASSES = 8  # for more neighbours than the kernel takes
MAX_TERMS = 1_000_000  # of nested sums: some seconds
CHUNK_CELLS = 2**21  # numbers held at once by a simulation: 16 MB an array

# ---------------------------------------------------------------- what is checked


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


def _check_whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number from {least}; got {value!r}.")
    return int(value)


def _check_alpha(alpha: Number, exact: bool) -> Number:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, both excluded; got {alpha}.")
    return Fraction(alpha) if exact else float(alpha)


# ---------------------------------------------------------------- what is assumed


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
        _check_whole("n_classes", self.n_classes, 3)

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
            return self._number(0)
        u1, u2, u3 = self.per_set
        if TRUE in held:
            chance, holders = (u1 if CONFUSED in held else u2), frozenset({TRUE})
        else:
            chance, holders = u3, held
        if label is None:
            return chance
        return chance / len(holders) if label in holders else self._number(0)

    def commonality(self, labels: Iterable[int]) -> Number:
        """Probability that a neighbour's set holds all of these labels."""
        held = self._read(labels)
        others = len(held - {TRUE, CONFUSED})
        return self._commonality(TRUE in held, CONFUSED in held, others)

    def _commonality(self, true: bool, confused: bool, others: int) -> Number:
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

    def _number(self, value: int) -> Number:
        return Fraction(value) if self.exact else float(value)


# What the text draws in its figure of the expected masses.
PAPER = Assumption((0.4, 0.35, 0.25), 3)

Distribution = Assumption | Mapping[Any, Any]


def _read_distribution(
    distribution: Distribution, classes: Iterable[Hashable] | None
) -> tuple[CandidateSets, NDArray[Any]]:
    """The sets and their probabilities: Fractions in an object array, or floats."""
    if isinstance(distribution, Assumption):
        if classes is not None:
            raise ValueError("classes go with a mapping; those of an Assumption are 0, 1, ...")
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


# ---------------------------------------------------------------- route 1: nested sums


def nested_sums(
    assumption: Assumption, n_neighbors: int, *, label: int = TRUE, alpha: Number = 0.5
) -> Number:
    """Expected mass of a label by the nested sums of the text's appendix.

    Counts the ways in which the sets taken at their word hold each label so and so often,
    and leaves out those where a set holds all labels. About ``n_neighbors ** n_classes``
    terms. The text gives the sums for the true and the confused label; those of any other
    label are found in the same manner, with two indices more.

    Parameters
    ----------
    assumption : Assumption
    n_neighbors : int
    label : int, default=0
        0 for the true label, 1 for the confused one, 2 and up for the others.
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
    l, k = assumption.n_classes, _check_whole("n_neighbors", n_neighbors, 1)
    if label not in range(l):
        raise ValueError(f"label is {label!r}; it must be from 0 to {l - 1}.")
    stays = _check_alpha(alpha, assumption.exact)
    depth = l - 1 if label in (TRUE, CONFUSED) else l
    n_terms = sum(n**depth for n in range(1, k + 1))
    if n_terms > MAX_TERMS:
        raise ValueError(
            f"the nested sums for {l} classes and {k} neighbours have about {n_terms:.1g} terms, "
            f"more than {MAX_TERMS:.0g}; expected_masses gives the same value at once."
        )
    total = assumption._number(0)
    for h in range(k):  # of k neighbours, h leave their mass on the frame
        n = k - h
        of_this = _other_sums if depth == l else _text_sums
        chance = sum(of_this(assumption, n, label), assumption._number(0))
        total += comb(k, n) * stays**h * (1 - stays) ** n * chance
    return total


def _text_sums(assumption: Assumption, n: int, label: int) -> Iterator[Number]:
    """The sums of the text for n sets that all hold the true, or the confused label."""
    u1, u2, u3 = assumption.per_set
    alone = u2 if label == TRUE else u3
    for i in range(n):  # sets that hold the other one of the two, too
        ways = sum(
            # The first term counts all; the rest leaves out those with b full sets or more.
            (-1) ** b * comb(n, b) * comb(n - b, i - b) * prod(comb(n - b, j - b) for j in js)
            for js in product(range(n), repeat=assumption.n_classes - 2)
            for b in range(min(i, *js) + 1)
        )
        yield ways * u1**i * alone ** (n - i)


def _other_sums(assumption: Assumption, n: int, label: int) -> Iterator[Number]:
    """The same for n sets that all hold a label that is neither; which one is no matter."""
    u1, u2, u3 = assumption.per_set
    for t in range(n):  # sets that hold the true label
        for i in range(t + 1):  # and the confused one
            ways = 0
            for js in product(range(n), repeat=assumption.n_classes - 3):
                ways += sum(
                    (-1) ** b
                    * comb(n, b)
                    * comb(n - b, t - b)
                    * comb(t - b, i - b)
                    * prod(comb(n - b, j - b) for j in js)
                    for b in range(min(i, *js, n) + 1)
                )
            # Sets without the true label may hold the confused one, but some set lacks it.
            ways *= sum(comb(n - t, c) for c in range(min(n - t, n - 1 - i) + 1))
            yield ways * u1**i * u2 ** (t - i) * u3 ** (n - t)


# ---------------------------------------------------------------- route 2: commonalities


def expected_masses(
    distribution: Distribution,
    n_neighbors: int | Sequence[int] | NDArray[Any],
    *,
    alpha: Number = 0.5,
    classes: Iterable[Hashable] | None = None,
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
    classes : iterable of labels, optional
        All labels, in the order of the columns. By default those of the mapping, sorted.

    Returns
    -------
    masses : ndarray of shape (n_classes,), or (len(n_neighbors), n_classes)
        Floats, or Fractions where all probabilities are; see Notes.

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
        if classes is not None:
            raise ValueError("classes go with a mapping; those of an Assumption are 0, 1, ...")
        masses = np.array([_assumed_masses(distribution, k, alpha) for k in ks.tolist()])
    else:
        masses = _summed_masses(*_read_distribution(distribution, classes), ks.tolist(), alpha)
    return masses[0] if np.ndim(n_neighbors) == 0 else masses


def _assumed_masses(assumption: Assumption, k: int, alpha: Number) -> list[Number]:
    """The sums with terms that are alike taken together, in Fractions: nothing cancels badly."""
    p1, p2, p3 = (Fraction(share) for share in assumption.p)
    total = p1 + p2 + p3  # floats need not sum to 1 exactly
    exact = Assumption((p1 / total, p2 / total, p3 / total), assumption.n_classes)
    stays = _check_alpha(alpha, exact=True)
    n_others = assumption.n_classes - 2

    def term(true: bool, confused: bool, others: int) -> Fraction:
        held = Fraction(exact._commonality(true, confused, others))
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
    stays: Any = _check_alpha(alpha, exact)
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


# ---------------------------------------------------------------- route 3: simulation


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
    classes: Iterable[Hashable] | None = None,
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
    classes : iterable of labels, optional
        All labels, in the order of the columns. By default those of the mapping, sorted.
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
    k = _check_whole("n_neighbors", n_neighbors, 1)
    _check_whole("n_draws", n_draws, 2)
    stays = float(_check_alpha(alpha, exact=False))
    sets, listed = _read_distribution(distribution, classes)
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

    n_neighbors: Ints
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
    ks = [_check_whole("n_neighbors", k, 1) for k in n_neighbors]
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


# ---------------------------------------------------------------- how well it holds in data


@dataclass(frozen=True)
class Neighborhoods:
    """What the neighbourhoods of a class, or of all, look like beside the assumption.

    A distance is one of total variation: the largest difference in probability, from 0
    (the same) to 1.

    Attributes
    ----------
    n_instances : int
    p1, p2, p3 : float
        Shares of the neighbours' sets, short of those with every class, that hold the true
        label and the confused one; the true but not the confused one; not the true one. NaN
        where every set has every class.
    dominance, tied_dominance : float
        Share of the instances whose true label is in more of the neighbours' sets than any
        other label; or in as many.
    full_share : float
        Share of the neighbours' sets with every class; the assumption has none.
    noise_share : float
        Share of the neighbours' sets that hold the true label though it is not the neighbour's
        own; the assumption has none. NaN where the neighbours' labels are not known.
    mean_size, assumed_size : float
        Mean number of candidates of a neighbour, and under the assumption.
    uneven : float
        Distance between how often each label occurs, the true and the confused one aside, and
        all of them equally often. NaN where none occurs.
    distance : float
        Distance between the distribution of the neighbours' sets and the assumption's with
        these p1, p2 and p3; overall, that of the pairs of class and set.
    chance_distance : float
        About what the distance were from so few sets, did they come from the assumption.
    true_mass, confused_mass : float
        Mean mass of the two labels in the neighbours' combined evidence.
    assumed_true_mass, assumed_confused_mass : float
        The same as expected under the assumption.
    """

    n_instances: int
    p1: float
    p2: float
    p3: float
    dominance: float
    tied_dominance: float
    full_share: float
    noise_share: float
    mean_size: float
    assumed_size: float
    uneven: float
    distance: float
    chance_distance: float
    true_mass: float
    confused_mass: float
    assumed_true_mass: float
    assumed_confused_mass: float

    @property
    def ordered(self) -> bool:
        """Whether p1 >= p2 >= p3 > 0, as the text asks."""
        return self.p1 >= self.p2 >= self.p3 > 0


@dataclass(frozen=True)
class AssumptionReport:
    """How well the text's assumption holds in data; prints as a table.

    Attributes
    ----------
    n_neighbors, n_classes : int
    overall : Neighborhoods
    by_class : dict from label to Neighborhoods
        Of the classes that instances have.
    confused : dict from label to label
        The label that is most often with the true one in the neighbours' sets; the first of
        equals; None where no label ever is.
    """

    n_neighbors: int
    n_classes: int
    overall: Neighborhoods
    by_class: dict[Any, Neighborhoods]
    confused: dict[Any, Any]

    def __str__(self) -> str:
        whole, classes = self.overall, self.by_class.values()
        n_ordered = sum(one.ordered for one in classes)
        n_ahead = sum(one.true_mass > one.confused_mass for one in classes)
        lines = [
            f"The assumption in the {self.n_neighbors} neighbours of {whole.n_instances} "
            f"instances, {self.n_classes} classes",
            "",
            f"  true label most frequent      {_share(whole.dominance)} of the instances "
            f"({_share(whole.tied_dominance).strip()} with ties)",
            f"  p1 >= p2 >= p3 > 0            {n_ordered} of {len(classes)} classes",
            f"  true ahead of confused mass   {n_ahead} of {len(classes)} classes",
            "",
            "  neighbours' candidate sets       found   assumed",
            f"  p1  true and confused label    {whole.p1:7.3f}    larger",
            f"  p2  true without confused      {whole.p2:7.3f}    middle",
            f"  p3  without the true label     {whole.p3:7.3f}   smaller",
            f"  with every class               {_share(whole.full_share)}      none",
            f"  true label only as noise       {_share(whole.noise_share)}      none",
            f"  mean size                      {whole.mean_size:7.2f}   {whole.assumed_size:7.2f}",
            f"  mass of the true label         {whole.true_mass:7.4f}   "
            f"{whole.assumed_true_mass:7.4f}",
            f"  mass of the confused label     {whole.confused_mass:7.4f}   "
            f"{whole.assumed_confused_mass:7.4f}",
            "",
            "  distance, 0 to 1                 found   by chance",
            f"  of the sets' distribution      {whole.distance:7.3f}"
            f"   {whole.chance_distance:9.3f}",
            f"  of other labels from even      {whole.uneven:7.3f}",
            "",
            *self._class_table(),
        ]
        return "\n".join(lines)

    def _class_table(self) -> Iterator[str]:
        names = {label: str(label) for label in self.by_class}
        confused = {label: str(self.confused[label]) for label in self.by_class}
        first = max(5, *map(len, names.values()))
        second = max(8, *map(len, confused.values()))
        yield (
            f"  {'class':<{first}}  {'confused':<{second}}  instances     p1     p2     p3"
            "  dominance  distance"
        )
        for label, one in self.by_class.items():
            yield (
                f"  {names[label]:<{first}}  {confused[label]:<{second}}  {one.n_instances:9d}"
                f"  {one.p1:5.3f}  {one.p2:5.3f}  {one.p3:5.3f}    {_share(one.dominance)}"
                f"  {one.distance:8.3f}"
            )


def _share(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:7.1%}"


def check_assumption(
    X: Any,
    S: Any,
    y: ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: str = "euclidean",
    n_jobs: int | None = None,
) -> AssumptionReport:
    """Estimate p1, p2 and p3 from data, and say how well the assumption holds there.

    Looks at the nearest neighbours of each instance among the others.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    S : anything that `CandidateSets` reads, with n rows
    y : array-like of shape (n,)
        True labels.
    n_neighbors : int, default=10
        From 1 to 64.
    metric : {"euclidean", "manhattan"}, default="euclidean"
    n_jobs : int, optional

    Returns
    -------
    report : AssumptionReport

    Examples
    --------
    >>> import numpy as np
    >>> from demur.noise import class_dependent_noise
    >>> from demur.theory import check_assumption
    >>> y = np.repeat(["ant", "bee", "cat", "dog"], 25)
    >>> X = np.repeat([[0.0], [10.0], [20.0], [30.0]], 25, axis=0)
    >>> S = class_dependent_noise(y, share=0.6, random_state=0)
    >>> report = check_assumption(X, S, y, n_neighbors=5)
    >>> report.confused["ant"], report.overall.dominance, report.overall.p3
    ('dog', 1.0, 0.0)
    """
    features = check_array(X, dtype=np.float64, order="C", input_name="X")
    sets = S if isinstance(S, CandidateSets) else CandidateSets(S)
    if len(sets) != len(features):
        raise ValueError(
            f"X has {len(features)} rows but there are {len(sets)} candidate sets; "
            "each instance needs one set."
        )
    if len(features) < 2:
        raise ValueError("neighbours are looked at, so at least 2 instances are needed; got 1.")
    index = build_index(features, n_neighbors, metric=metric)
    _, neighbors = index.query_self(n_neighbors, n_jobs=n_jobs)
    return check_neighborhoods(sets, neighbors, y, y_neighbors=y, n_jobs=n_jobs)


def check_neighborhoods(
    S: Any,
    neighbors: ArrayLike,
    y: ArrayLike,
    *,
    y_neighbors: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> AssumptionReport:
    """Say how well the assumption holds in neighbourhoods that are known already.

    Parameters
    ----------
    S : anything that `CandidateSets` reads
        Candidates of those that are neighbours.
    neighbors : array-like of int, shape (n, k)
        Rows of S that are the neighbours of each instance; k is at most 64.
    y : array-like of shape (n,)
        True labels of the instances.
    y_neighbors : array-like, one a row of S, optional
        True labels of the neighbours.
    n_jobs : int, optional

    Returns
    -------
    report : AssumptionReport

    Notes
    -----
    The label that a true label is confused with is found for each class from all its
    neighbourhoods together: k sets of one instance would tell chance more than anything.
    """
    sets = S if isinstance(S, CandidateSets) else CandidateSets(S)
    if sets.n_classes < 3:
        raise ValueError(f"the assumption is on 3 classes or more; got {sets.n_classes}.")
    rows = np.asarray(neighbors)
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError("neighbors must be rows of S, as whole numbers of shape (n, k).")
    if rows.min() < 0 or rows.max() >= len(sets):
        raise ValueError(
            f"neighbors names row {rows.min() if rows.min() < 0 else rows.max()} of S, "
            f"which has rows 0 to {len(sets) - 1}."
        )
    rows = rows.astype(np.intp)
    truth = _read_truth("y", y, len(rows), sets.classes)
    their_own = (
        None if y_neighbors is None
        else _read_truth("y_neighbors", y_neighbors, len(sets), sets.classes)
    )  # fmt: skip
    look = _Look(sets, rows, their_own, n_jobs)
    found = {label: look.at_class(label, truth == label) for label in np.unique(truth).tolist()}
    names = sets.classes.tolist()
    return AssumptionReport(
        n_neighbors=rows.shape[1],
        n_classes=sets.n_classes,
        overall=_overall([one for one, _ in found.values()]),
        by_class={names[label]: one for label, (one, _) in found.items()},
        confused={
            names[label]: None if other is None else names[other]
            for label, (_, other) in found.items()
        },
    )


def _read_truth(name: str, y: ArrayLike, n: int, classes: NDArray[Any]) -> Ints:
    """The column of each true label."""
    labels = CandidateSets(np.asarray(y), classes=classes)
    if len(labels) != n or (labels.sizes != 1).any():
        raise ValueError(f"{name} must hold one true label for each of {n} rows.")
    return np.asarray(labels.to_indicator().argmax(axis=1))


class _Look:
    """What is worked out once for all classes."""

    def __init__(
        self, sets: CandidateSets, neighbors: Ints, their_own: Ints | None, n_jobs: int | None
    ) -> None:
        self.neighbors, self.their_own = neighbors, their_own
        self.held = sets.to_indicator()
        self.sizes = sets.sizes
        self.distinct, self.which = np.unique(self.held, axis=0, return_inverse=True)
        self.votes = np.zeros((len(neighbors), sets.n_classes), dtype=np.intp)
        for column in neighbors.T:
            self.votes += self.held[column]
        frame = CandidateSets(np.ones((1, sets.n_classes), dtype=bool)).words
        self.masses = combine(
            sets.words, neighbors, frame, sets.n_classes, top_sets=False, n_jobs=n_jobs
        ).belief

    def at_class(self, label: int, of_class: NDArray[np.bool_]) -> tuple[Neighborhoods, int | None]:
        """The neighbourhoods of one class, and the label that it is confused with."""
        n_rows, l = self.held.shape
        n, k = int(of_class.sum()), self.neighbors.shape[1]
        count = np.bincount(self.neighbors[of_class].ravel(), minlength=n_rows)
        useful = np.where(self.sizes < l, count, 0)
        own = self.held[:, label]
        company = (useful * own) @ self.held
        company[label] = -1
        confused = int(company.argmax())
        both = own & self.held[:, confused]
        amounts = [int(useful[group].sum()) for group in (both, own & ~both, ~own)]
        votes = self.votes[of_class]
        rivals = np.delete(votes, label, axis=1).max(axis=1)
        misleading = np.nan
        if self.their_own is not None:
            misleading = float(count[own & (self.their_own != label)].sum() / (n * k))
        result = Neighborhoods(
            n_instances=n,
            dominance=float((votes[:, label] > rivals).mean()),
            tied_dominance=float((votes[:, label] >= rivals).mean()),
            full_share=1 - sum(amounts) / (n * k),
            noise_share=misleading,
            mean_size=float(count @ self.sizes / (n * k)),
            uneven=_distance_from_even(np.delete(useful @ self.held, [label, confused])),
            true_mass=float(self.masses[of_class, label].mean()),
            confused_mass=float(self.masses[of_class, confused].mean()),
            **self._beside_assumption(amounts, count, label, confused),
        )
        return result, confused if company[confused] > 0 else None

    def _beside_assumption(
        self, amounts: list[int], count: Ints, label: int, confused: int
    ) -> dict[str, float]:
        total = sum(amounts)
        if total == 0:  # only sets with every class, which the assumption has not
            names = "p1 p2 p3 assumed_size chance_distance assumed_true_mass assumed_confused_mass"
            return {**dict.fromkeys(names.split(), np.nan), "distance": 1.0}
        p1, p2, p3 = (amount / total for amount in amounts)
        assumption = Assumption((p1, p2, p3), self.held.shape[1])
        masses = expected_masses(assumption, self.neighbors.shape[1])
        # A row that is a neighbour of many tells no more than once what sets there are.
        n_effective = round(int(count.sum()) ** 2 / int((count**2).sum()))
        return {
            "p1": p1,
            "p2": p2,
            "p3": p3,
            "assumed_size": assumption.mean_size,
            "assumed_true_mass": float(masses[TRUE]),
            "assumed_confused_mass": float(masses[CONFUSED]),
            "distance": self._distance(assumption, count, label, confused),
            "chance_distance": _chance_distance(assumption, n_effective),
        }

    def _distance(self, assumption: Assumption, count: Ints, label: int, confused: int) -> float:
        """Total variation between the sets counted and those assumed."""
        found = np.bincount(self.which, weights=count, minlength=len(self.distinct)) / count.sum()
        own, other = self.distinct[:, label], self.distinct[:, confused]
        u1, u2, u3 = map(float, assumption.per_set)
        assumed = np.where(own, np.where(other, u1, u2), u3)
        assumed[self.distinct.all(axis=1)] = 0.0
        # Where more was found than assumed; sets that were never found add nothing.
        return float(np.maximum(found - assumed, 0.0).sum())


def _distance_from_even(counts: NDArray[Any]) -> float:
    total = counts.sum()
    if total == 0:
        return np.nan
    return float(np.abs(counts / total - 1 / len(counts)).sum() / 2)


def _chance_distance(assumption: Assumption, n: int) -> float:
    """Expected distance between the assumption and n sets drawn from it."""
    total = 0.0
    for size, chance in zip(assumption.group_sizes, assumption.per_set, strict=True):
        # De Moivre's mean absolute deviation of a binomial count, for each set of the group
        share = float(chance)
        top = np.floor(n * share) + 1
        total += size * 2 * top * (1 - share) * float(binom.pmf(top, n, share)) / n
    return total / 2


def _overall(parts: list[Neighborhoods]) -> Neighborhoods:
    """Means over classes: by instances, those of p by the sets they are shares of."""
    sizes = np.array([part.n_instances for part in parts], dtype=np.float64)
    useful = sizes * (1 - np.array([part.full_share for part in parts]))
    means = {}
    for field in fields(Neighborhoods):
        values = np.array([getattr(part, field.name) for part in parts], dtype=np.float64)
        weights = np.where(
            np.isnan(values), 0.0, useful if field.name in ("p1", "p2", "p3") else sizes
        )
        known = weights.sum() > 0
        means[field.name] = (
            float(np.nan_to_num(values) @ weights / weights.sum()) if known else np.nan
        )
    means.pop("n_instances")
    return Neighborhoods(n_instances=int(sizes.sum()), **means)
