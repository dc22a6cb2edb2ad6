import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from demur import neighbors as module
from demur.neighbors import NeighborIndex, build_index

ALGORITHMS = ("kd_tree", "brute", "auto")


def by_definition(X, Q, k, metric="euclidean", own=None):
    """Distances summed feature by feature in float64, then sorted with their index."""
    found = []
    for i, q in enumerate(Q):
        total = np.zeros(len(X))
        for f in range(X.shape[1]):
            gap = X[:, f] - q[f]
            total += gap * gap if metric == "euclidean" else np.abs(gap)
        order = np.lexsort((np.arange(len(X)), total))
        found.append([j for j in order if own is None or j != own[i]][:k])
    return np.array(found)


def many_ties(rng):
    return {
        "small integers": rng.integers(0, 3, size=(700, 6)).astype(float),
        "one-hot": np.eye(4)[rng.integers(4, size=(600, 4))].reshape(600, -1) / 3,
        "all equal": np.ones((150, 4)),
        "copies of a few": rng.normal(size=(5, 20))[rng.integers(5, size=400)],
        "binary, 20 features": rng.integers(0, 2, size=(900, 20)).astype(float),
    }


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_ties_go_to_the_smaller_index(rng, algorithm, metric):
    for name, X in many_ties(rng).items():
        index = NeighborIndex(X, metric=metric, algorithm=algorithm)
        Q = X[::5] + rng.integers(0, 2, size=X[::5].shape)
        for k in (1, 10, 33):
            _, found = index.query(Q, k)
            np.testing.assert_array_equal(found, by_definition(X, Q, k, metric), err_msg=name)
        own = np.arange(len(X))
        _, found = index.query_self(10)
        np.testing.assert_array_equal(found, by_definition(X, X, 10, metric, own), err_msg=name)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hard_numbers_for_a_fast_path(rng, algorithm):
    base = rng.normal(size=(500, 20))
    outlier = np.vstack([base, 1e12 * np.ones((2, 20))])
    cases = {
        "far from zero": 1e9 + base,
        "far in one feature": base + np.array([1e12] + 19 * [0.0]),
        "huge": base * 1e120,
        "tiny": base * 1e-120,
        "an outlier": outlier,
        "differences in the last bits": 1.0 + np.spacing(1.0) * rng.integers(0, 4, (500, 20)),
    }
    for name, X in cases.items():
        _, found = NeighborIndex(X, algorithm=algorithm).query(X[::7], 8)
        np.testing.assert_array_equal(found, by_definition(X, X[::7], 8), err_msg=name)


@pytest.mark.parametrize("shape", [(3000, 2), (3000, 8), (2500, 30), (5000, 64)])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_agrees_with_scikit_learn_where_nothing_ties(rng, shape, metric):
    X = rng.normal(size=shape) + 3 * rng.normal(size=(5, shape[1]))[rng.integers(5, size=shape[0])]
    Q = rng.normal(size=(200, shape[1]))
    theirs = NearestNeighbors(n_neighbors=12, metric=metric).fit(X).kneighbors(Q)
    for algorithm in ALGORITHMS:
        ours = NeighborIndex(X, metric=metric, algorithm=algorithm).query(Q, 12)
        np.testing.assert_array_equal(ours[1], theirs[1])
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_chunks_and_threads_change_nothing(rng, algorithm, monkeypatch):
    X = rng.integers(0, 4, size=(1500, 14)).astype(float)
    index = NeighborIndex(X, algorithm=algorithm)
    expected = index.query_self(10, n_jobs=1)
    for n_jobs in (2, 3, -1, None):
        for ours, theirs in zip(index.query_self(10, n_jobs=n_jobs), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for rows, columns in ((1, 7), (50, 64), (4000, 4000)):
        monkeypatch.setattr(module, "QUERY_ROWS", rows)
        monkeypatch.setattr(module, "TRAIN_ROWS", columns)
        np.testing.assert_array_equal(index.query_self(10)[1], expected[1])
    for rows in (1, 100):
        np.testing.assert_array_equal(index.query(X[:rows], 10)[1], index.query(X, 10)[1][:rows])


def test_a_training_instance_is_never_its_own_neighbour_even_among_duplicates():
    X = np.zeros((40, 3))
    for algorithm in ALGORITHMS:
        _, found = NeighborIndex(X, algorithm=algorithm).query_self(39)
        for row, others in enumerate(found):
            assert others.tolist() == [i for i in range(40) if i != row]


def test_uses_what_there_is():
    index = NeighborIndex(np.arange(4.0)[:, None])
    assert index.query(np.array([[0.2]]), 10)[1].tolist() == [[0, 1, 2, 3]]
    assert index.query_self(10)[1].shape == (4, 3)
    assert NeighborIndex(np.zeros((1, 2))).query_self(5)[1].shape == (1, 0)
    assert index.query(np.empty((0, 1)), 3)[1].shape == (0, 3)


def test_memory_grows_with_the_chunk_not_with_queries_times_points(rng):
    import tracemalloc

    X = rng.normal(size=(20_000, 20))
    index = NeighborIndex(X, algorithm="brute")
    index.query(X[:10], 5)
    tracemalloc.start()
    index.query(X[:6000], 5, n_jobs=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6000 * 20_000 * 4 / 20  # a full float32 matrix would be 480 MB


@pytest.mark.parametrize(("metric", "most"), [("euclidean", 1e153), ("manhattan", 1e307)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_distances_that_are_no_number_are_refused(rng, algorithm, metric, most):
    X = rng.uniform(-1, 1, size=(60, 3))
    index = NeighborIndex(X * most, metric=metric, algorithm=algorithm)
    distances, found = index.query(X * most, 5)
    assert np.isfinite(distances).all()
    np.testing.assert_array_equal(found, by_definition(X, X, 5, metric))
    with pytest.raises(ValueError, match="have distances that are no number; scale them"):
        index.query(X * most * 15, 5)
    with pytest.raises(ValueError, match="have distances that are no number; scale them"):
        NeighborIndex(X * most * 15, metric=metric, algorithm=algorithm)


def test_what_cannot_be_searched_is_refused():
    X = np.zeros((30, 2))
    with pytest.raises(ValueError, match="metric must be one of .* got 'cosine'"):
        NeighborIndex(X, metric="cosine")
    with pytest.raises(ValueError, match="algorithm must be one of .* got 'annoy'"):
        NeighborIndex(X, algorithm="annoy")
    with pytest.raises(ValueError, match="n_neighbors must be a whole number, 1 or more; got 0"):
        build_index(X, 0)
    with pytest.raises(ValueError, match="whole number, 1 or more; got 2.5"):
        build_index(X, 2.5)
    with pytest.raises(ValueError, match="whole number, 1 or more; got True"):
        build_index(X, True)
    with pytest.raises(ValueError, match="n_jobs is 0"):
        NeighborIndex(X).query(X, 3, n_jobs=0)
    with pytest.warns(UserWarning, match="only 30 training instances"):
        build_index(X, 30)
