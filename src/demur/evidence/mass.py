"""Mass functions of Dempster-Shafer theory: small, readable, exact with Fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from types import MappingProxyType
from typing import Any, Self

Mass = float | Fraction
LabelSet = frozenset[Hashable]

SUM_TOLERANCE = 1e-9
MOST_SAID = 12  # labels of a set that are written out


def _as_set(labels: Iterable[Hashable]) -> LabelSet:
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise ValueError(f"{labels!r} is not a set of labels; write {{{labels!r}}}.")
    return frozenset(labels)


def _as_mass(value: Any, what: str) -> Mass:
    """A number as a Fraction where it is rational, else as a float; never negative or NaN."""
    if isinstance(value, Rational):
        number: Mass = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, Real):
        number = float(value)
    else:
        raise ValueError(f"{what} is {value!r}; it must be a float or a Fraction.")
    if not number >= 0:  # true of NaN, too
        raise ValueError(f"{what} is {value}; it must be a number from 0 to 1.")
    return number


def _in_order(labels: LabelSet) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=repr)


def _say_set(labels: LabelSet) -> str:
    if not labels:
        return "∅"
    said = [repr(label) for label in _in_order(labels)]
    if len(said) > MOST_SAID:
        said = [*said[: MOST_SAID - 2], f"... {len(said)} in all"]
    return f"{{{', '.join(said)}}}"


@dataclass(frozen=True, init=False, repr=False)
class MassFunction:
    """How belief is spread over sets of labels.

    Parameters
    ----------
    masses : mapping from sets of labels to numbers
        The masses, which sum to 1. They stay exact when all are Fractions or integers;
        otherwise all become floats. Sets are anything iterable but strings; sets of mass 0
        are dropped, and the masses of equal sets add up.
    frame : iterable of labels, optional
        All labels there are. Without it: those in the sets. Functions are combined only on
        equal frames, so name the frame where the sets may lack a label.

    Attributes
    ----------
    masses : read-only mapping from frozensets to Fractions or floats
        The masses of the focal sets: those with mass above 0.
    frame : frozenset

    Notes
    -----
    A mass function cannot be changed. The empty set may hold mass, as it does after
    :meth:`conjunctive`: it measures conflict. It counts neither as belief in a set nor as
    plausibility of one.

    Examples
    --------
    Three neighbours with candidates {1}, {1, 2} and {1, 3} out of the labels 1 to 3, each
    trusted by half:

    >>> from fractions import Fraction
    >>> from demur import MassFunction
    >>> half = Fraction(1, 2)
    >>> evidence = [MassFunction.simple(s, half, frame={1, 2, 3}) for s in ({1}, {1, 2}, {1, 3})]
    >>> together = MassFunction.yager(*evidence)
    >>> together
    MassFunction({1}: 5/8, {1, 2}: 1/8, {1, 3}: 1/8, frame {1, 2, 3}: 1/8)
    >>> together({1}), together.bel({1, 2}), together.pl({2})
    (Fraction(5, 8), Fraction(3, 4), Fraction(1, 4))
    """

    masses: Mapping[LabelSet, Mass]
    frame: LabelSet

    def __init__(
        self,
        masses: Mapping[Any, Any],
        frame: Iterable[Hashable] | None = None,
    ) -> None:
        if not isinstance(masses, Mapping):
            raise ValueError(f"masses must map sets to numbers; got {type(masses).__name__}.")
        read = [(_as_set(labels), mass) for labels, mass in masses.items()]
        frame = frozenset[Hashable]().union(*(s for s, _ in read)) if frame is None else frame
        object.__setattr__(self, "frame", _as_set(frame))
        if not self.frame:
            raise ValueError("the frame is empty; it needs at least one label.")
        focal: dict[LabelSet, Mass] = {}
        for labels, mass in read:
            number = _as_mass(mass, f"the mass of {_say_set(labels)}")
            self._check_inside(labels)
            if number:
                focal[labels] = focal.get(labels, 0) + number
        exact = all(isinstance(mass, Fraction) for mass in focal.values())
        if not exact:
            focal = {labels: float(mass) for labels, mass in focal.items()}
        total: Mass = sum(focal.values(), Fraction(0)) if exact else math.fsum(focal.values())
        if total != 1 and (exact or not math.isclose(total, 1, abs_tol=SUM_TOLERANCE)):
            raise ValueError(f"the masses sum to {total}; they must sum to 1.")
        object.__setattr__(self, "masses", MappingProxyType(focal))

    @classmethod
    def vacuous(cls, frame: Iterable[Hashable]) -> Self:
        """Know nothing: all mass on the frame."""
        labels = _as_set(frame)
        return cls({labels: Fraction(1)}, labels)

    @classmethod
    def simple(
        cls, labels: Iterable[Hashable], reliability: Mass, frame: Iterable[Hashable]
    ) -> Self:
        """Evidence for one set of labels, trusted only so far; the rest is on the frame."""
        return cls({_as_set(labels): Fraction(1)}, frame).discount(reliability)

    # ------------------------------------------------------------------ what is believed

    @property
    def focal_sets(self) -> list[LabelSet]:
        """The sets with mass above 0, small ones first."""
        return sorted(self.masses, key=lambda s: (len(s), list(map(repr, _in_order(s)))))

    def __call__(self, labels: Iterable[Hashable]) -> Mass:
        """Mass of exactly this set."""
        asked = self._check_inside(_as_set(labels))
        return self.masses.get(asked, self._zero)

    def bel(self, labels: Iterable[Hashable]) -> Mass:
        """Belief: the mass of this set's subsets, which all support it."""
        asked = self._check_inside(_as_set(labels))
        return self._sum(lambda focal: bool(focal) and focal <= asked)

    def pl(self, labels: Iterable[Hashable]) -> Mass:
        """Plausibility: the mass of the sets that meet this one, and so do not speak against it."""
        asked = self._check_inside(_as_set(labels))
        return self._sum(lambda focal: not focal.isdisjoint(asked))

    def q(self, labels: Iterable[Hashable]) -> Mass:
        """Commonality: the mass of this set's supersets."""
        asked = self._check_inside(_as_set(labels))
        return self._sum(lambda focal: focal >= asked)

    # ------------------------------------------------------------------ rules of combination

    def conjunctive(self, *others: MassFunction) -> MassFunction:
        """Multiply masses, intersect sets: conflict stays on the empty set."""
        return MassFunction(self._conjunction(others), self.frame)

    def dempster(self, *others: MassFunction) -> MassFunction:
        """Combine conjunctively, then share the conflict out in proportion to the masses.

        Raises
        ------
        ValueError
            Where the evidence is in total conflict, so that nothing is left.
        """
        combined = self._conjunction(others)
        combined.pop(frozenset(), None)
        if not combined:
            raise ValueError(
                "the evidence is in total conflict: no label is plausible to all. "
                "Dempster's rule is undefined here; Yager's rule or discounting is not."
            )
        # What is left, rather than 1 less the conflict, so that floats keep their precision.
        left = sum(combined.values())
        return MassFunction({s: mass / left for s, mass in combined.items()}, self.frame)

    def yager(self, *others: MassFunction) -> MassFunction:
        """Combine conjunctively, then give the conflict to the frame: it says nothing.

        The rule is not associative, so hand in all evidence at once: combining step by step
        would take conflict for ignorance before all has been heard.

        Examples
        --------
        >>> from fractions import Fraction
        >>> a, b = (MassFunction.simple(s, Fraction(1, 2), frame=["a", "b"])
        ...         for s in ({"a"}, {"b"}))
        >>> a.yager(b, b)({"b"}), a.yager(b).yager(b)({"b"})
        (Fraction(3, 8), Fraction(1, 2))
        """
        combined = self._conjunction(others)
        conflict = combined.pop(frozenset(), 0)
        combined[self.frame] = combined.get(self.frame, 0) + conflict
        return MassFunction(combined, self.frame)

    def discount(self, reliability: Mass) -> Self:
        """Trust this evidence only so far: the rest of each mass goes to the frame.

        Parameters
        ----------
        reliability : float or Fraction
            From 0 (know nothing) to 1 (as it is).
        """
        trust = _as_mass(reliability, "the reliability")
        if trust > 1:
            raise ValueError(f"the reliability is {reliability}; it must be from 0 to 1.")
        masses = {labels: trust * mass for labels, mass in self.masses.items()}
        masses[self.frame] = masses.get(self.frame, 0) + (1 - trust)
        return type(self)(masses, self.frame)

    def _conjunction(self, others: Iterable[MassFunction]) -> dict[LabelSet, Mass]:
        combined = dict(self.masses)
        for other in others:
            if other.frame != self.frame:
                raise ValueError(
                    f"the frames differ: {_say_set(self.frame)} and {_say_set(other.frame)}; "
                    "name the same frame=... for both."
                )
            products: dict[LabelSet, Mass] = {}
            for one, mass in combined.items():
                for two, other_mass in other.masses.items():
                    meet = one & two
                    products[meet] = products.get(meet, 0) + mass * other_mass
            combined = products
        return combined

    # ------------------------------------------------------------------ as a value

    def _check_inside(self, labels: LabelSet) -> LabelSet:
        if not labels <= self.frame:
            raise ValueError(
                f"{_say_set(labels)} is not inside the frame {_say_set(self.frame)}: "
                f"{_in_order(labels - self.frame)[0]!r} is no label of it."
            )
        return labels

    @property
    def _zero(self) -> Mass:
        """The zero of the kind of number that the masses are."""
        return type(next(iter(self.masses.values())))()

    def _sum(self, chosen: Callable[[LabelSet], bool]) -> Mass:
        return sum((m for focal, m in self.masses.items() if chosen(focal)), self._zero)

    def __hash__(self) -> int:
        return hash((frozenset(self.masses.items()), self.frame))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.masses), self.frame)  # a read-only view cannot be pickled

    def __repr__(self) -> str:
        parts = [
            f"{_say_set(focal)}: {_say_mass(self.masses[focal])}"
            for focal in self.focal_sets
            if focal != self.frame
        ]
        parts.append(f"frame {_say_set(self.frame)}: {_say_mass(self(self.frame))}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _say_mass(mass: Mass) -> str:
    return str(mass) if isinstance(mass, Fraction) else f"{mass:.6g}"
