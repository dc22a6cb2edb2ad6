from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from demur.methods import pl_ecoc
from demur.methods.pl_ecoc import PlEcoc


def sides_of(S, code):
    """1, -1 or 0 for each candidate set, by Python's sets."""
    positive = set(np.flatnonzero(code))
    rows = [set(np.flatnonzero(row)) for row in S]
    return np.array([int(row <= positive) - int(not row & positive) for row in rows])


def usable(S, code, min_share):
    sides = sides_of(S, code)
    return {-1, 1} <= set(sides) and np.count_nonzero(sides) >= min_share * len(S)


def make_data(rng, l, rate=0.15, n=150, d=6):
    y = rng.integers(l, size=n)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(l, d))[y]
    S = rng.random((n, l)) < rate
    S[np.arange(n), y] = True
    return X, S


@pytest.mark.parametrize("min_share", [0.0, 0.3, 0.5])
def test_every_code_is_tried_up_to_ten_classes(rng, min_share):
    X, S = make_data(rng, 4, rate=0.3)
    model = PlEcoc(n_codes=99, min_share=min_share, random_state=0).fit(X, S)
    found = [tuple(code) for code in model.codes_.tolist()]
    assert len(set(found)) == len(found)
    assert set(found) == {c for c in product([False, True], repeat=4) if usable(S, c, min_share)}


@pytest.mark.parametrize(("l", "expected"), [(10, 34), (20, 44), (70, 62)])
def test_number_of_codes_and_their_use(rng, l, expected):
    X, S = make_data(rng, l, rate=1 / l, n=300)
    model = PlEcoc(random_state=3).fit(X, S)
    assert model.codes_.shape == (expected, l)
    assert len(np.unique(model.codes_, axis=0)) == expected
    assert all(usable(S, code, 0.1) for code in model.codes_)
    np.testing.assert_allclose(model.codes_.mean(), 0.5, atol=0.12)
    fewer = PlEcoc(n_codes=30, random_state=3).fit(X, S)
    np.testing.assert_array_equal(fewer.codes_, model.codes_[:30])


def test_each_machine_learns_what_falls_on_a_side(rng):
    X, S = make_data(rng, 5)
    model = PlEcoc(n_codes=6, C=0.3, random_state=0).fit(X, S)
    for code, coef, intercept in zip(model.codes_, model.coef_, model.intercept_, strict=True):
        sides = sides_of(S, code)
        svm = LinearSVC(C=0.3, dual=True, tol=1e-9, max_iter=10**6, random_state=0)
        svm.fit(X[sides != 0], sides[sides != 0])
        np.testing.assert_allclose(coef, svm.coef_[0], atol=1e-3)
        np.testing.assert_allclose(intercept, svm.intercept_[0], atol=1e-3)


def test_performance_by_hand():
    said = np.array([[1, 1], [1, 0], [0, 0]], dtype=bool)  # instances x codes
    candidates = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=bool)
    codes = np.array([[1, 0, 0], [1, 0, 1]], dtype=bool)
    # Code 0 is right about class 0 twice of two, about class 1 once of two; code 1 once of
    # two about class 0, and twice of two about class 1. Class 2 is never a candidate.
    np.testing.assert_allclose(
        pl_ecoc._performance(said, candidates, codes), [[2 / 3, 1 / 3], [1 / 3, 2 / 3], [0, 0]]
    )
    # Both codes are wrong about class 1, so they count alike.
    np.testing.assert_allclose(
        pl_ecoc._performance(said[:1], candidates[2:], codes), [[0, 0], [1 / 2, 1 / 2], [0, 0]]
    )


@pytest.mark.parametrize("decoding", ["agreement", "loss"])
def test_decoding_against_a_plain_transcription(rng, decoding):
    X, S = make_data(rng, 4)
    model = PlEcoc(decoding=decoding, random_state=0).fit(X, S)
    values = X @ model.coef_.T + model.intercept_
    m = np.where(model.codes_.T, 1, -1)
    g = np.zeros(m.shape)
    for y, c in product(*map(range, m.shape)):
        g[y, c] = np.mean(np.sign(values[S[:, y], c]) == m[y, c])
    g /= g.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.performance_, g)
    merit = np.zeros((len(X), 4))
    for i, y, c in product(*map(range, (len(X), *m.shape))):
        sign = 1 if decoding == "agreement" else -1
        merit[i, y] += g[y, c] * np.exp(sign * m[y, c] * values[i, c])
    merit = merit if decoding == "agreement" else 1 / merit
    expected = merit / merit.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    np.testing.assert_array_equal(model.transduction_, np.where(S, merit, -1).argmax(axis=1))


def test_loss_finds_the_classes(rng):
    X, S = make_data(rng, 5, n=400)
    singles = S.sum(axis=1) == 1
    model = PlEcoc(decoding="loss", random_state=0).fit(X, S)
    assert model.score(X[singles], S[singles].argmax(axis=1)) > 0.9


@pytest.mark.parametrize("decoding", ["agreement", "loss"])
def test_far_away_is_still_a_number(rng, decoding):
    X, S = make_data(rng, 4)
    proba = PlEcoc(decoding=decoding, random_state=0).fit(X, S).predict_proba(1e6 * X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("decoding", ["agreement", "loss"])
def test_a_class_never_a_candidate_is_never_predicted(rng, decoding):
    X, S = make_data(rng, 3)
    S = np.column_stack([S, np.zeros((len(S), 2), dtype=bool)])
    model = PlEcoc(decoding=decoding, random_state=0).fit(X, S)
    assert (model.predict_proba(X)[:, 3:] == 0).all()


def test_number_of_threads_changes_no_bit(rng):
    X, S = make_data(rng, 12, n=1200)
    one, two = (PlEcoc(random_state=0, n_jobs=n_jobs).fit(X, S) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    other = PlEcoc(random_state=1).fit(X, S)
    assert not np.array_equal(one.codes_, other.codes_)


def test_no_usable_code(rng):
    X = rng.random((40, 2))
    with pytest.raises(ValueError, match="none of 6 codes over 3 classes .* the best can use 0"):
        PlEcoc().fit(X, np.ones((40, 3)))
    S = ~np.eye(20, dtype=bool)[np.arange(40) % 20]
    with pytest.raises(
        ValueError, match=r"none of 300 codes over 20 classes can use min_share=0.1"
    ):
        PlEcoc(max_draws=300, random_state=0).fit(X, S)


def test_classes_that_no_code_tells_apart(rng):
    sets = [["a", "b"], ["c"]] * 10
    X = rng.random((20, 2))
    with pytest.warns(UserWarning, match=r"2 codes in use do not tell the classes \['a', 'b'\]"):
        PlEcoc(random_state=0).fit(X, sets)


def test_machines_that_do_not_converge(rng, monkeypatch):
    monkeypatch.setattr(pl_ecoc, "MAX_SOLVER_ITERATIONS", 1)
    with pytest.warns(ConvergenceWarning, match="^6 of 6 support vector machines did not") as seen:
        PlEcoc(random_state=0).fit(*make_data(rng, 3))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_codes": 0}, "n_codes must be a whole number, 1 or more; got 0"),
        ({"min_share": 1.5}, "min_share must be between 0 and 1; got 1.5"),
        ({"decoding": "vote"}, r"decoding must be one of \('agreement', 'loss'\); got 'vote'"),
        ({"C": 0}, "C must be over 0; got 0"),
        ({"max_draws": 0}, "max_draws must be a whole number, 1 or more; got 0"),
    ],
)
def test_bad_parameters(rng, parameters, message):
    with pytest.raises(ValueError, match=message):
        PlEcoc(**parameters).fit(*make_data(rng, 3))


def test_features_too_large_for_the_solver(rng):
    """Where it is not refused, the solver ends; twice as large in magnitude, it never would."""
    X, S = make_data(rng, 3)
    with pytest.raises(ValueError, match=r"features as large as 1e\+80 .* scale them"):
        PlEcoc(random_state=0).fit(1e80 * X / np.abs(X).max(), S)
    with pytest.raises(ValueError, match=r"features as large as 1e\+74 .* scale them"):
        PlEcoc(C=1e6, random_state=0).fit(1e74 * X / np.abs(X).max(), S)
    fine = PlEcoc(random_state=0).fit(1e70 * X / np.abs(X).max(), S)
    assert np.isfinite(fine.predict_proba(1e70 * X)).all()
