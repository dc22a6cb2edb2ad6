"""Annotators' mistakes, against exact arithmetic, and what knowing them is worth."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest

from demur import CandidateSets
from demur.annotators import UNSEEN, label_probabilities

UNSEEN = Fraction(UNSEEN).limit_denominator(100)


def exact(answers, n_items, n_classes, n_rounds):
    """The same model with fractions, from its definition: no logarithms and no matrices."""
    labels = range(n_classes)
    q = []
    for item in range(n_items):
        given = [label for i, _, label in answers if i == item]
        q.append([Fraction(given.count(y), len(given)) for y in labels])
    for _ in range(n_rounds):

        def given(said, true, by=None, q=q):
            return sum(q[i][true] for i, w, s in answers if s == said and by in (None, w))

        common = {
            (s, y): (given(s, y) + UNSEEN) / sum(given(t, y) + UNSEEN for t in labels)
            for s in labels
            for y in labels
        }

        def mistake(w, s, y, q=q, given=given, common=common):
            return (given(s, y, w) + common[s, y]) / (sum(given(t, y, w) for t in labels) + 1)

        share = [sum(row[y] for row in q) + UNSEEN for y in labels]
        found = [
            [share[y] * prod(mistake(w, s, y) for i, w, s in answers if i == item) for y in labels]
            for item in range(n_items)
        ]
        q = [[value / sum(row) for value in row] for row in found]
    return np.array(q, dtype=float)


@pytest.mark.parametrize("n_rounds", [0, 1, 3])
def test_probabilities_against_exact_arithmetic(rng, n_rounds):
    answers = [(i, int(w), int(rng.integers(3))) for i in range(5) for w in rng.permutation(4)[:3]]
    answers += [(0, 2, 1), (0, 2, 2)]  # one may give two labels
    items, workers, labels = np.array(answers).T
    found = label_probabilities(items, workers, labels, 5, 3, n_rounds=n_rounds)
    np.testing.assert_allclose(found, exact(answers, 5, 3, n_rounds), rtol=1e-9, atol=1e-12)


@pytest.fixture
def crowd(rng):
    """500 items; two of five annotators answer by chance, the others are right 9 times in 10."""
    truth = rng.integers(4, size=500)
    guesses = rng.integers(4, size=(500, 5))
    right = rng.random((500, 5)) < np.array([0.9, 0.9, 0.9, 0.0, 0.0])
    answers = np.where(right, truth[:, None], guesses)
    for row in answers:
        row[rng.permutation(5)[:2]] = -1
    return truth, answers


def test_unreliable_annotators_are_found_out(crowd):
    truth, answers = crowd
    union = CandidateSets.from_answers(answers)
    most = CandidateSets.from_answers(answers, min_votes=2, fallback="most")
    reliable = CandidateSets.from_answers(answers, min_probability=0.05)
    in_union = union.to_indicator()
    assert not (reliable.to_indicator() & ~in_union).any()  # it takes away, and adds nothing
    assert reliable.sizes.mean() < most.sizes.mean() < union.sizes.mean()
    held = [np.mean(sets.contains(truth)) for sets in (union, most, reliable)]
    assert held[2] > held[1]
    assert held[2] > held[0] - 0.03


def test_the_most_probable_label_stays(crowd):
    _, answers = crowd
    sets = CandidateSets.from_answers(answers, min_probability=1.0)
    assert np.median(sets.sizes) == 1
    assert sets.sizes.min() == 1


def test_the_long_form_gives_the_same_sets(crowd):
    _, answers = crowd
    items, workers = np.nonzero(answers >= 0)
    names = [f"w{w}" for w in workers]
    found, order = CandidateSets.from_long_answers(
        items, names, answers[items, workers], min_probability=0.1
    )
    assert order.tolist() == list(range(500))
    expected = CandidateSets.from_answers(answers, min_probability=0.1)
    assert found.to_lists() == expected.to_lists()
