"""The kernel machine beside scikit-learn's, its held-out opinions beside fits without the row."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from demur.methods import kernel_machine
from demur.methods.kernel_machine import KernelBasis, ask_machine, check_machine


@pytest.fixture
def clouds(rng):
    y = rng.integers(3, size=60)
    X = rng.normal(size=(60, 4)) + np.eye(3, 4)[y]
    labels = rng.dirichlet(np.ones(3), size=60) + np.eye(3)[y]
    candidates = rng.random((60, 3)) < 0.3
    candidates[np.arange(60), y] = True
    return X, labels / labels.sum(axis=1, keepdims=True), candidates


def ridge_of(machine, X, labels):
    """The ridge that was chosen: the one whose machine has these coefficients."""
    for ridge in kernel_machine.RIDGES:
        reference = KernelRidge(alpha=ridge, kernel="rbf", gamma=machine["gamma"][0])
        reference.fit(X, labels - labels.mean(axis=0))
        found = reference.predict(X) + labels.mean(axis=0)
        kernel = reference._get_kernel(X, machine["centers"])
        if np.allclose(kernel @ machine["coefficients"] + machine["mean"], found, atol=1e-4):
            return ridge
    raise AssertionError("no ridge gives these coefficients")


def test_with_every_row_a_centre_it_is_kernel_ridge_regression(clouds, monkeypatch, rng):
    monkeypatch.setattr(kernel_machine, "SMALL", 1e-12)
    X, labels, candidates = clouds
    machine, held_out = KernelBasis(X, seed=0).fit(labels, candidates)
    ridge = ridge_of(machine, X, labels)
    gamma = machine["gamma"][0]
    new = rng.normal(size=(30, 4))
    mean = labels.mean(axis=0)
    reference = KernelRidge(alpha=ridge, kernel="rbf", gamma=gamma).fit(X, labels - mean)
    expected = np.maximum(reference.predict(new) + mean, kernel_machine.LEAST)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ask_machine(machine, new), expected, atol=1e-4)
    for i in range(0, 60, 7):
        others = np.arange(60) != i
        alone = KernelRidge(alpha=ridge, kernel="rbf", gamma=gamma)
        alone.fit(X[others], labels[others] - mean)
        left_out = np.maximum(alone.predict(X[[i]])[0] + mean, kernel_machine.LEAST)
        np.testing.assert_allclose(held_out[i], left_out / left_out.sum(), atol=1e-4)


def test_few_centres_do_for_a_smooth_boundary(rng, monkeypatch):
    monkeypatch.setattr(kernel_machine, "MOST_CENTERS", 40)
    X = rng.uniform(-1, 1, size=(600, 2))
    S = np.eye(2, dtype=bool)[(X[:, 0] + X[:, 1] > 0).astype(int)]
    machine, held_out = KernelBasis(X, seed=0).fit(S.astype(float), S)
    assert machine["centers"].shape == (40, 2)
    assert (held_out.argmax(axis=1) == S.argmax(axis=1)).mean() > 0.95
    np.testing.assert_allclose(held_out.sum(axis=1), 1)


def test_equal_rows_are_no_trouble():
    S = np.eye(2, dtype=bool)[[0, 0, 1]]
    machine, held_out = KernelBasis(np.ones((3, 2)), seed=0).fit(S.astype(float), S)
    assert np.isfinite(held_out).all()
    np.testing.assert_allclose(ask_machine(machine, np.ones((1, 2)))[0], [2 / 3, 1 / 3], atol=0.15)


@pytest.mark.parametrize("name", ["centers", "coefficients", "mean", "gamma"])
def test_arrays_that_are_no_machine_are_refused(clouds, name):
    X, labels, candidates = clouds
    machine, _ = KernelBasis(X, seed=0).fit(labels, candidates)
    check_machine(machine, 4, 3)
    with pytest.raises(ValueError, match="not the arrays of a fitted model"):
        check_machine({**machine, name: machine[name][..., None]}, 4, 3)
    with pytest.raises(ValueError, match="not the arrays of a fitted model"):
        check_machine({**machine, name: machine[name] * np.nan}, 4, 3)
    del machine[name]
    with pytest.raises(ValueError, match="not complete"):
        check_machine(machine, 4, 3)
