"""The forest of arrays beside scikit-learn's own, and what it refuses."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from demur.methods.forest import ask_forest, check_forest, grow_forest


@pytest.fixture
def clouds(rng):
    y = rng.integers(3, size=200)
    X = rng.normal(size=(200, 5)) + 2 * np.eye(3, 5)[y]
    labels = rng.dirichlet(np.ones(3), size=200) + 3 * np.eye(3)[y]
    return X.astype(np.float32).astype(float), labels / labels.sum(axis=1, keepdims=True)


def test_says_what_scikit_learns_trees_say(clouds, rng):
    X, labels = clouds
    forest, held_out = grow_forest(X, labels, 60, seed=3)
    reference = ExtraTreesRegressor(
        60, min_samples_leaf=2, max_features=3, bootstrap=True, oob_score=True, random_state=3
    ).fit(X, labels)
    np.testing.assert_allclose(held_out, reference.oob_prediction_, atol=1e-6)
    new = rng.normal(size=(700, 5))
    np.testing.assert_allclose(ask_forest(forest, new), reference.predict(new), atol=1e-6)


def test_every_opinion_is_a_distribution_even_where_all_trees_have_seen_the_row(clouds):
    X, labels = clouds
    forest, held_out = grow_forest(X, labels, 1, seed=0)
    drawn = ExtraTreesRegressor(1, bootstrap=True, random_state=0).fit(X, labels)
    seen = np.unique(drawn.estimators_samples_[0])
    np.testing.assert_array_equal(held_out[seen], 1 / 3)
    assert (held_out != 1 / 3).any()
    for opinions in (held_out, ask_forest(forest, X)):
        np.testing.assert_allclose(opinions.sum(axis=1), 1, atol=1e-6)


def test_the_number_of_threads_changes_no_bit(clouds, monkeypatch):
    X, labels = clouds
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("demur.methods.forest.n_threads", lambda _, t=threads: t)
        monkeypatch.setattr("demur._kernels.n_threads", lambda _, t=threads: t)
        forest, held_out = grow_forest(X, labels, 20, seed=1)
        found.append((*forest.values(), held_out, ask_forest(forest, np.tile(X, (9, 1)))))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_forest_of_one_leaf_says_the_mean():
    X, labels = np.ones((4, 2)), np.eye(2)[[0, 0, 1, 0]]
    forest, _ = grow_forest(X, labels, 5, seed=0)
    assert len(forest["feature"]) == 5
    assert set(ask_forest(forest, X)[:, 0] * 4) <= set(range(5)) | {
        k / 5 for k in range(21)
    }  # each tree's drawn rows have k of 4 such labels


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("children", lambda a: np.zeros_like(a)),  # would go round for ever
        ("children", lambda a: a + 10**6),
        ("feature", lambda a: np.full_like(a, 5)),
        ("feature", lambda a: a[:-1]),
        ("feature", lambda a: a[None]),
        ("roots", lambda a: a - 1),
        ("roots", lambda a: a[:-1]),
        ("threshold", lambda a: a * np.nan),
        ("leaves", lambda a: a[:-1]),
        ("leaves", lambda a: a[:, :-1]),
    ],
)
def test_arrays_that_are_no_forest_are_refused(clouds, name, change):
    forest, _ = grow_forest(*clouds, 4, seed=0)
    check_forest(forest, 4, 5, 3)
    with pytest.raises(ValueError, match="not the arrays of a fitted model"):
        check_forest({**forest, name: change(forest[name])}, 4, 5, 3)


def test_a_forest_that_lacks_an_array_is_refused(clouds):
    forest, _ = grow_forest(*clouds, 4, seed=0)
    del forest["roots"]
    with pytest.raises(ValueError, match="not complete"):
        check_forest(forest, 4, 5, 3)
