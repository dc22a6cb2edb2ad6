import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from demur import PlKnn


def test_votes_by_hand():
    # distances 1, 2 and 3 from the query: weights 5/6, 4/6 and 3/6
    X = np.array([[1.0], [2.0], [3.0], [9.0]])
    model = PlKnn(n_neighbors=3).fit(X, [["a"], ["b"], ["a", "b"], ["c"]])
    proba = model.predict_proba([[0.0]])
    np.testing.assert_allclose(proba, [[8 / 15, 7 / 15, 0]], rtol=1e-14)
    assert model.decide([[0.0]]).tolist() == ["a"]
    assert model.accept_threshold_ == 0.5


def test_against_a_plain_transcription(rng):
    X, new = rng.normal(size=(300, 5)), rng.normal(size=(50, 5))
    S = rng.random((300, 70)) < 0.1
    S[np.arange(300), rng.integers(70, size=300)] = True
    distances, neighbors = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(new)
    votes = np.zeros((50, 70))
    for i in range(50):
        for distance, j in zip(distances[i], neighbors[i], strict=True):
            votes[i] += (1 - distance / distances[i].sum()) * S[j]
    expected = votes / votes.sum(axis=1, keepdims=True)
    model = PlKnn().fit(X, S)
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(new), expected.argmax(axis=1))


def test_a_single_neighbour_and_duplicates_still_vote():
    X = np.array([[0.0], [0.0], [5.0]])
    one = PlKnn(n_neighbors=1).fit(X, [["a", "b"], ["b"], ["c"]])
    assert one.predict_proba([[0.0]]).tolist() == [[0.5, 0.5, 0]]
    two = PlKnn(n_neighbors=2).fit(X, [["a", "b"], ["b"], ["c"]])
    np.testing.assert_allclose(two.predict_proba([[0.0]]), [[1 / 3, 2 / 3, 0]])


def test_training_labels_are_the_most_voted_candidates():
    X = np.array([[0.0], [1.0], [2.0], [3.5]])
    model = PlKnn(n_neighbors=2).fit(X, [["a", "b"], ["b", "c"], ["b"], ["a", "c"]])
    assert model.transduction_.tolist() == ["b", "b", "b", "c"]


def test_bad_neighbours(rng):
    X, y = rng.normal(size=(80, 2)), rng.integers(3, size=80)
    with pytest.raises(ValueError, match="n_neighbors must be a whole number, 1 or more; got 0"):
        PlKnn(n_neighbors=0).fit(X, y)
    assert PlKnn(n_neighbors=70).fit(X, y).predict(X).shape == (80,)
