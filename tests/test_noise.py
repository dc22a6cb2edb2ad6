"""Noise: what is drawn, how often, and that the true label is never lost."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from demur.candidates import CandidateSets
from demur.noise import READINGS, class_dependent_noise, pair_classes, uniform_noise

TINY = 1e-6  # a right implementation fails a count below with at most this chance


def is_plausible(count, n, probability):
    """Whether a binomial count lies between the exact quantiles."""
    low, high = stats.binom.ppf([TINY / 2, 1 - TINY / 2], n, probability)
    return low <= count <= high


def wrong_labels(sets, y):
    """Indicator of the labels that were added."""
    wrong = sets.to_indicator()
    wrong[np.arange(len(y)), y] = False
    return wrong


@st.composite
def labelled(draw, *, min_classes=2):
    """True labels as columns, and the number of classes, some of which may not occur."""
    n_classes = draw(st.integers(min_classes, 70))
    return draw(st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=40)), n_classes


CHANCE = st.floats(0, 1)
SEED = st.integers(0, 2**32)


# ------------------------------------------------------------------------------------ invariants


@given(labelled(), CHANCE, SEED, st.data())
def test_uniform_noise_keeps_the_truth_and_adds_different_labels(drawn, share, seed, data):
    y, n_classes = drawn
    n_noise = data.draw(st.integers(0, n_classes - 1))
    sets = uniform_noise(
        y, n_noise=n_noise, share=share, classes=range(n_classes), random_state=seed
    )
    assert sets.shape == (len(y), n_classes)
    assert sets.contains(y).all()
    allowed = {1 + n_noise} if share == 1 else {1} if share == 0 else {1, 1 + n_noise}
    assert set(sets.sizes.tolist()) <= allowed


@given(labelled(min_classes=3), CHANCE, CHANCE, SEED)
def test_class_dependent_noise_keeps_the_truth_and_adds_one_label(drawn, share, partner, seed):
    y, n_classes = drawn
    sets = class_dependent_noise(
        y,
        share=share,
        partner_probability=partner,
        classes=range(n_classes),
        random_state=seed,
    )
    assert sets.shape == (len(y), n_classes)
    assert sets.contains(y).all()
    allowed = {2} if share == 1 else {1} if share == 0 else {1, 2}
    assert set(sets.sizes.tolist()) <= allowed


@given(st.integers(1, 300), SEED)
def test_pairs_are_an_involution_with_one_odd_class_at_most(n_classes, seed):
    partners = pair_classes(n_classes, seed)
    everyone = np.arange(n_classes)
    assert sorted(partners) == everyone.tolist()
    np.testing.assert_array_equal(partners[partners], everyone)
    assert (partners == everyone).sum() == n_classes % 2


@given(labelled(), SEED)
def test_certain_partners_are_the_pairs_of_the_same_seed(drawn, seed):
    y, n_classes = drawn
    sets = class_dependent_noise(y, share=1, classes=range(n_classes), random_state=seed)
    partners = pair_classes(n_classes, seed)
    for label, row in zip(y, sets.to_lists(), strict=True):
        added = set(row) - {label}
        assert added == {partners[label]} or (partners[label] == label and len(added) == 1)


@given(labelled(min_classes=3), SEED)
def test_partner_probability_zero_never_adds_the_partner(drawn, seed):
    y, n_classes = drawn
    sets = class_dependent_noise(
        y, share=1, partner_probability=0, classes=range(n_classes), random_state=seed
    )
    partners = pair_classes(n_classes, seed)[y]
    assert not sets.contains(partners)[partners != y].any()


def test_all_wrong_labels_at_once():
    sets = uniform_noise([0, 1, 2], n_noise=2, share=1, random_state=0)
    assert sets.to_indicator().all()


def test_no_wrong_labels():
    y = ["b", "a", "b"]
    assert uniform_noise(y, n_noise=0, classes=["a", "b"]).to_lists() == [["b"], ["a"], ["b"]]
    assert uniform_noise(y, n_noise=1, share=0).to_lists() == [["b"], ["a"], ["b"]]
    assert class_dependent_noise(y, share=0).to_lists() == [["b"], ["a"], ["b"]]


# --------------------------------------------------------------------------------- how often


@pytest.mark.parametrize(("n_noise", "share"), [(3, 0.7), (2, 0.5), (1, 0.05)])
def test_uniform_share_and_each_wrong_label(n_noise, share):
    n, n_classes = 40_000, 6
    y = np.random.default_rng(1).integers(n_classes, size=n)
    wrong = wrong_labels(uniform_noise(y, n_noise=n_noise, share=share, random_state=2), y)
    assert is_plausible(wrong.any(axis=1).sum(), n, share)
    for label in range(n_classes):
        of_label = wrong[y == label]
        assert is_plausible(of_label.any(axis=1).sum(), len(of_label), share)
        for other in set(range(n_classes)) - {label}:
            chance = share * n_noise / (n_classes - 1)
            assert is_plausible(of_label[:, other].sum(), len(of_label), chance)


@pytest.mark.parametrize("n_noise", [1, 2, 3, 4])
def test_uniform_noise_draws_every_combination_alike(n_noise):
    y = np.full(30_000, 2)
    sets = uniform_noise(y, n_noise=n_noise, share=1, classes=range(6), random_state=3)
    counts = Counter(tuple(np.flatnonzero(row)) for row in wrong_labels(sets, y))
    expected = set(combinations([0, 1, 3, 4, 5], n_noise))
    assert set(counts) == expected
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_instances_are_noisy_independently():
    y = np.zeros(40_000, dtype=int)
    noisy = uniform_noise(y, n_noise=1, share=0.7, classes=[0, 1], random_state=4).sizes == 2
    both = noisy[::2] & noisy[1::2]
    assert is_plausible(both.sum(), len(both), 0.7**2)
    # A share that is met exactly would leave no scatter between seeds.
    shares = {
        uniform_noise(y[:100], n_noise=1, share=0.7, classes=[0, 1], random_state=s).sizes.sum()
        for s in range(20)
    }
    assert len(shares) > 1


@pytest.mark.parametrize("n_classes", [6, 7])
@pytest.mark.parametrize(("share", "partner_probability"), [(0.7, 0.7), (0.7, 1.0), (1.0, 0.25)])
def test_class_dependent_shares(n_classes, share, partner_probability):
    n, seed = 60_000, 5
    y = np.random.default_rng(6).integers(n_classes, size=n)
    sets = class_dependent_noise(
        y, share=share, partner_probability=partner_probability, random_state=seed
    )
    wrong = wrong_labels(sets, y)
    partners = pair_classes(n_classes, seed)
    assert is_plausible(wrong.any(axis=1).sum(), n, share)
    for label in range(n_classes):
        of_label = wrong[y == label]
        for other in set(range(n_classes)) - {label}:
            if partners[label] == label:  # the odd one out: any wrong label alike
                chance = share / (n_classes - 1)
            elif partners[label] == other:
                chance = share * partner_probability
            else:
                chance = share * (1 - partner_probability) / (n_classes - 2)
            assert is_plausible(of_label[:, other].sum(), len(of_label), chance)


@pytest.mark.parametrize(("n_classes", "n_pairings"), [(4, 3), (5, 15)])
def test_every_pairing_is_as_likely(n_classes, n_pairings):
    counts = Counter(tuple(pair_classes(n_classes, seed).tolist()) for seed in range(3_000))
    assert len(counts) == n_pairings
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_the_two_readings():
    """The table of what the text says and what the published code did."""
    y = np.random.default_rng(7).integers(10, size=50_000)
    partners = pair_classes(10, 8)
    for reading, n_noise, share, partner in [("paper", 2, 0.5, 0.7), ("paper-text", 3, 0.7, 1)]:
        uniform = uniform_noise(y, **READINGS[reading]["uniform"], random_state=8)
        assert set(uniform.sizes.tolist()) == {1, 1 + n_noise}
        assert is_plausible((uniform.sizes > 1).sum(), len(y), share)
        by_class = class_dependent_noise(y, **READINGS[reading]["class-dependent"], random_state=8)
        assert is_plausible((by_class.sizes > 1).sum(), len(y), 0.7)
        assert is_plausible(by_class.contains(partners[y]).sum(), len(y), 0.7 * partner)


# --------------------------------------------------------------------------------- the seed


@pytest.mark.parametrize("noise", [uniform_noise, class_dependent_noise])
def test_the_seed_alone_decides(noise):
    y = np.arange(200) % 7
    first = noise(y, random_state=11)
    np.random.default_rng().random(5)
    assert noise(y, random_state=11) == first
    assert noise(y.tolist(), random_state=np.random.default_rng(11)) == first
    assert noise(y, random_state=12) != first
    named = noise(np.array(list("abcdefg"))[y], random_state=11)
    np.testing.assert_array_equal(named.words, first.words)
    shuffled = noise(y, classes=[6, 5, 4, 3, 2, 1, 0], random_state=11)
    assert shuffled.classes.tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert shuffled.contains(y).all()


@pytest.mark.parametrize("noise", [uniform_noise, class_dependent_noise])
def test_what_is_handed_in_stays_as_it_was(noise):
    y = np.arange(60) % 5
    before = y.copy()
    y.setflags(write=False)
    noise(y, random_state=0)
    sets = CandidateSets(y)
    assert noise(sets, random_state=0) == noise(y, random_state=0)
    np.testing.assert_array_equal(y, before)
    assert (sets.sizes == 1).all()


# --------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("noise", [uniform_noise, class_dependent_noise])
@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_bad_share(noise, share):
    with pytest.raises(ValueError, match=r"share is .*; it must be from 0 to 1"):
        noise([0, 1, 2, 3], share=share)


@pytest.mark.parametrize("partner_probability", [-0.1, 1.1, float("nan")])
def test_bad_partner_probability(partner_probability):
    with pytest.raises(ValueError, match=r"partner_probability is .*; it must be from 0 to 1"):
        class_dependent_noise([0, 1, 2], partner_probability=partner_probability)


@pytest.mark.parametrize("n_noise", [-1, 4, 1.5])
def test_bad_number_of_noise_labels(n_noise):
    with pytest.raises(ValueError, match=r"n_noise is .*, but 4 classes leave 0 to 3 wrong"):
        uniform_noise([0, 1, 2, 3], n_noise=n_noise)


@pytest.mark.parametrize("noise", [uniform_noise, class_dependent_noise])
def test_too_few_classes(noise):
    with pytest.raises(ValueError, match=r"at least 2 classes; got only 'a'. Pass classes"):
        noise(["a", "a"])


def test_too_few_classes_for_another_than_the_partner():
    assert class_dependent_noise([0, 1], share=1).to_lists() == [[0, 1], [0, 1]]
    with pytest.raises(ValueError, match="at least 3 classes: the true one, its partner and"):
        class_dependent_noise([0, 1], partner_probability=0.7)


@pytest.mark.parametrize("noise", [uniform_noise, class_dependent_noise])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, 1.0, float("nan"), 2.0], r"label is missing in row 2 \(the only such row\)"),
        (["a", None, "b", None], r"label is missing in row 1 \(2 such rows\)"),
        ([[0], [0, 1], [2], [1, 2]], r"one true label a row; row 1 holds 2 \(2 such row"),
        ([], "no rows"),
    ],
)
def test_bad_labels(noise, y, message):
    with pytest.raises(ValueError, match=message):
        noise(y)


@pytest.mark.parametrize("noise", [uniform_noise, class_dependent_noise])
def test_label_outside_classes(noise):
    with pytest.raises(ValueError, match=r"label 9 is not in classes, in row 2"):
        noise([0, 1, 9], classes=[0, 1, 2, 3])
