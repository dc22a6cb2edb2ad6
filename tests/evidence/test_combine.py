"""The kernel against exact mass functions, bit for bit where alpha is 1/2."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from demur import CandidateSets, MassFunction
from demur.candidates import unpack
from demur.evidence import combine as module
from demur.evidence.combine import combine, focal_sets

HALF = Fraction(1, 2)


def pack(rows, l):
    indicator = np.zeros((len(rows), l), dtype=bool)
    for i, labels in enumerate(rows):
        indicator[i, list(labels)] = True
    return CandidateSets(indicator).words


def by_definition(sets, frame, alpha):
    """Yager's rule in Fractions, and the conflict before it."""
    within = [frozenset(s) & frame for s in sets]
    bodies = [MassFunction.simple(s, 1 - alpha, frame) for s in within if s and s != frame]
    start = MassFunction.vacuous(frame)
    return start.yager(*bodies), start.conjunctive(*bodies)(frozenset())


def compare(sets, frame, l, alpha=HALF):
    frame = frozenset(frame)
    words = pack(sets, l)
    got = combine(
        words, np.arange(len(sets))[None], pack([frame], l), l, alpha=float(alpha), n_jobs=1
    )
    mass, conflict = by_definition(sets, frame, alpha)
    top = min(mass.focal_sets, key=lambda s: (-mass(s), len(s), sorted(s)))
    exact = {
        "belief": [mass({y}) if y in frame else 0 for y in range(l)],
        "plausibility": [mass.pl({y}) if y in frame else 0 for y in range(l)],
        "conflict": [conflict],
        "ignorance": [mass(frame)],
        "top_mass": [mass(top)],
    }
    for name, values in exact.items():
        ours = getattr(got, name).ravel()
        if alpha == HALF:
            assert [Fraction(v) for v in ours.tolist()] == values, name
        else:
            np.testing.assert_allclose(ours, np.array(values, dtype=float), rtol=1e-11)
            assert ((ours > 0) == [v > 0 for v in values]).all()  # rounding makes no mass
    if alpha == HALF:
        assert np.flatnonzero(unpack(got.top_set, l)[0]).tolist() == sorted(top)


@st.composite
def evidence(draw, max_neighbors=24):
    l = draw(st.sampled_from([2, 3, 4, 7, 10, 33, 64, 65, 130]))
    # Many different sets of many labels have more focal sets than Fractions can list.
    k = draw(st.integers(1, max_neighbors))
    n_distinct = draw(st.integers(1, min(k, 24 if l <= 7 else 9)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rate = draw(st.sampled_from([0.05, 0.3, 0.6, 0.9]))
    distinct = rng.random((n_distinct, l)) < rate
    if draw(st.booleans()):
        distinct[:, rng.integers(l)] = True  # neighbours that share a label
    distinct[np.arange(n_distinct), rng.integers(l, size=n_distinct)] = True
    rows = distinct[rng.integers(n_distinct, size=k)]
    frame = rng.random(l) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    frame[rng.integers(l)] = True
    return [np.flatnonzero(row).tolist() for row in rows], np.flatnonzero(frame).tolist(), l


@settings(max_examples=300, deadline=None)
@given(evidence())
@example(([[0], [0, 1], [0, 2]], [0, 1, 2], 3))
@example(([[0], [1]], [0, 1], 2))
@example(([[5]], [5], 130))
def test_equals_fractions_bit_for_bit(drawn):
    compare(*drawn)


@settings(max_examples=100, deadline=None)
@given(
    evidence(max_neighbors=12), st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(4, 5)])
)
def test_other_weights(drawn, alpha):
    compare(*drawn, alpha=alpha)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(3, 8),
    st.integers(11, 24),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.2, 0.5, 0.8]),
)
def test_many_distinct_sets_of_few_labels(l, k, seed, rate):
    rng = np.random.default_rng(seed)
    rows = rng.random((k, l)) < rate
    rows[np.arange(k), rng.integers(l, size=k)] = True
    compare([np.flatnonzero(row).tolist() for row in rows], range(l), l)


@pytest.mark.parametrize(("families", "labels"), [(0, 10**6), (0, 0), (10, 0), (10, 10**6)])
def test_every_way_of_summing_agrees(monkeypatch, families, labels):
    """The three routes are chosen by size; here each takes what it is given, in plain Python."""
    monkeypatch.setattr(module, "MAX_FAMILY_SETS", families)
    monkeypatch.setattr(module, "MIN_FAMILY_LABELS", labels)
    uncompiled = {
        name: getattr(module, name).py_func
        for name in dir(module)
        if hasattr(getattr(module, name), "py_func")
    }
    for name, function in uncompiled.items():
        monkeypatch.setattr(module, name, function)
    rng = np.random.default_rng(3)
    with np.errstate(over="ignore"):  # unsigned words wrap, as they are meant to
        for _ in range(12):
            l, k = int(rng.integers(2, 8)), int(rng.integers(1, 9))
            rows = rng.random((k, l)) < rng.choice([0.3, 0.6])
            rows[np.arange(k), rng.integers(l, size=k)] = True
            compare([np.flatnonzero(row).tolist() for row in rows], range(l), l)


def test_plausibility_in_closed_form(rng):
    """pl({y}) = 2 ** -(used neighbours whose set lacks y) + conflict."""
    rows = rng.random((400, 12)) < 0.4
    rows[np.arange(400), rng.integers(12, size=400)] = True
    neighbors = rng.integers(400, size=(200, 15))
    found = combine(CandidateSets(rows).words, neighbors, CandidateSets(np.ones((1, 12))).words, 12)
    lacking = (~rows[neighbors] & ~rows[neighbors].all(axis=2, keepdims=True)).sum(axis=1)
    np.testing.assert_array_equal(found.plausibility, 2.0**-lacking + found.conflict[:, None])


def test_copies_act_as_one_with_the_power_of_alpha():
    words = pack([[0, 1], [0, 1], [0, 1], [1, 2]], 4)
    frame = pack([range(4)], 4)
    found = combine(words, np.array([[0, 1, 2, 3]]), frame, 4)
    # {0, 1} with 7/8, {1, 2} with 1/2
    assert found.belief[0].tolist() == [0, 7 / 16, 0, 0]
    assert found.ignorance[0] == 1 / 16
    assert found.top_set.tolist() == [[0b10]]  # {1} ties with {0, 1} at 7/16 and is smaller


def test_sixty_four_neighbours():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.random((64, 5)) < 0.6
        rows[:, 0] |= ~rows.any(axis=1)
        words = CandidateSets(rows).words
        found = combine(words, np.arange(64)[None], pack([range(5)], 5), 5)
        mass, conflict = by_definition(
            [np.flatnonzero(r).tolist() for r in rows], frozenset(range(5)), HALF
        )
        np.testing.assert_allclose(
            found.belief[0], [float(mass({y})) for y in range(5)], rtol=1e-12
        )
        np.testing.assert_allclose(found.conflict[0], float(conflict), rtol=1e-12)
    same = pack([[0, 1]] * 64, 3)
    found = combine(same, np.arange(64)[None], pack([range(3)], 3), 3)
    assert found.top_mass[0] == 1.0
    assert found.ignorance[0] == 2.0**-64
    assert found.plausibility[0].tolist() == [1.0, 1.0, 2.0**-64]


def test_without_top_sets_only_rows_without_single_mass_have_one(rng):
    rows = rng.random((300, 9)) < 0.5
    rows[np.arange(300), rng.integers(9, size=300)] = True
    words, frame = CandidateSets(rows).words, pack([range(9)], 9)
    neighbors = rng.integers(300, size=(500, 4))
    full = combine(words, neighbors, frame, 9)
    lean = combine(words, neighbors, frame, 9, top_sets=False)
    massless = full.belief.max(axis=1) == 0
    assert 0 < massless.sum() < 500
    np.testing.assert_array_equal(lean.belief, full.belief)
    np.testing.assert_array_equal(lean.top_set[massless], full.top_set[massless])
    assert not lean.top_set[~massless].any()


def test_rows_and_threads_do_not_matter(rng):
    rows = rng.random((2000, 20)) < 0.5
    rows[np.arange(2000), rng.integers(20, size=2000)] = True
    words = CandidateSets(rows).words
    neighbors = rng.integers(2000, size=(1500, 12))
    expected = combine(words, neighbors, words[:1500], 20, n_jobs=1)
    for n_jobs in (2, 3, None):
        found = combine(words, neighbors, words[:1500], 20, n_jobs=n_jobs)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    one = combine(words, neighbors[700:701], words[700:701], 20)
    np.testing.assert_array_equal(one.belief, expected.belief[700:701])


def test_focal_sets_are_the_mass_function(rng):
    for _ in range(30):
        rows = rng.random((7, 6)) < 0.5
        rows[np.arange(7), rng.integers(6, size=7)] = True
        sets = [np.flatnonzero(r).tolist() for r in rows]
        words, masses = focal_sets(CandidateSets(rows).words, np.arange(7), pack([range(6)], 6)[0])
        mass, _ = by_definition(sets, frozenset(range(6)), HALF)
        listed = {
            frozenset(np.flatnonzero(row).tolist()): Fraction(value)
            for row, value in zip(unpack(words, 6), masses.tolist(), strict=True)
        }
        assert listed == dict(mass.masses)
        assert (np.diff(masses) <= 0).all()


def test_too_many_neighbours_is_an_error():
    with pytest.raises(ValueError, match="at most 64 neighbours .* got 65"):
        combine(pack([[0]], 2), np.zeros((1, 65), dtype=int), pack([[0, 1]], 2), 2)


def test_too_many_focal_sets_is_an_error_not_a_hang(monkeypatch):
    # 40 sets that each lack one label of 40, twice: 2 ** 40 focal sets and none of one label
    rows = ~np.eye(42, dtype=bool)[:40]
    words, frame = CandidateSets(rows).words, CandidateSets(np.ones((1, 42))).words
    assert focal_sets(words, np.arange(40), frame[0]) is None
    with pytest.raises(ValueError, match="row 0 has too many focal sets .* fewer neighbours"):
        combine(words, np.arange(40)[None], frame, 42)


@pytest.mark.parametrize(("a", "b"), list(product([[0], [1, 2], [0, 2]], repeat=2)))
def test_two_neighbours_by_hand(a, b):
    compare([a, b], range(3), 3)
