"""Quorum: its two sides, their pool, and what it says of them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from demur import Proden, Quorum
from demur.methods.deep.quorum import FLOOR, SHARPNESS

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


def test_the_neighbours_side_is_their_weighed_candidates(fitted, clouds):
    X, S, new, _ = clouds
    new = new.astype(np.float32).astype(float)
    weights = fitted.evidence(X).networks.mean(axis=0) * S
    weights /= weights.sum(axis=1, keepdims=True)
    distances = cdist(new, X)
    for i, own in enumerate(fitted.evidence(new).neighbors):
        nearest = np.argsort(distances[i])[:5]
        d = distances[i, nearest]
        share = np.exp(-SHARPNESS * (d / d.mean()) ** 2)
        expected = (share[:, None] * weights[nearest]).sum(axis=0) / share.sum()
        np.testing.assert_allclose(own, expected, atol=1e-12)


def test_probabilities_are_the_logarithmic_pool(fitted, clouds):
    evidence = fitted.evidence(clouds[2])
    mean = evidence.networks.mean(axis=0)
    logs = 0.6 * np.log(mean + FLOOR) + 0.4 * np.log(evidence.neighbors + FLOOR)
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    found = fitted.predict_proba(clouds[2])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(fitted.accept_score(clouds[2]), expected.max(axis=1), atol=1e-12)
    np.testing.assert_array_equal(evidence.belief <= evidence.plausibility, True)
    np.testing.assert_allclose(
        evidence.conflict, evidence.plausibility.sum(axis=1) - 1, atol=1e-12
    )  # total variation


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_one_side_alone_can_have_the_whole_say(clouds, weight):
    X, S, new, _ = clouds
    model = Quorum(n_networks=2, network_weight=weight, **SMALL).fit(X, S)
    evidence = model.evidence(new)
    side = evidence.networks.mean(axis=0) if weight else evidence.neighbors
    np.testing.assert_array_equal(model.predict(new), side.argmax(axis=1))


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


def test_explains_who_says_what(fitted, clouds):
    new = clouds[2]
    unsure = int(fitted.accept_score(new).argmin())
    told = fitted.explain(new[unsure])
    assert not told.accepted
    assert told.prediction == fitted.predict(new)[unsure]
    own = fitted.evidence(new[[unsure]])
    np.testing.assert_array_equal(told.by_network, own.networks[:, 0])
    np.testing.assert_array_equal(told.by_neighbors, own.neighbors[0])
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
        ({"n_networks": 0}, "n_networks"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"dropout": 1.0}, "dropout must be under 1"),
        ({"dropout": -0.1}, "dropout must be 0 or more"),
        ({"network_weight": 1.5}, "network_weight must be at most 1"),
        ({"network_weight": float("nan")}, "network_weight"),
    ],
)
def test_wrong_parameters_are_named(clouds, parameters, message):
    with pytest.raises(ValueError, match=message):
        Quorum(**{**SMALL, **parameters}).fit(clouds[0], clouds[1])
