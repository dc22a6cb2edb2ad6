"""Network methods as estimators: images, saving, errors, stacks; the rest is in the contract."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from demur import CandidateSets
from demur.methods.deep import Cc, CroSel, DeepClassifier, Pop, Proden, Strategy, Valen, fit_stack

torch = pytest.importorskip("torch")

METHODS = [Proden, Cc, Pop, CroSel, Valen]
SMALL = {"hidden_layer_sizes": (32,), "random_state": 0}


@pytest.fixture
def data(rng):
    y = rng.integers(3, size=200)
    X = rng.normal(size=(200, 4)) + 4 * np.eye(3, 4)[y]
    S = rng.random((200, 3)) < 0.25
    S[np.arange(200), y] = True
    return X, S, y


@pytest.fixture
def images(rng):
    return rng.random((40, 28, 28)), rng.integers(2, size=40)


@pytest.mark.parametrize("method", METHODS)
def test_learns_and_keeps_to_the_candidates(method, data):
    X, S, y = data
    model = method(n_epochs=40, **SMALL).fit(X[:150], S[:150])
    assert np.mean(model.predict(X[150:]) == y[150:]) > 0.9
    assert S[np.arange(150), model.transduction_].all()
    assert np.mean(model.transduction_ == y[:150]) > 0.9
    assert model.history_.shape == (40,)
    assert np.isfinite(model.history_).all()
    score = model.accept_score(X[150:])
    np.testing.assert_array_equal(score, model.predict_proba(X[150:]).max(axis=1))
    np.testing.assert_array_equal(model.decide(X[150:]).mask, score <= 0.9)


@pytest.mark.parametrize("method", METHODS)
def test_a_label_that_never_is_a_candidate_is_not_predicted(method, data):
    X, S, _ = data
    sets = CandidateSets(np.hstack([S, np.zeros((200, 1), bool)]), classes=["a", "b", "c", "z"])
    model = method(n_epochs=40, **SMALL).fit(X, sets)
    assert model.predict_proba(X).shape == (200, 4)
    assert "z" not in model.predict(X)


@pytest.mark.parametrize("method", METHODS)
def test_images_are_read_in_three_forms(method, images):
    X, y = images
    settings = {"n_epochs": 2, "random_state": 3}
    expected = method(**settings).fit(X, y)
    assert expected.image_shape_ == (1, 28, 28)
    assert expected.n_features_in_ == 784
    proba = expected.predict_proba(X)
    with_channel = method(**settings).fit(X[:, None], y)
    flat = method(image_shape=(28, 28), **settings).fit(X.reshape(40, -1), y)
    np.testing.assert_array_equal(with_channel.predict_proba(X[:, None]), proba)
    np.testing.assert_array_equal(flat.predict_proba(X.reshape(40, -1)), proba)
    np.testing.assert_array_equal(flat.predict_proba(X), proba)
    table = method(**settings, hidden_layer_sizes=(8,)).fit(X.reshape(40, -1), y)
    assert table.image_shape_ is None
    assert sum(value.size for value in table.state_.values()) < 20_000


def test_images_of_other_shapes_are_refused(images):
    X, y = images
    with pytest.raises(ValueError, match=r"takes 28 x 28 with one channel, not \(1, 14, 56\)"):
        Proden(n_epochs=1).fit(X.reshape(40, 14, 56), y)
    with pytest.raises(ValueError, match=r"images of shape \(1, 14, 56\); \(1, 28, 28\) is exp"):
        Proden(n_epochs=1, image_shape=(28, 28)).fit(X.reshape(40, 14, 56), y)
    with pytest.raises(ValueError, match="X has 784 columns, but images .* have 100 pixels"):
        Proden(n_epochs=1, image_shape=(10, 10)).fit(X.reshape(40, -1), y)
    with pytest.raises(ValueError, match=r"an image is \(height, width\) or"):
        Proden(n_epochs=1, image_shape=(784,)).fit(X.reshape(40, -1), y)
    model = Proden(n_epochs=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"images of shape \(1, 14, 56\)"):
        model.predict(X.reshape(40, 14, 56))


@pytest.mark.parametrize("method", METHODS)
def test_arrays_hold_the_whole_model(method, data, tmp_path):
    X, S, _ = data
    names = CandidateSets(S, classes=["x", "y", "z"])
    model = method(n_epochs=3, **SMALL).fit(X, names)
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        again = method(n_epochs=3, **SMALL).from_arrays(arrays)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.transduction_, model.transduction_)
    np.testing.assert_array_equal(again.history_, model.history_)


def test_feature_names_are_saved_without_pickling(data, tmp_path):
    pd = pytest.importorskip("pandas")
    X, S, _ = data
    frame = pd.DataFrame(X, columns=list("pqrs"))
    model = Cc(n_epochs=1, **SMALL).fit(frame, S)
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        again = Cc(n_epochs=1, **SMALL).from_arrays(arrays)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[list("qprs")])


def test_arrays_of_another_model_are_refused(data):
    X, S, _ = data
    arrays = Cc(n_epochs=1, **SMALL).fit(X, S).to_arrays()
    other = Cc(hidden_layer_sizes=(16,))
    with pytest.raises(ValueError, match="the arrays do not fit these parameters"):
        other.from_arrays(arrays)
    with pytest.raises(NotFittedError):
        check_is_fitted(other)
    with pytest.raises(ValueError, match=r"lacking: \['classes_'\]"):
        Cc().from_arrays({k: v for k, v in arrays.items() if k != "classes_"})
    with pytest.raises(NotFittedError):
        Cc().to_arrays()


def test_a_pickle_holds_no_torch_object(data):
    X, S, _ = data
    model = CroSel(n_epochs=2, **SMALL).fit(X, S)
    stored = pickle.dumps(model)
    assert b"torch" not in stored
    np.testing.assert_array_equal(pickle.loads(stored).predict_proba(X), model.predict_proba(X))
    assert all(isinstance(value, np.ndarray) for value in model.state_.values())


def _in_a_new_process(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )


def test_only_fitting_needs_torch():
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'torch':\n"
        "            raise ModuleNotFoundError('No module named torch', name='torch')\n"
        "sys.meta_path.insert(0, Blocked)\n"
        "from demur.methods.deep import Valen\n"
        "model = Valen(n_epochs=3)\n"
        "assert model.get_params()['n_epochs'] == 3 and 'Valen' in repr(model)\n"
        "model.fit([[0.0], [1.0]], [0, 1])"
    )
    done = _in_a_new_process(code)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert 'pip install "demur[deep]"' in last


def test_importing_the_methods_does_not_import_torch():
    code = "import sys, demur.methods.deep; assert 'torch' not in sys.modules"
    done = _in_a_new_process(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        (Cc, {"n_epochs": 0}, "n_epochs must be a whole number, 1 or more; got 0"),
        (Cc, {"n_epochs": 2.0}, "n_epochs must be a whole number"),
        (Cc, {"batch_size": 1}, "batch_size must be a whole number, 2 or more; got 1"),
        (Cc, {"patience": True}, "patience must be a whole number"),
        (Cc, {"learning_rate": -1}, "learning_rate must be 0 or more; got -1"),
        (Cc, {"learning_rate": np.nan}, "learning_rate must be a number"),
        (Cc, {"hidden_layer_sizes": (3, 0)}, r"hidden_layer_sizes .* got \(3, 0\)"),
        (Cc, {"device": "no such device"}, "device 'no such device' cannot be used"),
        (Pop, {"purify_every": 0}, "purify_every must be a whole number, 1 or more"),
        (Pop, {"last_threshold": "1"}, "last_threshold must be a number"),
        (CroSel, {"memory": 0}, "memory must be a whole number, 1 or more"),
        (Valen, {"warm_up_epochs": 0}, "warm_up_epochs must be a whole number, 1 or more"),
    ],
)
def test_wrong_parameters_are_named(method, wrong, message, data):
    X, S, _ = data
    model = method(**wrong)
    with pytest.raises(ValueError, match=message):
        model.fit(X, S)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_numbers_too_large_for_a_network_are_named(data):
    X, S, _ = data
    model = Cc(n_epochs=1, **SMALL).fit(X, S)
    X[7, 2] = 1e300
    for act in (lambda: model.predict(X), lambda: clone(model).fit(X, S)):
        with pytest.raises(ValueError, match=r"X holds 1e\+300 at row 7, column 2"):
            act()


def test_a_stack_must_be_alike(data):
    X, S, _ = data
    model = Cc(n_epochs=1)
    with pytest.raises(ValueError, match="got 1, 2 and 1"):
        fit_stack([model], [X, X], [S])
    with pytest.raises(ValueError, match="got 0, 0 and 0"):
        fit_stack([], [], [])
    with pytest.raises(ValueError, match="stands twice"):
        fit_stack([model, model], [X, X], [S, S])
    with pytest.raises(ValueError, match="estimator 0 is a Cc and estimator 1 a Proden"):
        fit_stack([model, Proden()], [X, X], [S, S])
    with pytest.raises(ValueError, match="n_epochs is 1 for estimator 0 and 2 for estimator 1"):
        fit_stack([model, Cc(n_epochs=2)], [X, X], [S, S])
    with pytest.raises(ValueError, match="same numbers of rows, features and classes"):
        fit_stack([model, clone(model)], [X, X[:-1]], [S, S[:-1]])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_run_of_a_stack_may_have_names_of_its_own(data):
    X, S, _ = data
    models = [Cc(n_epochs=2, **SMALL) for _ in range(2)]
    named = CandidateSets(S, classes=["a", "b", "c"])
    first, second = fit_stack(models, [X, X], [S, named])
    assert first.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(second.predict(X), np.array(["a", "b", "c"])[first.predict(X)])


def _factory(shape, n_outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(int(np.prod(shape)), 16),
        torch.nn.ReLU(),
        torch.nn.BatchNorm1d(16),
        torch.nn.Linear(16, n_outputs),
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_network_of_ones_own(method, data):
    X, S, y = data
    models = [method(network=_factory, n_epochs=60, random_state=seed) for seed in (0, 1)]
    alone = clone(models[1]).fit(X, S)
    _, stacked = fit_stack(models, [X, X], [S, S])
    assert np.mean(alone.predict(X) == y) > 0.9
    np.testing.assert_allclose(stacked.predict_proba(X), alone.predict_proba(X), atol=1e-3)
    again = pickle.loads(pickle.dumps(alone))
    np.testing.assert_array_equal(again.predict_proba(X), alone.predict_proba(X))


class _Sharpened(DeepClassifier):
    """A method of one's own: CC with probabilities to a power."""

    def __init__(self, *, power=2.0, **parameters):
        super().__init__(**parameters)
        self.power = power

    def strategy(self):
        power = self.power

        class Sharpened(Strategy):
            def loss(self, batch):
                p = (batch.log_proba * power).softmax(-1)
                return -(p * batch.candidates).sum(-1).log().mean(-1)

        return Sharpened()


def test_a_method_of_ones_own_needs_few_lines(data):
    X, S, y = data
    model = clone(_Sharpened(power=1.5, n_epochs=40, batch_size=32, **SMALL))
    assert model.get_params()["power"] == 1.5
    assert model.get_params()["hidden_layer_sizes"] == (32,)
    assert repr(_Sharpened(power=1.5)) == "_Sharpened(power=1.5)"
    assert np.mean(model.fit(X, S).predict(X) == y) > 0.9
