import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from demur import CandidateSets, DstPll
from demur.embed import VAEEncoder, batch_loss

torch = pytest.importorskip("torch")


def small(**parameters):
    return VAEEncoder(
        **{"n_components": 3, "hidden": 8, "n_epochs": 2, "random_state": 0} | parameters
    )


@pytest.fixture
def images(rng):
    """Bytes, with both ends of their range."""
    pixels = rng.integers(256, size=(20, 28, 28)).astype(np.uint8)
    pixels[0, 0, :2] = 0, 255
    return pixels


@parametrize_with_checks([small(random_state=None)])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_loss_is_minus_the_evidence_lower_bound():
    """Against torch's distributions, which know nothing of sigmoids folded into losses."""
    from torch.distributions import Bernoulli, Normal, kl_divergence

    stream = torch.Generator().manual_seed(0)
    shapes = [(6, 5), (5,), (5, 4), (4,), (2, 5), (5,), (5, 6), (6,)]
    weights = [torch.randn(s, generator=stream, dtype=torch.float64) for s in shapes]
    x, noise = torch.rand(7, 6, generator=stream), torch.randn(7, 2, generator=stream)
    x, noise = x.double(), noise.double()
    w1, b1, w2, b2, w3, b3, w4, b4 = weights
    head = torch.clamp(x @ w1 + b1, min=0) @ w2 + b2
    posterior = Normal(head[:, :2], torch.sqrt(torch.exp(head[:, 2:])))
    code = posterior.loc + posterior.scale * noise
    decoded = torch.sigmoid(torch.clamp(code @ w3 + b3, min=0) @ w4 + b4)
    log_likelihood = Bernoulli(decoded, validate_args=False).log_prob(x).sum()
    divergence = kl_divergence(posterior, Normal(0.0, 1.0)).sum()
    torch.testing.assert_close(batch_loss(weights, x, noise), divergence - log_likelihood)


def test_learns_to_describe_images():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    encoder = VAEEncoder(8, hidden=64, n_epochs=100, random_state=0).fit(X[:1300])
    p = np.clip(X[:1300].mean(axis=0), 1e-9, 1 - 1e-9)
    blind = -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum()  # the best without a code
    assert encoder.history_.shape == (100,)
    assert encoder.history_[-1] < blind < encoder.history_[0]
    near = KNeighborsClassifier(10).fit(encoder.transform(X[:1300]), y[:1300])
    assert near.score(encoder.transform(X[1300:]), y[1300:]) > 0.8
    # The code is shrunk towards a standard normal distribution, not merely free.
    assert np.all(encoder.transform(X).std(axis=0) < 1.1)


def test_means_are_those_of_the_two_layers_as_torch_computes_them(images):
    X = images.reshape(20, 784) / 255
    encoder = small().fit(X)
    (w1, w2), (b1, b2) = encoder.coefs_, encoder.intercepts_
    assert [a.shape for a in (w1, b1, w2, b2)] == [(784, 8), (8,), (8, 3), (3,)]
    linear = torch.nn.functional.linear
    hidden = linear(torch.from_numpy(X), torch.from_numpy(w1.T), torch.from_numpy(b1)).relu()
    expected = linear(hidden, torch.from_numpy(w2.T), torch.from_numpy(b2)).numpy()
    np.testing.assert_allclose(encoder.transform(X), expected, rtol=1e-12, atol=1e-14)


def test_the_defaults_are_the_networks_of_the_text(images):
    encoder = VAEEncoder(n_epochs=1).fit(images)
    assert [w.shape for w in encoder.coefs_] == [(784, 512), (512, 48)]
    assert encoder.transform(images).shape == (20, 48)


def test_images_of_all_shapes_and_of_bytes_are_the_same(images):
    expected = small().fit_transform(images.reshape(20, 784) / 255)
    for same in (images, images[:, None], images / 255, images.reshape(20, 784)):
        np.testing.assert_array_equal(small().fit_transform(same), expected)


def test_pixels_between_0_and_1_are_not_stretched(rng):
    X = rng.uniform(0.4, 0.6, size=(10, 4))
    encoder = small().fit(X)
    assert (encoder.low_, encoder.span_) == (0.0, 1.0)
    shifted = small().fit(X - 0.5)
    assert (shifted.low_, shifted.span_) == (X.min() - 0.5, (X - 0.5).max() - (X - 0.5).min())


def test_values_beyond_the_training_range_are_clipped_and_other_units_are_told(images):
    encoder = small().fit(images / 255)
    X = images[:2].reshape(2, 784) / 255
    beyond = np.where(X > 0.5, 1.9, -0.9)
    np.testing.assert_array_equal(encoder.transform(beyond), encoder.transform(X > 0.5))
    beyond[1, 7] = 255
    with pytest.warns(UserWarning, match=r"255.0 at row 1, column 7; 1 such .* \[0.0, 1.0\]"):
        encoder.transform(beyond)


def test_constant_and_enormous_values():
    assert np.isfinite(small().fit_transform(np.full((4, 3), 7.0))).all()
    X = np.array([[0.0, 1e308], [-7e307, 0.0]])
    assert np.isfinite(small().fit_transform(X)).all()
    with pytest.raises(ValueError, match="reaches from -1e\\+308 to 1e\\+308"):
        small().fit(np.array([[-1e308, 1e308]]))


def test_same_seed_same_bits_whatever_torch_has_drawn_before(images):
    torch.manual_seed(1)
    first = small().fit(images)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    second = small().fit(images)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(second.transform(images), first.transform(images))
    np.testing.assert_array_equal(second.history_, first.history_)
    assert not np.array_equal(small(random_state=1).fit(images).coefs_[0], first.coefs_[0])


def test_pipeline_learns_from_candidate_sets_and_can_be_cloned(rng):
    y = rng.integers(3, size=90)
    X = np.clip(rng.normal(0.2, 0.1, size=(90, 9)) + 0.6 * np.repeat(np.eye(3), 3, 1)[y], 0, 1)
    S = [
        {label, int(other)}
        for label, other in zip(y.tolist(), rng.integers(3, size=90), strict=True)
    ]
    pipeline = make_pipeline(small(n_epochs=60, batch_size=16), DstPll(n_neighbors=5))
    for model in (clone(pipeline).fit(X, S), pipeline.fit(X, CandidateSets(S))):
        assert model.score(X, y) > 0.9
    assert pipeline[0].get_feature_names_out().tolist() == [f"vaeencoder{i}" for i in range(3)]


def test_state_is_arrays_and_a_pickle_is_used_without_torch(images, tmp_path):
    encoder = small().fit(images)
    saved = pickle.dumps(encoder)
    assert b"torch" not in saved
    (tmp_path / "encoder").write_bytes(saved)
    np.save(tmp_path / "images.npy", images)
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no torch', name='torch')")
    code = """
        import pickle
        import numpy as np
        images = np.load("images.npy")
        encoder = pickle.load(open("encoder", "rb"))
        np.save("means.npy", encoder.transform(images))
        try:
            encoder.fit(images)
        except ImportError as error:
            print(error)
        """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'pip install "demur[deep]"' in told.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "means.npy"), encoder.transform(images))


def test_interrupt_leaves_what_was_trained(images, monkeypatch):
    expected = small(n_epochs=1, batch_size=10).fit(images)
    step, calls = torch.optim.AdamW.step, []

    def interrupted(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 3:  # the first of the second epoch
            raise KeyboardInterrupt
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", interrupted)
    encoder = small(n_epochs=5, batch_size=10)
    with pytest.raises(KeyboardInterrupt):
        encoder.fit(images)
    np.testing.assert_array_equal(encoder.history_, expected.history_)
    np.testing.assert_array_equal(encoder.transform(images), expected.transform(images))


def test_divergence_stops_at_its_epoch_and_leaves_no_model(images):
    encoder = small().fit(images)
    encoder.set_params(learning_rate=1e20, n_epochs=50)
    with pytest.raises(ValueError, match=r"the loss is (nan|inf) in epoch \d+; .*learning_rate"):
        encoder.fit(images)
    with pytest.raises(NotFittedError):
        encoder.transform(images)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number, 1 or more; got 0"),
        ({"hidden": 2.5}, "hidden must be a whole number"),
        ({"n_epochs": True}, "n_epochs must be a whole number"),
        ({"batch_size": None}, "batch_size must be a whole number"),
        ({"learning_rate": 0}, "learning_rate must be a number over 0; got 0"),
        ({"learning_rate": np.nan}, "learning_rate must be a number over 0; got nan"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_refused_parameters(images, parameters, message):
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(images)


def test_refused_values(images):
    X = images.reshape(20, 784).astype(float)
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN at row 3, column 5"):
        small().fit(X)
    encoder = small().fit(images)
    with pytest.raises(ValueError, match="4 features, but VAEEncoder is expecting 784"):
        encoder.transform(np.zeros((3, 2, 2)))
    with pytest.raises(ValueError, match="0 sample"):
        encoder.transform(images[:0])
