import numpy as np
import pytest
from sklearn.svm import LinearSVC

from demur.methods import pl_svm
from demur.methods.pl_svm import PlSvm


def transcribed(X, S, order, regularization):
    """Pegasos as its article writes it."""
    weights = np.zeros((S.shape[1], X.shape[1]))
    for t, i in enumerate(order, start=1):
        scores = weights @ X[i]
        best = np.where(S[i], scores, -np.inf).argmax()
        rival = np.where(S[i], -np.inf, scores).argmax()
        weights = (1 - 1 / t) * weights
        if not S[i].all() and scores[best] - scores[rival] < 1:
            weights[best] += X[i] / (regularization * t)
            weights[rival] -= X[i] / (regularization * t)
        weights *= min(1, 1 / np.sqrt(regularization) / max(np.linalg.norm(weights), 1e-300))
    return weights


@pytest.fixture
def data(rng):
    X = rng.random((80, 6))
    S = rng.random((80, 5)) < 0.4
    S[np.arange(80), X[:, :5].argmax(axis=1)] = True
    S[3] = True
    return X, S


@pytest.mark.parametrize("regularization", [1.0, 0.05, 4.0])
def test_against_a_plain_transcription(data, regularization):
    X, S = data
    model = PlSvm(regularization, n_steps=2000, random_state=5).fit(X, S)
    order = np.random.RandomState(5).randint(80, size=2000)
    expected = transcribed(X, S, order, regularization)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-8, atol=1e-11)
    scores = X @ expected.T
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), shares, rtol=1e-8)
    labels = np.where(S, scores, -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(model.transduction_, labels)


def test_first_step_by_hand():
    # The seed draws row 0. All scores are 0, so its first candidate and the first other label
    # move: by 5 each, which is put back to length 1 in all.
    S = np.array([[1, 0, 1], [0, 1, 0]])
    model = PlSvm(n_steps=1, random_state=0).fit([[3.0, 4.0], [0.0, 1.0]], S)
    half = np.array([3.0, 4.0]) / 5 / np.sqrt(2)
    np.testing.assert_allclose(model.coef_, [half, -half, 0 * half], rtol=1e-14)


def test_two_classes_are_the_ordinary_support_vector_machine(rng):
    # With w_1 = -w_0 = v / 2 the objective is lambda / 4 |v|^2 + mean hinge loss of v.
    y = rng.integers(2, size=300)
    X = rng.normal(size=(300, 3)) + np.where(y, 1.0, -1.0)[:, None]
    svm = LinearSVC(loss="hinge", C=2 / 300, fit_intercept=False, max_iter=100_000, tol=1e-8)
    svm.fit(X, y)
    model = PlSvm(n_steps=300_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], svm.coef_[0], atol=5e-3)
    np.testing.assert_allclose(model.coef_[0], -model.coef_[1], atol=1e-12)


def test_full_sets_ask_for_nothing(rng):
    model = PlSvm(n_steps=100, random_state=0).fit(rng.random((9, 2)), np.ones((9, 3)))
    assert (model.coef_ == 0).all()
    np.testing.assert_allclose(model.predict_proba([[1.0, 1.0]]), [[1 / 3] * 3])


def test_a_class_never_a_candidate_is_never_predicted():
    # On the far side every candidate has a negative score, which 0 would beat.
    model = PlSvm(n_steps=1000, random_state=0)
    model.fit([[1.0], [0.9], [1.1]], np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0]]))
    proba = model.predict_proba([[-5.0], [5.0]])
    assert (proba[:, 2] == 0).all()
    assert model.predict([[-5.0], [5.0]]).tolist() == [1, 0]


def test_number_of_steps(data, monkeypatch):
    X, S = data
    by_default = PlSvm(random_state=1).fit(X, S).coef_
    given = PlSvm(n_steps=100_000, random_state=1).fit(X, S).coef_
    np.testing.assert_array_equal(by_default, given)
    monkeypatch.setattr(pl_svm, "MIN_STEPS", 10)
    by_default = PlSvm(random_state=1).fit(X, S).coef_
    given = PlSvm(n_steps=800, random_state=1).fit(X, S).coef_
    np.testing.assert_array_equal(by_default, given)


def test_seeds(data):
    X, S = data
    one, same, other = (PlSvm(n_steps=500, random_state=seed).fit(X, S).coef_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"regularization": 0}, "regularization must be over 0; got 0"),
        ({"regularization": np.nan}, "regularization must be a number; got nan"),
        ({"n_steps": 0}, "n_steps must be a whole number, 1 or more; got 0"),
    ],
)
def test_bad_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        PlSvm(**parameters).fit(*data)


@pytest.mark.parametrize(("factor", "regularization"), [(1e151, 1.0), (1e140, 1e-15)])
def test_features_too_large(data, factor, regularization):
    X, S = data
    with pytest.raises(
        ValueError, match=r"features as large as 1e\+1\d\d make steps .* scale them"
    ):
        PlSvm(regularization, n_steps=100, random_state=0).fit(factor * X / X.max(), S)
    fine = PlSvm(regularization, n_steps=100, random_state=0).fit(factor / 1e10 * X / X.max(), S)
    assert np.isfinite(fine.coef_).all()
    assert (fine.coef_ != 0).any()
