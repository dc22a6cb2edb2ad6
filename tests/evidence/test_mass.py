"""Mass functions: the text's examples, the algebra, and the text's first theorem."""

import copy
import pickle
from collections import Counter
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import chain, combinations, permutations, product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from demur.evidence.mass import MassFunction

HALF = Fraction(1, 2)
FRAME = frozenset({1, 2, 3, 4})


def subsets(labels):
    """All subsets, the empty one first."""
    listed = sorted(labels)
    sizes = range(len(listed) + 1)
    return [frozenset(s) for s in chain.from_iterable(combinations(listed, r) for r in sizes)]


def some_subset(frame=FRAME, *, min_size=0, max_size=None):
    return st.frozensets(st.sampled_from(sorted(frame)), min_size=min_size, max_size=max_size)


@st.composite
def mass_functions(draw, *, frame=FRAME, empty=False):
    weights = draw(
        st.dictionaries(
            some_subset(frame, min_size=0 if empty else 1),
            st.integers(1, 20),
            min_size=1,
            max_size=6,
        )
    )
    total = sum(weights.values())
    return MassFunction({s: Fraction(w, total) for s, w in weights.items()}, frame)


def by_enumeration(functions):
    """The masses of all intersections: the text's q, term by term."""
    combined = Counter()
    for choice in product(*(f.masses.items() for f in functions)):
        meet = frozenset.intersection(*(s for s, _ in choice))
        combined[meet] += prod((m for _, m in choice), start=Fraction(1))
    return combined


# --------------------------------------------------------------- Algorithm 1, as the text tells it


def neighbours_evidence(candidates, frame, alpha=HALF):
    """One function a neighbour; a set that covers or misses the frame says nothing."""
    return [
        MassFunction({frame: alpha, frame & s: 1 - alpha}, frame)
        if frame & s and not frame <= s
        else MassFunction({frame: 1}, frame)
        for s in candidates
    ]


def combine(candidates, frame, alpha=HALF):
    return MassFunction.vacuous(frame).yager(*neighbours_evidence(candidates, frame, alpha))


def delta(m, predicted):
    return m.bel({predicted}) - max(m.pl({y}) for y in m.frame - {predicted})


def extreme_probabilities(m):
    """Corners of the credal set: each focal set gives its mass to its first label."""
    for order in permutations(sorted(m.frame)):
        p = dict.fromkeys(m.frame, Fraction(0))
        for focal, mass in m.masses.items():
            p[min(focal, key=order.index)] += mass
        yield p


# --------------------------------------------------------------------------- the text's examples


def test_classification_example():
    m = combine([{1}, {1, 2}, {1, 3}], frozenset({1, 2, 3}))
    assert dict(m.masses) == {
        frozenset({1}): Fraction(5, 8),
        frozenset({1, 2}): Fraction(1, 8),
        frozenset({1, 3}): Fraction(1, 8),
        frozenset({1, 2, 3}): Fraction(1, 8),
    }


def test_reject_example():
    m = combine([{1}, {1, 2}, {1, 3}], frozenset({1, 2, 3}))
    assert m.bel({1}) == Fraction(5, 8)
    assert m.pl({2}) == m.pl({3}) == Fraction(2, 8)
    assert delta(m, 1) == Fraction(3, 8)


def test_counter_example_of_the_proof():
    m = MassFunction({(1,): 0.4, (1, 2): 0.3, (1, 3): 0.3})
    assert m.frame == {1, 2, 3}
    assert m({1}) < 0.5
    assert m.pl({1}) == pytest.approx(1.0)
    assert delta(m, 1) == pytest.approx(0.1)


# ------------------------------------------------------------------------ high conflict, by hand


def two_doctors():
    """Zadeh: each doctor is nearly sure of another illness; both barely allow a third."""
    nearly, barely = Fraction(99, 100), Fraction(1, 100)
    frame = ["meningitis", "concussion", "tumour"]
    one = MassFunction({("meningitis",): nearly, ("tumour",): barely}, frame)
    two = MassFunction({("concussion",): nearly, ("tumour",): barely}, frame)
    return one, two


def test_high_conflict_under_the_three_rules():
    one, two = two_doctors()
    agreed, conflict = Fraction(1, 10_000), Fraction(9_999, 10_000)
    tumour = {"tumour"}
    conjunctive = one.conjunctive(two)
    assert dict(conjunctive.masses) == {frozenset(): conflict, frozenset(tumour): agreed}
    assert conjunctive.bel(tumour) == conjunctive.pl(tumour) == agreed
    assert dict(one.dempster(two).masses) == {frozenset(tumour): 1}
    yager = one.yager(two)
    assert dict(yager.masses) == {frozenset(tumour): agreed, yager.frame: conflict}


def test_discounting_by_hand():
    one, two = two_doctors()
    half_trusted = one.discount(HALF)
    assert half_trusted({"meningitis"}) == Fraction(99, 200)
    assert half_trusted({"tumour"}) == Fraction(1, 200)
    assert half_trusted(one.frame) == HALF
    # Dempster after discounting both: 0.495 for each illness against what is not in conflict.
    together = half_trusted.dempster(two.discount(HALF))
    left = 1 - 2 * Fraction(99, 200) * Fraction(1, 200) - Fraction(99, 200) ** 2
    assert together({"meningitis"}) == Fraction(99, 400) / left
    assert together({"tumour"}) == (Fraction(1, 200) ** 2 + 2 * Fraction(1, 400)) / left


def test_dempster_is_undefined_at_total_conflict():
    a, b = (MassFunction({s: 1}, [1, 2]) for s in ((1,), (2,)))
    with pytest.raises(ValueError, match="total conflict"):
        a.dempster(b)
    assert a.conjunctive(b)([]) == 1
    assert a.yager(b) == MassFunction.vacuous([1, 2])


def test_dempster_keeps_precision_near_total_conflict():
    a = MassFunction({(1,): 1 - 1e-13, (3,): 1e-13}, [1, 2, 3])
    b = MassFunction({(2,): 1 - 1e-13, (3,): 1e-13}, [1, 2, 3])
    assert a.dempster(b)({3}) == 1.0  # 1 - conflict is 0 in floats, so dividing by it fails


# ------------------------------------------------------------------------- belief and its algebra


@given(mass_functions(), some_subset())
def test_belief_and_plausibility(m, a):
    assert 0 <= m.bel(a) <= m.pl(a) <= 1
    assert m.pl(a) == 1 - m.bel(m.frame - a)
    assert m.bel(a) == sum(m(b) for b in subsets(m.frame) if b <= a)
    assert m.pl(a) == sum(m(b) for b in subsets(m.frame) if b & a)
    assert m.q(a) == sum(m(b) for b in subsets(m.frame) if a <= b)


@given(mass_functions(empty=True), some_subset())
def test_conflict_counts_as_neither_belief_nor_plausibility(m, a):
    assert m.bel(a) <= m.pl(a)
    assert m.pl(a) == 1 - m([]) - m.bel(m.frame - a)
    assert m.bel([]) == m.pl([]) == 0
    assert m.bel(m.frame) == m.pl(m.frame) == 1 - m([])
    assert m.q([]) == 1


@given(mass_functions(empty=True))
def test_moebius_inversion_of_commonality(m):
    everything = subsets(m.frame)
    for a in everything:
        assert m(a) == sum((-1) ** len(b - a) * m.q(b) for b in everything if a <= b)


@given(mass_functions())
def test_moebius_inversion_of_belief(m):
    for a in subsets(m.frame):
        assert m(a) == sum((-1) ** len(a - b) * m.bel(b) for b in subsets(a))


# --------------------------------------------------------------------------- the algebra of rules


@given(mass_functions(empty=True), mass_functions(empty=True), mass_functions(empty=True))
def test_conjunctive_rule(a, b, c):
    assert a.conjunctive(b) == b.conjunctive(a)
    assert a.conjunctive(b).conjunctive(c) == a.conjunctive(b.conjunctive(c))
    together = a.conjunctive(b, c)
    assert together == a.conjunctive(b).conjunctive(c)
    assert dict(together.masses) == by_enumeration([a, b, c])
    for s in subsets(FRAME):
        assert together.q(s) == a.q(s) * b.q(s) * c.q(s)


@given(mass_functions(), mass_functions(), mass_functions())
def test_dempsters_rule(a, b, c):
    enumerated = by_enumeration([a, b, c])
    conflict = enumerated.pop(frozenset(), 0)
    if conflict == 1:
        with pytest.raises(ValueError, match="total conflict"):
            a.dempster(b, c)
        return
    together = a.dempster(b, c)
    assert dict(together.masses) == {s: m / (1 - conflict) for s, m in enumerated.items()}
    assert together == c.dempster(a, b)
    assert together == a.dempster(b).dempster(c)
    assert together == a.dempster(b.dempster(c))


@given(st.lists(mass_functions(empty=True), min_size=1, max_size=4))
def test_yagers_rule(functions):
    expected = by_enumeration(functions)
    expected[FRAME] += expected.pop(frozenset(), 0)
    together = functions[0].yager(*functions[1:])
    assert dict(together.masses) == +expected
    assert together == functions[-1].yager(*functions[:-1])


def test_yagers_rule_step_by_step_is_another_rule():
    a, b = (MassFunction.simple(s, HALF, frame=[1, 2]) for s in ({1}, {2}))
    # All at once: label 1 needs b twice on the frame, so 1/2 * 1/4; label 2 mirrors 1/2 * 3/4.
    assert a.yager(b, b)({1}) == Fraction(1, 8)
    assert a.yager(b, b)({2}) == Fraction(3, 8)
    # Step by step a and b leave 1/4, 1/4, 1/2; then label 1 keeps half, label 2 gains 1/4.
    assert a.yager(b).yager(b)({1}) == Fraction(1, 8)
    assert a.yager(b).yager(b)({2}) == Fraction(1, 2)


@given(mass_functions(empty=True))
def test_the_vacuous_function_is_neutral(m):
    nothing = MassFunction.vacuous(FRAME)
    assert m.conjunctive(nothing) == nothing.conjunctive(m) == m
    assert m.conjunctive() == m
    assert nothing.bel({1, 2}) == 0
    assert nothing.pl({1}) == 1


@given(mass_functions(), st.fractions(0, 1), st.fractions(0, 1), some_subset())
def test_discounting(m, trust, again, a):
    discounted = m.discount(trust)
    if a != FRAME:
        assert discounted.bel(a) == trust * m.bel(a)
    assert discounted.discount(again) == m.discount(trust * again)
    assert m.discount(1) == m
    assert m.discount(0) == MassFunction.vacuous(FRAME)


@given(some_subset(min_size=1), st.fractions(0, 1), st.integers(0, 6))
def test_copies_of_simple_evidence_act_as_one(focal, trust, copies):
    one = MassFunction.simple(focal, trust, FRAME)
    many = MassFunction.vacuous(FRAME).yager(*[one] * copies)
    assert many == MassFunction.simple(focal, 1 - (1 - trust) ** copies, FRAME)


@given(st.lists(mass_functions(empty=True), min_size=2, max_size=3))
def test_floats_follow_fractions(functions):
    first, *others = [
        MassFunction({s: float(x) for s, x in m.masses.items()}, m.frame) for m in functions
    ]
    exact = functions[0].yager(*functions[1:])
    rounded = first.yager(*others)
    assert all(isinstance(mass, float) for mass in rounded.masses.values())
    for s in subsets(FRAME):
        assert rounded(s) == pytest.approx(float(exact(s)), abs=1e-12)
        assert rounded.bel(s) == pytest.approx(float(exact.bel(s)), abs=1e-12)


# ------------------------------------------------------------------------------ the first theorem


CANDIDATES = st.lists(some_subset(min_size=1), max_size=7)
ALPHA = st.fractions(Fraction(1, 20), Fraction(19, 20))


@given(st.lists(some_subset(min_size=3), max_size=3), ALPHA)
def test_theorem_i_a_random_pick_is_never_accepted(candidates, alpha):
    m = combine(candidates, FRAME, alpha)
    assume(all(m({y}) == 0 for y in FRAME))
    event("several focal sets" if len(m.masses) > 1 else "one focal set")
    assert all(delta(m, y) <= 0 for y in FRAME)


@given(CANDIDATES, some_subset(min_size=2), ALPHA)
def test_theorem_ii_accepted_means_most_probable_whatever_the_probability(candidates, frame, alpha):
    m = combine(candidates, frame, alpha)
    top = max(sorted(frame), key=lambda y: m({y}))
    others = frame - {top}
    corners = list(extreme_probabilities(m))
    for p in corners:
        for s in subsets(frame):
            assert m.bel(s) <= sum(p[y] for y in s) <= m.pl(s)
    always_ahead = all(p[top] > p[y] for p in corners for y in others)
    event(f"accepted: {always_ahead}")
    assert (delta(m, top) > 0) == always_ahead


@given(CANDIDATES, some_subset(min_size=2), ALPHA)
def test_theorem_iii_a_majority_is_accepted(candidates, frame, alpha):
    m = combine(candidates, frame, alpha)
    majority = [y for y in frame if m({y}) > HALF]
    event(f"a majority: {bool(majority)}")
    assert all(delta(m, y) > 0 for y in majority)


def test_theorem_cases_are_all_met():
    """What the properties above speak of does occur, so that they do not hold for nothing."""
    picked = combine([{1, 2, 3}, {1, 2, 4}], FRAME)
    assert picked({1}) == 0
    majority = combine([{1}, {1}], FRAME)
    assert majority({1}) == Fraction(3, 4)
    # {1, 2} and {1, 3} and {1, 4}: label 1 has 1/2 of the mass exactly, the others 1/4 at most.
    accepted = combine([{1, 2}, {1, 3}, {1, 4}], FRAME)
    assert accepted({1}) == HALF
    assert delta(accepted, 1) == Fraction(1, 4)


@given(CANDIDATES, some_subset(min_size=2))
def test_plausibility_counts_the_neighbours_that_lack_a_label(candidates, frame):
    evidence = neighbours_evidence(candidates, frame)
    conflict = MassFunction.vacuous(frame).conjunctive(*evidence)([])
    m = combine(candidates, frame)
    used = [s for s in candidates if s & frame and not frame <= s]
    for y in frame:
        assert m.pl({y}) == HALF ** sum(y not in s for s in used) + conflict


# --------------------------------------------------------------------------------- the value type


def test_masses_are_read_and_kept():
    m = MassFunction({frozenset({"cat"}): 0.25, ("cat", "dog"): 0.5, ("dog", "cat"): 0.25})
    assert m.frame == {"cat", "dog"}
    assert m({"dog", "cat"}) == 0.75  # equal sets add up
    assert m.focal_sets == [{"cat"}, {"cat", "dog"}]
    assert isinstance(m({"dog"}), float)
    assert m({"dog"}) == 0.0


def test_sets_without_mass_are_not_focal():
    m = MassFunction({(1,): 1, (2,): 0})
    assert m.focal_sets == [{1}]
    assert m.frame == {1, 2}
    assert isinstance(m({2}), Fraction)


def test_numpy_numbers_and_mixtures_become_floats():
    m = MassFunction({(1,): np.float64(0.5), (2,): np.float32(0.25), (3,): Fraction(1, 4)})
    assert {type(mass) for mass in m.masses.values()} == {float}
    assert MassFunction({(1,): np.int64(1)})([1]) == Fraction(1)


def test_equality_and_hash():
    one = MassFunction({(1,): HALF, (1, 2): HALF})
    same = MassFunction({(2, 1): 0.5, (1,): 0.5})
    assert one == same
    assert hash(one) == hash(same)
    assert one != MassFunction({(1,): HALF, (1, 2): HALF}, [1, 2, 3])
    assert one != MassFunction({(1,): Fraction(1, 3), (1, 2): Fraction(2, 3)})
    assert one != {frozenset({1}): HALF, frozenset({1, 2}): HALF}


def test_it_cannot_be_changed():
    m = MassFunction({(1,): 1})
    with pytest.raises(FrozenInstanceError):
        m.frame = frozenset({2})
    with pytest.raises(TypeError):
        m.masses[frozenset({1})] = Fraction(0)


def test_what_was_handed_in_is_not_kept():
    masses, frame = {frozenset({1}): HALF, frozenset({2}): HALF}, {1, 2}
    m = MassFunction(masses, frame)
    masses.clear()
    frame.add(3)
    assert m.frame == {1, 2}
    assert m({1}) == HALF


def test_copies_and_pickles_are_equal():
    m = MassFunction({("a",): Fraction(1, 3), ("a", "b"): Fraction(2, 3)}, ["a", "b", "c"])
    assert pickle.loads(pickle.dumps(m)) == m
    assert copy.deepcopy(m) == m


def test_repr():
    m = MassFunction({(3, 1): Fraction(1, 8), (2,): Fraction(5, 8), (): Fraction(1, 4)}, [1, 2, 3])
    assert repr(m) == "MassFunction(∅: 1/4, {2}: 5/8, {1, 3}: 1/8, frame {1, 2, 3}: 0)"
    thirds = MassFunction({("a",): 1 / 3, ("a", "b"): 2 / 3})
    assert repr(thirds) == "MassFunction({'a'}: 0.333333, frame {'a', 'b'}: 0.666667)"
    assert repr(MassFunction.vacuous(range(219))) == (
        "MassFunction(frame {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 219 in all}: 1)"
    )
    assert repr(MassFunction.vacuous([1, "a"])) == "MassFunction(frame {'a', 1}: 1)"


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("masses", "frame", "message"),
    [
        ({(1,): -0.5, (2,): 1.5}, None, r"the mass of \{1\} is -0.5; .* from 0 to 1"),
        ({(1,): float("nan")}, None, r"the mass of \{1\} is nan"),
        ({(1,): float("inf")}, None, "sum to inf; they must sum to 1"),
        ({(1,): "all"}, None, r"the mass of \{1\} is 'all'; .* a float or a Fraction"),
        ({(1,): 0.5, (2,): 0.4}, None, "sum to 0.9; they must sum to 1"),
        ({(1,): HALF, (2,): HALF + Fraction(1, 10**30)}, None, "they must sum to 1"),
        ({(1,): 1, (2,): 1}, None, "sum to 2; they must sum to 1"),
        ({(1, 7): 1}, [1, 2], r"\{1, 7\} is not inside the frame \{1, 2\}: 7 is no label of it"),
        ({(1, 7): 0, (1,): 1}, [1, 2], "7 is no label of it"),
        ({"ab": 1}, None, r"'ab' is not a set of labels; write \{'ab'\}"),
        ({3: 1}, None, r"3 is not a set of labels; write \{3\}"),
        ({(1,): 1}, "ab", "'ab' is not a set of labels"),
        ({(): 1}, None, "the frame is empty"),
        ({}, [1], "sum to 0"),
        ([((1,), 1)], None, "masses must map sets to numbers; got list"),
    ],
)
def test_bad_masses(masses, frame, message):
    with pytest.raises(ValueError, match=message):
        MassFunction(masses, frame)


def test_float_sums_have_slack_and_fractions_none():
    assert MassFunction({(i,): 0.1 for i in range(10)}).pl(range(10)) == pytest.approx(1)
    assert MassFunction({(i,): Fraction(1, 10) for i in range(10)}).pl(range(10)) == 1


@pytest.mark.parametrize("ask", ["__call__", "bel", "pl", "q"])
def test_asking_outside_the_frame(ask):
    m = MassFunction.vacuous([1, 2])
    with pytest.raises(ValueError, match=r"\{3\} is not inside the frame \{1, 2\}"):
        getattr(m, ask)({3})
    with pytest.raises(ValueError, match=r"1 is not a set of labels; write \{1\}"):
        getattr(m, ask)(1)


@pytest.mark.parametrize("rule", ["conjunctive", "dempster", "yager"])
def test_frames_must_agree(rule):
    a, b = MassFunction.vacuous([1, 2]), MassFunction.vacuous([1, 2, 3])
    with pytest.raises(ValueError, match=r"the frames differ: \{1, 2\} and \{1, 2, 3\}; name"):
        getattr(a, rule)(b)


@pytest.mark.parametrize("reliability", [-0.1, 1.1, Fraction(3, 2), float("nan"), "half", None])
def test_bad_reliability(reliability):
    with pytest.raises(ValueError, match=r"the reliability is .*; it must be"):
        MassFunction.vacuous([1, 2]).discount(reliability)
