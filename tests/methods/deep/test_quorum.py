"""Quorum: its three sides, their pool, and what it says of them."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from demur import Proden, Quorum
from demur.methods.deep.pool import FLOOR
from demur.methods.deep.quorum import FIRST_WEIGHTS, SHARPNESS

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {"n_epochs": 30, "learning_rate": 0.01, "hidden_layer_sizes": (16, 16), "random_state": 0}


@pytest.fixture
def one_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def clouds(rng):
    y = rng.integers(3, size=140)
    X = rng.normal(size=(140, 4)) + 2.5 * np.eye(3, 4)[y]
    S = rng.random((140, 3)) < 0.4
    S[np.arange(140), y] = True
    return X[:100].astype(np.float32).astype(float), S[:100], X[100:], y[100:]


@pytest.fixture
def fitted(clouds):
    return Quorum(n_networks=3, n_neighbors=5, **SMALL).fit(clouds[0], clouds[1])


def test_labels_are_what_the_networks_say_of_the_candidates(fitted, clouds):
    X, S, _, _ = clouds
    expected = fitted.evidence(X).networks.mean(axis=0) * S
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted._weights, expected, atol=1e-12)


def test_each_network_leaves_out_rows_of_its_own(clouds, monkeypatch):
    seen = {}
    settle = Quorum._settle

    def spy(self, run, result):
        seen["unseen_by"] = result.unseen_by
        settle(self, run, result)

    monkeypatch.setattr(Quorum, "_settle", spy)
    X, S, _, _ = clouds
    before = Quorum(n_networks=3, n_neighbors=5, **SMALL).fit(X, S).evidence(X).networks
    unseen_by = seen["unseen_by"]
    assert np.bincount(unseen_by + 1).tolist() == [70, 10, 10, 10]
    # Other candidates for rows that network 0 left out: it alone learns what it did before.
    changed = S.copy()
    changed[unseen_by == 0] = True
    after = Quorum(n_networks=3, n_neighbors=5, **SMALL).fit(X, changed).evidence(X).networks
    np.testing.assert_array_equal(seen["unseen_by"], unseen_by)
    np.testing.assert_array_equal(after[0], before[0])
    assert (after[1] != before[1]).any()
    assert (after[2] != before[2]).any()


@pytest.mark.parametrize("networks", [1, 40])
def test_few_rows_for_each_network_are_enough(clouds, networks):
    X, S, new, _ = clouds
    model = Quorum(n_networks=networks, **{**SMALL, "n_epochs": 2}).fit(X[:30], S[:30])
    assert np.isfinite(model.predict_proba(new)).all()


def test_the_neighbours_side_is_their_weighed_candidates(fitted, clouds):
    X, _, new, _ = clouds
    new = new.astype(np.float32).astype(float)
    distances = cdist(new, X)
    for i, own in enumerate(fitted.evidence(new).neighbors):
        nearest = np.argsort(distances[i])[:5]
        d = distances[i, nearest]
        share = np.exp(-SHARPNESS * (d / d.mean()) ** 2)
        expected = (share[:, None] * fitted._weights[nearest]).sum(axis=0) / share.sum()
        np.testing.assert_allclose(own, expected, atol=1e-12)


def test_probabilities_are_the_logarithmic_pool(fitted, clouds):
    evidence = fitted.evidence(clouds[2])
    sides = np.stack([evidence.networks.mean(axis=0), evidence.neighbors, evidence.trees])
    raised = ((sides + FLOOR) ** fitted.pool_weights_[:, None, None]).prod(axis=0)
    expected = raised / raised.sum(axis=1, keepdims=True)
    found = fitted.predict_proba(clouds[2])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(fitted.accept_score(clouds[2]), expected.max(axis=1), atol=1e-12)
    np.testing.assert_array_equal(evidence.belief, sides.min(axis=0))
    np.testing.assert_array_equal(evidence.plausibility, sides.max(axis=0))
    pairs = [(0, 1), (0, 2), (1, 2)]
    gaps = [np.maximum(sides[a] - sides[b], 0).sum(axis=1) for a, b in pairs]
    np.testing.assert_allclose(evidence.conflict, np.max(gaps, axis=0), atol=1e-6)


def test_a_side_that_knows_nothing_is_hardly_heard(rng):
    # The sign of the first feature decides; among 30 that do not, neighbours cannot see it.
    X = rng.uniform(-1, 1, size=(400, 31)) * ([0.2] + [1.0] * 30)
    S = np.eye(2, dtype=bool)[(X[:, 0] > 0).astype(int)]
    S[rng.random(400) < 0.3] = True
    networks, neighbors, trees = Quorum(n_networks=2, **SMALL).fit(X, S).pool_weights_
    assert neighbors < FIRST_WEIGHTS[1]
    assert neighbors < 0.7 * min(networks, trees)


def test_without_dropout_one_network_learns_as_proden_does(clouds):
    X, S, new, _ = clouds
    own = {"batch_size": 32, **SMALL}
    alone = Proden(**own).fit(X, S)
    quorum = Quorum(n_networks=1, dropout=0.0, **own).fit(X, S)
    np.testing.assert_allclose(
        quorum.evidence(new).networks[0], alone.predict_proba(new), atol=1e-4
    )


def test_networks_differ_and_dropout_changes_what_they_learn(fitted, clouds):
    X, S, new, _ = clouds
    each = fitted.evidence(new).networks
    assert np.abs(each[0] - each[1]).max() > 0.01
    without = Quorum(n_networks=3, n_neighbors=5, dropout=0.0, **SMALL).fit(X, S)
    assert np.abs(each - without.evidence(new).networks).max() > 0.01


def test_dropout_drops_the_share_and_keeps_the_mean():
    torch = pytest.importorskip("torch")
    from demur.methods.deep.stack import Dropout

    streams = [torch.Generator().manual_seed(i) for i in range(3)]
    dropped = Dropout(0.25, streams)(torch.ones(3, 50, 401)).numpy()
    zero = (dropped == 0).mean(axis=(1, 2))
    np.testing.assert_allclose(zero, 0.25, atol=4 * np.sqrt(0.25 * 0.75 / (50 * 401)))
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / 0.75])
    # A network's draws are its own, whoever stands beside it.
    alone = Dropout(0.25, [torch.Generator().manual_seed(1)])(torch.ones(1, 50, 401)).numpy()
    np.testing.assert_array_equal(alone[0], dropped[1])
    assert (dropped[0] != dropped[1]).mean() > 0.3


def test_in_a_stack_a_run_is_what_it_is_alone(clouds):
    from demur import fit_stack

    X, S, new, _ = clouds
    own = {**SMALL, "n_networks": 2}
    pair = [Quorum(**{**own, "random_state": seed}) for seed in (0, 1)]
    fit_stack(pair, [X, X], [S, S])
    alone = Quorum(**{**own, "random_state": 1}).fit(X, S)
    np.testing.assert_allclose(pair[1].predict_proba(new), alone.predict_proba(new), atol=1e-4)


def test_training_labels_are_candidates_and_the_whole_is_kept(fitted, clouds):
    _, S, new, _ = clouds
    assert S[np.arange(100), fitted.transduction_].all()
    again = Quorum(**fitted.get_params()).from_arrays(fitted.to_arrays())
    np.testing.assert_array_equal(again.predict_proba(new), fitted.predict_proba(new))
    arrays = fitted.to_arrays()
    arrays["_weights"] = arrays["_weights"][:-1]
    with pytest.raises(ValueError, match="its weights"):
        Quorum(**fitted.get_params()).from_arrays(arrays)
    arrays = fitted.to_arrays()
    arrays["_forest:dict.children"] = np.zeros_like(arrays["_forest:dict.children"])
    with pytest.raises(ValueError, match="its trees lead nowhere"):
        Quorum(**fitted.get_params()).from_arrays(arrays)


def test_explains_who_says_what(fitted, clouds):
    new = clouds[2]
    unsure = int(fitted.accept_score(new).argmin())
    told = fitted.explain(new[unsure])
    assert not told.accepted
    assert told.prediction == fitted.predict(new)[unsure]
    own = fitted.evidence(new[[unsure]])
    np.testing.assert_array_equal(told.by_network, own.networks[:, 0])
    np.testing.assert_array_equal(told.by_neighbors, own.neighbors[0])
    np.testing.assert_array_equal(told.by_trees, own.trees[0])
    assert len(told.neighbors) == 5
    assert sum(voice.share for voice in told.neighbors) == pytest.approx(1)
    votes = own.networks[:, 0].argmax(axis=1)
    assert told.dissenting_networks == np.flatnonzero(votes != told.prediction).tolist()
    text = str(told)
    assert text.startswith("Demurs: ")
    assert f"{len(told.dissenting_networks)} of 3 networks" in text
    assert all(f"network {i}" in text for i in (1, 2, 3))
    sure = int(fitted.accept_score(new).argmax())
    assert fitted.explain(new[[sure]]).reason.startswith("Accepted as ")
    with pytest.raises(ValueError, match="one instance at a time"):
        fitted.explain(new[:2])


def test_without_networks_a_kernel_machine_takes_their_place(clouds):
    X, S, new, y = clouds
    model = Quorum(n_networks=0, random_state=0).fit(X, S)
    evidence = model.evidence(new)
    assert evidence.networks.shape == (1, 40, 3)
    assert (model.predict(new) == y).mean() > 0.75
    assert S[np.arange(100), model.transduction_].all()
    told = str(model.explain(new[0]))
    assert "kernel machine" in told
    assert "network" not in told
    again = Quorum(**model.get_params()).from_arrays(model.to_arrays())
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    twice = Quorum(n_networks=0, random_state=0).fit(X, S)
    np.testing.assert_array_equal(twice.predict_proba(new), model.predict_proba(new))


def test_a_model_can_change_between_networks_and_none(clouds):
    X, S = clouds[:2]
    model = Quorum(n_networks=2, **SMALL)
    fresh = [
        Quorum(**{**model.get_params(), "n_networks": n}).fit(X, S).to_arrays() for n in (2, 0)
    ]
    for n, expected in ((2, fresh[0]), (0, fresh[1]), (2, fresh[0])):
        found = model.set_params(n_networks=n).fit(X, S).to_arrays()
        assert set(found) == set(expected)
        np.testing.assert_array_equal(found["_weights"], expected["_weights"])


def test_stacks_without_networks_are_fitted_one_by_one(clouds):
    from demur import fit_stack

    X, S, new, _ = clouds
    pair = fit_stack([Quorum(n_networks=0, random_state=s) for s in (0, 1)], [X, X], [S, S])
    alone = Quorum(n_networks=0, random_state=1).fit(X, S)
    np.testing.assert_array_equal(pair[1].predict_proba(new), alone.predict_proba(new))


def test_without_networks_torch_is_not_needed():
    code = (
        "import sys\n"
        "from demur import Quorum\n"
        "X, S = [[0, 0], [0, 1], [1, 0], [1, 1]] * 8, [[0], [0, 1], [1], [1, 2]] * 8\n"
        "print(Quorum(n_networks=0, random_state=0).fit(X, S).predict([[0, 0], [1, 0]]).tolist())\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[0, 1]", "False"]


def test_images_are_judged_as_images(rng):
    X = rng.random((30, 28, 28))
    S = np.eye(3, dtype=bool)[np.arange(30) % 3]
    model = Quorum(n_networks=2, n_epochs=1, n_neighbors=3, random_state=0).fit(X, S)
    assert model.predict_proba(X).shape == (30, 3)
    assert model.evidence(X).networks.shape == (2, 30, 3)
    assert len(model.explain(X[:1]).neighbors) == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_networks": -1}, "n_networks"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"dropout": 1.0}, "dropout must be under 1"),
        ({"dropout": -0.1}, "dropout must be 0 or more"),
        ({"n_trees": 0}, "n_trees"),
    ],
)
def test_wrong_parameters_are_named(clouds, parameters, message):
    with pytest.raises(ValueError, match=message):
        Quorum(**{**SMALL, **parameters}).fit(clouds[0], clouds[1])
