import os

import numpy as np
import pytest

from demur.bench import prepare as room
from demur.bench.prepare import load_data, prepare, scaled, split
from demur.bench.spec import Spec

UNIFORM = {"n_noise": 1, "share": 0.5}


def spec(seed=0, noise="uniform", dataset="iris", **more):
    how = UNIFORM if noise == "uniform" else {}
    return Spec(dataset, "dst-pll", noise, seed, noise_parameters=how, **more)


def test_parts_are_apart_and_scaled_by_the_training_part():
    made = prepare(spec(), None, None, "cpu")
    train, test = split(150, 0.2, 0)
    assert sorted([*train, *test]) == list(range(150))
    assert len(test) == 30
    data = load_data("iris", "all", None)
    low, high = data.X[train].min(axis=0), data.X[train].max(axis=0)
    np.testing.assert_allclose(made.X_test, (data.X[test] - low) / (high - low))
    assert made.X_train.min() == 0.0
    assert made.X_train.max() == 1.0
    np.testing.assert_array_equal(made.y_test, data.y[made.test])


def test_the_true_label_is_a_candidate_and_half_have_another():
    made = prepare(spec(dataset="digits"), None, None, "cpu")
    train, _ = split(1797, 0.2, 0)
    held = made.sets.to_indicator()
    assert held[np.arange(len(train)), load_data("digits", "all", None).y[train]].all()
    assert (made.sets.sizes == 2).mean() == pytest.approx(0.5, abs=0.04)
    assert made.sets.classes.tolist() == list(range(10))


def test_methods_of_one_seed_learn_from_the_same():
    first = prepare(spec(), None, None, "cpu")
    second = prepare(Spec("iris", "pl-knn", "uniform", 0, noise_parameters=UNIFORM), None, None, "")
    np.testing.assert_array_equal(first.X_train, second.X_train)
    np.testing.assert_array_equal(first.sets.to_indicator(), second.sets.to_indicator())
    other = prepare(spec(seed=1), None, None, "cpu")
    assert first.test.tolist() != other.test.tolist()
    assert (first.sets.to_indicator() != other.sets.to_indicator()).any()


def test_pixels_are_scaled_together(monkeypatch):
    X = np.zeros((10, 4))
    X[:, 0], X[:, 1] = 200.0, np.arange(10)
    data = room.Data(X, np.arange(10) % 3, (0, 1, 2), None, (2, 2))
    monkeypatch.setattr(room, "load_data", lambda *_: data)
    _, X_test = scaled.__wrapped__("x", "all", None, 0.2, 0)
    np.testing.assert_allclose(X_test, X[split(10, 0.2, 0)[1]] / 200.0)


def test_a_set_without_candidates_has_no_real_ones():
    with pytest.raises(ValueError, match="iris has no candidates of its own; name one of"):
        prepare(spec(noise="real"), None, None, "cpu")


def test_real_candidates_come_with_the_data():
    folder = os.environ.get("DEMUR_DATA")
    if not folder:
        pytest.skip("DEMUR_DATA names no folder of datasets")
    run = Spec("msrc-v2", "dst-pll", "real", 0, classes="frequent-95")
    made = prepare(run, folder, None, "cpu")
    data = load_data("msrc-v2", "frequent-95", folder)
    train, _ = split(len(data.y), 0.2, 0)
    np.testing.assert_array_equal(made.sets.to_indicator(), data.candidates.to_indicator()[train])
    assert made.sets.contains(data.y[train]).all()
    assert len(made.classes) == 19


def test_what_takes_long_is_made_once_and_is_the_same(tmp_path, monkeypatch):
    alone = prepare(spec(noise="class-dependent"), None, None, "cpu")
    monkeypatch.setattr(room, "SLOW", 0.0)
    run = spec(noise="class-dependent")
    made = [prepare(run, None, str(tmp_path), "cpu")]
    (path,) = tmp_path.iterdir()  # and no lock is left
    monkeypatch.setattr(room, "NOISES", {})  # cannot be made again
    made.append(prepare(run, None, str(tmp_path), "cpu"))
    for one in made:
        np.testing.assert_array_equal(one.sets.to_indicator(), alone.sets.to_indicator())
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(KeyError):  # a file cut short is as none
        prepare(run, None, str(tmp_path), "cpu")


def test_what_is_quick_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "SLOW", 60.0)
    prepare(spec(), None, str(tmp_path), "cpu")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_stop_preparing(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room, "SLOW", 0.0)
    monkeypatch.setattr(np, "savez", full)
    made = prepare(spec(), None, str(tmp_path), "cpu")
    assert len(made.sets) == 120
    assert list(tmp_path.iterdir()) == []


def test_an_encoder_takes_the_place_of_the_features(tmp_path):
    pytest.importorskip("torch")
    encoder = {"kind": "vae", "n_components": 3, "hidden": 8, "n_epochs": 2}
    made = prepare(spec(encoder=encoder), None, str(tmp_path), "cpu")
    assert made.X_train.shape == (120, 3)
    assert made.X_test.shape == (30, 3)
    again = prepare(spec(encoder=encoder), None, None, "cpu")
    np.testing.assert_array_equal(made.X_test, again.X_test)
    with pytest.raises(ValueError, match="the encoder's kind is 'pca'; there are vae"):
        prepare(spec(encoder={"kind": "pca"}), None, None, "cpu")
