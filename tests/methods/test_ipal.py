import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.neighbors import NearestNeighbors

from demur.methods.ipal import Ipal, _most_confident, _reconstruct


def distinct_neighbors(rng, n, k):
    return np.array([rng.choice(n, size=k, replace=False) for _ in range(n)])


@pytest.mark.parametrize(("d", "k"), [(16, 10), (76, 10), (11, 10), (10, 10), (5, 2), (300, 20)])
@pytest.mark.parametrize("draw", ["random", "normal"])
def test_weights_against_scipy(rng, d, k, draw):
    X = getattr(rng, draw)(size=(100, d))
    Q = getattr(rng, draw)(size=(100, d))
    neighbors = distinct_neighbors(rng, 100, k)
    weights = _reconstruct(X, Q, neighbors, 1)
    expected = np.array([nnls(X[row].T, q)[0] for row, q in zip(neighbors, Q, strict=True)])
    np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("kind", ["few features", "low rank", "copies", "zero or one"])
def test_error_against_scipy_where_weights_are_not_unique(rng, kind):
    X = {
        "few features": lambda: rng.random((200, 3)),
        "low rank": lambda: rng.random((200, 3)) @ rng.random((3, 12)),
        "copies": lambda: rng.random((4, 12))[rng.integers(4, size=200)],
        "zero or one": lambda: rng.integers(2, size=(200, 12)).astype(float),
    }[kind]()
    neighbors = distinct_neighbors(rng, 200, 10)
    Q = X[rng.permutation(200)] + 0.1 * rng.random(X.shape) * (kind != "low rank")
    weights = _reconstruct(X, Q, neighbors, 1)
    assert (weights >= 0).all()
    for row, q, w in zip(neighbors, Q, weights, strict=True):
        assert np.linalg.norm(q - w @ X[row]) == pytest.approx(nnls(X[row].T, q)[1], abs=1e-12)
        assert (X[row] @ (q - w @ X[row])).max() < 1e-12  # no neighbour would lower it


def test_neighbours_at_one_point_share_their_weight():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    weights = _reconstruct(X, np.array([[3.0, 2.0]]), np.array([[0, 1, 2, 3]]), 1)
    np.testing.assert_allclose(weights, [[1, 3, 1, 0]], rtol=1e-14)


def test_weights_do_not_depend_on_the_unit():
    X = np.array([[0.3, 0.9, 0.2], [0.7, 0.1, 0.4], [0.2, 0.5, 0.9]])
    Q = np.array([[0.4, 0.5, 0.6]])
    neighbors = np.array([[0, 1, 2]])
    expected = _reconstruct(X, Q, neighbors, 1)
    for unit in (2.0**900, 2.0**-900):
        np.testing.assert_array_equal(_reconstruct(unit * X, unit * Q, neighbors, 1), expected)
    assert (_reconstruct(0 * X, 0 * Q, neighbors, 1) == 0).all()


def transcribed(X, S, new, *, k, alpha, n_iterations):
    """The method with dense matrices and scipy's solver, one instance at a time."""
    n, l = S.shape
    search = NearestNeighbors(n_neighbors=k).fit(X)
    H = np.zeros((n, n))
    for i, row in enumerate(search.kneighbors(return_distance=False)):
        w = nnls(X[row].T, X[i])[0]
        H[i, row] = w / w.sum()
    P = S / S.sum(axis=1, keepdims=True)
    F = P
    for _ in range(n_iterations):
        F = (alpha * H @ F + (1 - alpha) * P) * S
        F = F / F.sum(axis=1, keepdims=True)
    labels = (F * P.sum(axis=0) / F.sum(axis=0)).argmax(axis=1)
    errors = np.zeros((len(new), l))
    for i, row in enumerate(search.kneighbors(new, return_distance=False)):
        w = nnls(X[row].T, new[i])[0]
        for y in range(l):
            errors[i, y] = np.linalg.norm(new[i] - (w * (labels[row] == y)) @ X[row])
    return F, labels, errors


def test_against_a_plain_transcription(rng):
    y, new_y = rng.integers(4, size=200), rng.integers(4, size=60)
    X = 1.5 * np.eye(4, 12)[y] + rng.random((200, 12))
    new = 1.5 * np.eye(4, 12)[new_y] + rng.random((60, 12))
    S = rng.random((200, 4)) < 0.4
    S[np.arange(200), y] = True
    F, labels, errors = transcribed(X, S, new, k=7, alpha=0.9, n_iterations=30)
    model = Ipal(n_neighbors=7, alpha=0.9, n_iterations=30).fit(X, S)
    np.testing.assert_allclose(model.confidences_, F, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(model.transduction_, labels)
    np.testing.assert_array_equal(model.predict(new), errors.argmin(axis=1))
    explained = np.linalg.norm(new, axis=1)[:, None] - errors
    expected = explained / explained.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-10)


def test_one_iteration_by_hand():
    # On a ray the nearest neighbour alone reconstructs: 1 and 2 point at one another, 4 at 2.
    X = np.array([[1.0], [2.0], [4.0]])
    S = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    model = Ipal(n_neighbors=1, alpha=0.5, n_iterations=1).fit(X, S)
    expected = [[3 / 4, 1 / 4, 0], [1, 0, 0], [2 / 3, 1 / 6, 1 / 6]]
    np.testing.assert_allclose(model.confidences_, expected, rtol=1e-14)


@pytest.mark.parametrize("parameters", [{"alpha": 0}, {"n_iterations": 0}])
def test_without_flow_candidates_stay_equal(rng, parameters):
    S = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    model = Ipal(n_neighbors=2, **parameters).fit(rng.random((3, 2)), S)
    np.testing.assert_allclose(model.confidences_, S / S.sum(axis=1, keepdims=True))


def test_class_mass_normalisation_by_hand():
    candidates = np.array([[1, 1], [1, 0], [1, 1], [0, 1]], dtype=bool)
    confidences = np.array([[0.55, 0.45], [1, 0], [0.8, 0.2], [0, 1]])
    # Each class adds up to 2 at the start, and to 2.35 and 1.65 now.
    # row 0: 0.55 * 2 / 2.35 = 0.468 < 0.45 * 2 / 1.65 = 0.545
    # row 2: 0.8 * 2 / 2.35 = 0.681 > 0.2 * 2 / 1.65 = 0.242
    assert _most_confident(confidences, candidates).tolist() == [1, 0, 0, 1]


def test_neighbours_vote_where_nothing_is_explained():
    X = np.array([[1.0, 0.0], [0.9, 0.1], [0.8, 0.0], [5.0, 5.0]])
    model = Ipal(n_neighbors=3).fit(X, ["a", "a", "b", "c"])
    # The origin needs no neighbour, and none points to the opposite side.
    np.testing.assert_allclose(
        model.predict_proba([[0.0, 0.0], [-0.1, -0.1]]), [[2 / 3, 1 / 3, 0]] * 2
    )


def test_number_of_threads_changes_no_bit(rng):
    X, S = rng.random((1500, 6)), rng.random((1500, 5)) < 0.4
    S[:, 0] |= ~S.any(axis=1)
    one, two = (Ipal(n_jobs=n_jobs).fit(X, S) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.confidences_, two.confidences_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number, 1 or more; got 0"),
        ({"alpha": 1.0}, "alpha must be at least 0 and less than 1; got 1.0"),
        ({"alpha": np.nan}, "alpha must be a number; got nan"),
        ({"n_iterations": -1}, "n_iterations must be a whole number, 0 or more; got -1"),
    ],
)
def test_bad_parameters(rng, parameters, message):
    with pytest.raises(ValueError, match=message):
        Ipal(**parameters).fit(rng.random((20, 2)), np.arange(20) % 3)
