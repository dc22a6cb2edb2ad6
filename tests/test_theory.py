from collections import Counter
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from demur import CandidateSets, MassFunction
from demur.noise import class_dependent_noise
from demur.theory import (
    CONFUSED,
    PAPER,
    TRUE,
    Assumption,
    check_assumption,
    check_neighborhoods,
    expected_mass_curve,
    expected_masses,
    nested_sums,
    simulate_masses,
)

P = (0.4, 0.35, 0.25)
EXACT = tuple(map(Fraction, ("2/5", "7/20", "1/4")))


# --------------------------------------------------------------------------- the assumption


@pytest.mark.parametrize("l", [3, 4, 6])
def test_distribution_is_that_of_the_text(l):
    p1, p2, p3 = EXACT
    distribution = Assumption(EXACT, l).distribution()
    assert len(distribution) == 2**l - 2
    assert sum(distribution.values()) == 1
    for candidates, chance in distribution.items():
        if {TRUE, CONFUSED} <= candidates:
            assert chance == p1 / (2 ** (l - 2) - 1)
        elif TRUE in candidates:
            assert chance == p2 / 2 ** (l - 2)
        else:
            assert chance == p3 / (2 ** (l - 1) - 1)


@pytest.mark.parametrize("l", [3, 5])
def test_labels_of_a_set_share_its_probability_as_the_text_says(l):
    assumption = Assumption(EXACT, l)
    for candidates, chance in assumption.distribution().items():
        shares = [assumption.probability(candidates, label=y) for y in range(l)]
        assert sum(shares) == chance
        if TRUE in candidates:
            assert shares[TRUE] == chance
        else:
            assert {shares[y] for y in candidates} == {chance / len(candidates)}
    assert assumption.probability(range(l)) == assumption.probability([]) == 0


def test_commonality_and_mean_size_are_sums_over_the_distribution():
    for l in (3, 4, 5):
        assumption = Assumption(EXACT, l)
        listed = assumption.distribution()
        for bits in range(2**l):
            labels = {y for y in range(l) if bits >> y & 1}
            held = sum(chance for candidates, chance in listed.items() if labels <= candidates)
            assert assumption.commonality(labels) == held
        size = sum(len(candidates) * chance for candidates, chance in listed.items())
        assert assumption.mean_size == pytest.approx(float(size), abs=1e-15)


def test_many_classes_need_no_list():
    assumption = Assumption(EXACT, 40)
    u1, u2, u3 = assumption.per_set
    assert assumption.probability({0, 1, 39}) == u1
    assert (2**38 - 1) * u1 + 2**38 * u2 + (2**39 - 1) * u3 == 1
    with pytest.raises(ValueError, match="too many to list"):
        assumption.distribution()


@pytest.mark.parametrize(
    ("p", "l", "told"),
    [
        ((0.5, 0.5), 3, "it must hold p1, p2 and p3"),
        ((0.5, 0.4, 0.2), 3, "they must sum to 1"),
        ((1.2, -0.1, -0.1), 3, "probabilities are not negative"),
        (P, 2, "n_classes must be a whole number from 3"),
    ],
)
def test_what_is_no_assumption_is_refused(p, l, told):
    with pytest.raises(ValueError, match=told):
        Assumption(p, l)


def test_ordered_is_what_the_text_asks():
    assert PAPER.ordered
    assert not Assumption((0.3, 0.4, 0.3), 3).ordered
    assert not Assumption((0.6, 0.4, 0.0), 3).ordered


# ---------------------------------------------------------------------- three routes agree


@pytest.mark.parametrize(
    ("l", "k", "true", "confused"),
    [(3, 5, 0.306098, 0.111490), (3, 20, 0.068388, 0.006765), (5, 4, 0.158958, 0.044573)],
)
def test_the_three_routes_give_the_known_numbers(l, k, true, confused):
    assumption = Assumption(P, l)
    known = np.array([true, confused])
    sums = [nested_sums(assumption, k, label=label) for label in (TRUE, CONFUSED)]
    np.testing.assert_allclose(sums, known, atol=5e-7)
    np.testing.assert_allclose(expected_masses(assumption, k)[:2], known, atol=5e-7)
    drawn = simulate_masses(assumption, k, random_state=0)
    assert (drawn.standard_error[:2] < 0.001).all()
    assert (abs(drawn.mean[:2] - known) < 4 * drawn.standard_error[:2]).all()


def by_enumeration(distribution, k, alpha):
    """Expected masses from every sequence of k sets, combined by the exact mass functions."""
    frame = frozenset().union(*distribution)
    total = Counter()
    for draw in product(distribution.items(), repeat=k):
        evidence = [  # a set with all labels is none
            MassFunction.simple(candidates, 1 - alpha, frame)
            for candidates, _ in draw
            if candidates != frame
        ]
        combined = MassFunction.vacuous(frame).yager(*evidence)
        for y in frame:
            total[y] += prod(chance for _, chance in draw) * combined({y})
    return [total[y] for y in sorted(frame)]


@pytest.mark.parametrize(("l", "k"), [(3, 1), (3, 2), (3, 3), (4, 2)])
@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1, 5)])
def test_exact_masses_are_those_of_every_draw(l, k, alpha):
    assumption = Assumption(EXACT, l)
    listed = assumption.distribution()
    expected = by_enumeration(listed, k, alpha)
    assert expected_masses(assumption, k, alpha=alpha).tolist() == expected
    assert expected_masses(listed, k, alpha=alpha).tolist() == expected
    for label in (TRUE, CONFUSED):
        assert nested_sums(assumption, k, label=label, alpha=alpha) == expected[label]


@pytest.mark.parametrize(("l", "k"), [(3, 30), (4, 9), (5, 5), (6, 4)])
def test_nested_sums_are_inclusion_and_exclusion(l, k):
    assumption = Assumption(EXACT, l)
    masses = expected_masses(assumption, k)
    for label in (TRUE, CONFUSED):
        assert nested_sums(assumption, k, label=label) == masses[label]
    assert (masses[2:] == masses[2]).all()
    assert masses[TRUE] > masses[CONFUSED] > masses[2] > 0


def test_grouped_terms_are_the_sum_over_all_sets():
    assumption = Assumption(P, 9)
    ks = [1, 7, 40]
    np.testing.assert_allclose(
        expected_masses(assumption, ks),
        expected_masses(assumption.distribution(), ks),
        atol=1e-13,
    )


def test_masses_of_many_classes_and_neighbours_are_sound():
    masses = expected_masses(Assumption(P, 60), [1, 10, 100])
    assert masses.shape == (3, 60)
    assert (masses >= 0).all()
    assert (masses.sum(axis=1) <= 1).all()


def test_simulation_of_a_distribution_that_has_full_sets():
    distribution = {(0, 1, 2): 0.3, (0, 1): 0.3, (0, 2): 0.2, (1,): 0.2}
    exact = {key: Fraction(str(chance)) for key, chance in distribution.items()}
    expected = by_enumeration({frozenset(k): v for k, v in exact.items()}, 3, Fraction(1, 2))
    assert expected_masses(exact, 3).tolist() == expected
    drawn = simulate_masses(distribution, 3, random_state=1, n_draws=50_000)
    assert (abs(drawn.mean - np.array(expected, float)) < 4 * drawn.standard_error + 1e-12).all()


def test_many_neighbours_are_simulated_by_folding_equal_sets():
    # 65 neighbours are more than the kernel takes, and 64 are not: nearly the same masses.
    assumption = Assumption((0.5, 0.499, 0.001), 4)
    for k in (64, 65):
        drawn = simulate_masses(assumption, k, n_draws=20_000, random_state=k)
        closed = expected_masses(assumption, k)
        assert drawn.standard_error[TRUE] < 0.01 * closed[TRUE]
        assert (abs(drawn.mean - closed)[:2] < 4 * drawn.standard_error[:2]).all()


def test_the_same_seed_gives_the_same_masses():
    first, second, other = (
        simulate_masses(PAPER, 6, n_draws=2000, random_state=seed, n_jobs=jobs)
        for seed, jobs in ((3, 1), (3, 2), (4, 1))
    )
    np.testing.assert_array_equal(first.mean, second.mean)
    assert (first.mean != other.mean).any()


def test_curve_of_the_texts_figure():
    curve = expected_mass_curve(n_neighbors=(1, 10, 30, 70), n_draws=20_000, random_state=0)
    np.testing.assert_array_equal(curve.closed_form, expected_masses(PAPER, [1, 10, 30, 70]))
    assert (abs(curve.simulated - curve.closed_form) < 4.5 * curve.standard_error)[:3].all()
    assert (curve.closed_form[:, TRUE] > curve.closed_form[:, CONFUSED]).all()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: nested_sums(PAPER, 0), "n_neighbors must be a whole number from 1"),
        (lambda: nested_sums(PAPER, 5, label=2), "label is 2"),
        (lambda: nested_sums(Assumption(P, 8), 30), "expected_masses gives the same"),
        (lambda: nested_sums(PAPER, 5, alpha=1), "alpha must lie between 0 and 1"),
        (lambda: expected_masses(PAPER, [1, 0]), "whole numbers from 1"),
        (lambda: expected_masses({(0, 1): 0.5}, 2), "they must sum to 1"),
        (lambda: expected_masses([0.5], 2), "must be an Assumption, or map sets"),
        (lambda: expected_masses({(y,): Fraction(1, 21) for y in range(21)}, 2), "at most 20"),
        (lambda: simulate_masses(PAPER, 5, n_draws=1), "n_draws must be"),
        (lambda: simulate_masses(Assumption(P, 9), 65), "at most 8 classes"),
        (lambda: PAPER.probability({7}), "7 is no label"),
    ],
)
def test_what_cannot_be_worked_out_is_said(call, told):
    with pytest.raises(ValueError, match=told):
        call()


# -------------------------------------------------------------------------------- in data


def drawn_neighborhoods(assumption, n, k, rng):
    """Instances of label 0 whose neighbours, each its own, come from the assumption."""
    listed = assumption.distribution()
    which = rng.choice(len(listed), size=n * k, p=np.array(list(listed.values()), float))
    sets = [list(listed)[i] for i in which]
    own = [TRUE if TRUE in s else rng.choice(sorted(s)) for s in sets]
    return CandidateSets(sets, classes=range(assumption.n_classes)), np.arange(n * k), own


def test_estimates_find_the_assumption_that_data_come_from(rng):
    assumption = Assumption((0.5, 0.3, 0.2), 4)
    n, k = 3000, 10
    sets, rows, own = drawn_neighborhoods(assumption, n, k, rng)
    report = check_neighborhoods(sets, rows.reshape(n, k), np.zeros(n, int), y_neighbors=own)
    found = report.overall
    assert report.confused == {TRUE: CONFUSED}
    # Of 30,000 sets the shares have a standard error below 0.003.
    np.testing.assert_allclose((found.p1, found.p2, found.p3), (0.5, 0.3, 0.2), atol=0.012)
    assert found.ordered
    assert found.distance < 2 * found.chance_distance < 0.04
    assert found.uneven < 0.02
    assert found.noise_share == found.full_share == 0
    assert found.mean_size == pytest.approx(assumption.mean_size, abs=0.03)
    assert found.assumed_size == pytest.approx(assumption.mean_size, abs=0.03)
    expected = expected_masses(assumption, k)
    assert found.true_mass == pytest.approx(expected[TRUE], rel=0.1)
    assert found.assumed_true_mass == pytest.approx(expected[TRUE], rel=0.1)
    assert found.confused_mass == pytest.approx(expected[CONFUSED], rel=0.25)


def test_figures_are_what_counting_by_hand_gives():
    # Class 0, neighbours of two instances: one has all labels, two hold 0 and 1.
    sets = [[0, 1], [0], [1, 2], [0, 1, 2], [0, 1]]
    report = check_neighborhoods(sets, [[0, 1, 2], [3, 4, 2]], [0, 0], y_neighbors=[0, 0, 1, 2, 1])
    found = report.overall
    assert (found.p1, found.p2, found.p3) == (0.4, 0.2, 0.4)
    assert found.full_share == pytest.approx(1 / 6)
    # Votes are 2 2 1, and 2 3 2: the true label ties once, and loses once.
    assert (found.dominance, found.tied_dominance) == (0.0, 0.5)
    assert found.noise_share == pytest.approx(2 / 6)  # the neighbours 3 and 4
    assert found.mean_size == pytest.approx((2 + 1 + 2 + 3 + 2 + 2) / 6)
    # {0,1}: 2/6 found, .4 assumed; {0}: 1/6, .1; {1,2}: 2/6, .4/3; the full set: 1/6, 0.
    assert found.distance == pytest.approx(1 / 6 - 0.1 + 2 / 6 - 0.4 / 3 + 1 / 6)
    # The full set of row 3 is no evidence.
    masses = [of_true_and_confused(sets[i] for i in row) for row in ([0, 1, 2], [4, 2])]
    assert [found.true_mass, found.confused_mass] == np.mean(masses, axis=0).tolist()


def of_true_and_confused(sets):
    evidence = [MassFunction.simple(s, Fraction(1, 2), range(3)) for s in sets]
    combined = MassFunction.yager(*evidence)
    return float(combined({0})), float(combined({1}))


def test_chance_distance_is_the_mean_over_draws(rng):
    assumption = Assumption((0.5, 0.3, 0.2), 4)
    reports = []
    for _ in range(60):
        sets, rows, _ = drawn_neighborhoods(assumption, 20, 5, rng)
        reports.append(check_neighborhoods(sets, rows.reshape(20, 5), np.zeros(20, int)).overall)
    found = np.mean([one.distance for one in reports])
    # Fitting p to the same sets makes the distance a little smaller than chance alone.
    assert found == pytest.approx(np.mean([one.chance_distance for one in reports]), rel=0.15)


def test_data_against_the_assumption_are_told_as_such(rng):
    y = rng.integers(0, 4, 400)
    X = rng.random((400, 2))  # features say nothing of the label
    report = check_assumption(X, class_dependent_noise(y, share=0.5, random_state=0), y)
    assert report.overall.dominance < 0.5
    assert not report.overall.ordered
    assert report.overall.p3 > 0.5


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_neighbours_are_the_nearest_others(rng, metric):
    X, y = rng.random((120, 3)), np.repeat([3, 5, 9], 40)
    S = class_dependent_noise(y, share=0.7, random_state=0)
    near = NearestNeighbors(n_neighbors=6, metric=metric).fit(X).kneighbors()[1]
    report = check_assumption(X, S, y, n_neighbors=6, metric=metric)
    assert report == check_neighborhoods(S, near, y, y_neighbors=y)
    assert set(report.by_class) == {3, 5, 9}
    one = report.by_class[3]
    votes = S.to_indicator()[near[y == 3]].sum(axis=1)
    assert one.dominance == (votes[:, 0] > votes[:, 1:].max(axis=1)).mean()
    shown = str(report)
    assert "6 neighbours of 120 instances, 3 classes" in shown
    assert f"{one.p1:5.3f}  {one.p2:5.3f}  {one.p3:5.3f}" in shown


def test_neighbourhoods_of_full_sets_only_say_nothing():
    report = check_neighborhoods(np.ones((4, 3), int), [[1, 2], [0, 3]], [0, 1])
    assert np.isnan(report.overall.p1)
    assert report.overall.distance == 1
    assert report.overall.full_share == 1
    assert "nan" in str(report)


@pytest.mark.parametrize(
    ("S", "neighbors", "y", "told"),
    [
        ([[0, 1], [0]], [[0], [1]], [0, 0], "3 classes or more; got 2"),
        ([[0, 1], [2]], [[0], [2]], [0, 0], "names row 2 of S, which has rows 0 to 1"),
        ([[0, 1], [2]], [0, 1], [0, 0], r"whole numbers of shape \(n, k\)"),
        ([[0, 1], [2]], [[0], [1]], [0], "one true label for each of 2 rows"),
        ([[0, 1], [2]], [[0], [1]], [0, 7], "7 is not in classes"),
    ],
)
def test_wrong_neighbourhoods_are_refused(S, neighbors, y, told):
    with pytest.raises(ValueError, match=told):
        check_neighborhoods(S, neighbors, y)
