"""Our answers against those of the public implementation, where its files are at hand."""

from itertools import combinations

import numpy as np
import pytest

from demur import CandidateSets, DstPll
from demur.evidence.combine import combine
from places import reference_folder

FOLDER = reference_folder() / "dst-pll"
FILES = sorted(FOLDER.glob("*.npz"))

pytestmark = pytest.mark.skipif(
    not FILES,
    reason=f"NO REFERENCE FILES in {FOLDER}: our answers are not compared with the public "
    "implementation's. Set DEMUR_REFERENCE to the folder that holds dst-pll/*.npz.",
)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def reference(request):
    with np.load(request.param) as arrays:
        return dict(arrays)


def tied_at_the_border(model, X, *, own):
    """Rows whose 10th and 11th neighbour are equally far but for rounding."""
    search = model._index.query_self if own else lambda k: model._index.query(X, k)
    distances, _ = search(11)
    return np.isclose(distances[:, 9], distances[:, 10], rtol=1e-12, atol=0)


def unique_top(belief):
    ordered = np.sort(belief, axis=1)
    return ordered[:, -1] > ordered[:, -2]


def test_delta_is_equal_to_the_last_bit_and_predictions_where_the_top_is_unique(reference):
    model = DstPll().fit(reference["X_train"], reference["S_train"])
    judged = model.judge(reference["X_test"])
    tied = tied_at_the_border(model, reference["X_test"], own=False)
    assert tied.mean() < 0.02
    np.testing.assert_array_equal(judged.accept[~tied], reference["delta"][~tied])
    unique = unique_top(model.evidence(reference["X_test"]).belief) & ~tied
    assert unique.sum() > len(unique) / 2
    np.testing.assert_array_equal(judged.top[unique], reference["predicted"][unique])


def test_where_distances_tie_the_reference_took_one_of_the_tied(reference):
    """Two files hold rows with ties at the 10th place, which rounding decided there.

    Their Delta must be ours for one way to choose among the neighbours that tie.
    """
    X, S = reference["X_train"], reference["S_train"]
    model = DstPll().fit(X, S)
    tied = np.flatnonzero(tied_at_the_border(model, reference["X_test"], own=False))
    frame = CandidateSets(np.ones((1, S.shape[1]), dtype=bool)).words
    for row in tied:
        x = reference["X_test"][row : row + 1]
        distances, indices = (array[0] for array in model._index.query(x, 40))
        at_border = np.isclose(distances, distances[9], rtol=1e-12, atol=0)
        assert not at_border[-1]
        inside = indices[(distances < distances[9]) & ~at_border]
        choices = combinations(indices[at_border], 10 - len(inside))
        neighbors = np.array([[*inside, *choice] for choice in choices])
        evidence = combine(CandidateSets(S).words, neighbors, frame, S.shape[1])
        deltas = model._decide_by(np.repeat(x, len(neighbors), axis=0), evidence).accept
        assert reference["delta"][row] in deltas


def test_training_labels_are_equal_where_the_top_is_unique(reference):
    X, S = reference["X_train"], reference["S_train"]
    model = DstPll().fit(X, S)
    words = CandidateSets(S).words
    _, neighbors = model._index.query_self(10)
    belief = combine(words, neighbors, words, S.shape[1]).belief
    compared = unique_top(belief) & ~tied_at_the_border(model, X, own=True)
    assert compared.sum() > len(X) / 2
    ours = model.transduction_[compared]
    np.testing.assert_array_equal(ours, reference["train_predicted"][compared])
