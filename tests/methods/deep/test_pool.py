"""The pool by hand, and weights that no other weights beat."""

from fractions import Fraction

import numpy as np
import pytest

from demur.methods.deep.pool import FIRMNESS, FLOOR, learn_weights, pool

START = np.array([0.5, 0.2])


@pytest.fixture
def sets(rng):
    """A voice that knows the truth by four in five, one that knows nothing, and sets."""
    truth = rng.integers(4, size=400)
    known = np.where(rng.random(400) < 0.8, truth, rng.integers(4, size=400))
    good = 0.1 + 0.6 * np.eye(4)[known]
    blind = rng.dirichlet(np.ones(4), size=400)
    held = rng.random((400, 4)) < 0.3
    held[np.arange(400), truth] = True
    return np.stack([good, blind]), held


def penalised(weights, opinions, held):
    inside = (pool(opinions, weights) * held).sum(axis=1)
    return np.log(inside).sum() - FIRMNESS * (np.log(weights / START) ** 2).sum()


def test_the_pool_is_the_normalised_product_of_powers():
    floor = Fraction(FLOOR)
    p, q = [Fraction(4, 5), Fraction(1, 5)], [Fraction(1, 2), Fraction(1, 2)]
    raised = [(a + floor) ** 2 * (b + floor) for a, b in zip(p, q, strict=True)]
    expected = [float(r / sum(raised)) for r in raised]
    opinions = np.array([[p], [q]], dtype=float)
    np.testing.assert_allclose(pool(opinions, np.array([2.0, 1.0]))[0], expected, rtol=1e-12)


def test_no_weights_near_or_far_are_better(sets, rng):
    opinions, held = sets
    found = learn_weights(opinions, held, START)
    best = penalised(found, opinions, held)
    near = found * np.exp(rng.normal(scale=0.05, size=(100, 2)))
    far = np.exp(rng.uniform(-4, 2, size=(100, 2)))
    assert all(penalised(w, opinions, held) < best + 1e-6 for w in (*near, *far))


def test_who_knows_is_heard_and_who_does_not_falls_silent(sets):
    good, blind = learn_weights(*sets, START)
    assert good > 1.0
    assert blind < START[1]


def test_sets_that_say_nothing_leave_the_weights_as_they_were(sets):
    opinions, held = sets
    np.testing.assert_allclose(learn_weights(opinions, np.ones_like(held), START), START)
