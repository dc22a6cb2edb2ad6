"""What every registered method must do; a new method is tested by being registered."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from demur import CandidateSets
from demur.methods import METHODS, method

# Small tables of the checks have fewer instances than a neighbourhood wants.
pytestmark = pytest.mark.filterwarnings("ignore:n_neighbors is .* training instances")


def quick(name):
    """A method as a test can afford it: small networks, few epochs, everything else as it is."""
    made = method(name)()
    small = {"n_epochs": 40, "learning_rate": 0.01, "hidden_layer_sizes": (32,), "n_networks": 2}
    known = made.get_params() if "n_epochs" in made.get_params() else {}
    return made.set_params(**{name: small[name] for name in small if name in known})


@parametrize_with_checks([quick(name) for name in METHODS])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(params=METHODS)
def model(request):
    made = quick(request.param)
    return made.set_params(random_state=0) if "random_state" in made.get_params() else made


@pytest.fixture
def data(rng):
    """Three clouds, an indicator of their label with wrong labels beside it, new points."""
    y = rng.integers(3, size=150)
    X = rng.normal(size=(150, 4)) + 4 * np.eye(3, 4)[y]
    S = rng.random((150, 3)) < 0.25
    S[np.arange(150), y] = True
    return X[:120], S[:120], X[120:], y[120:]


def test_keeps_the_contract(model, data):
    X, S, new, y = data
    assert model.fit(X, S) is model
    proba, score = model.predict_proba(new), model.accept_score(new)
    predicted, decided = model.predict(new), model.decide(new)
    assert proba.shape == (30, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba >= 0).all()
    assert score.shape == (30,)
    assert np.isfinite(score).all()
    assert np.isin(predicted, model.classes_).all()
    assert (proba[np.arange(30), predicted] == proba.max(axis=1)).all()
    assert np.mean(predicted == y) > 0.8
    assert isinstance(decided, np.ma.MaskedArray)
    np.testing.assert_array_equal(decided.mask, ~(score > model.accept_threshold_))
    np.testing.assert_array_equal(decided.data, predicted)
    assert model.decide(new, threshold=-np.inf).count() == 30
    assert model.decide(new, threshold=np.inf).count() == 0
    limit = np.median(score)
    np.testing.assert_array_equal(model.decide(new, threshold=limit).mask, score <= limit)
    with pytest.raises(ValueError, match="threshold is NaN"):
        model.decide(new, threshold=np.nan)


def test_training_labels_are_candidates(model, data):
    X, S, _, _ = data
    labels = model.fit(X, S).transduction_
    assert labels.shape == (120,)
    assert S[np.arange(120), labels].all()


def test_every_form_of_candidates_gives_the_same_model(model, data):
    X, S, new, _ = data
    names = np.array(["x", "y", "z"])
    expected = clone(model).fit(X, S).predict_proba(new)
    forms = {
        "0/1": S.astype(int),
        "sparse": sp.csr_array(S),
        "frame": pd.DataFrame(S, columns=names),
        "lists": [np.flatnonzero(row).tolist() for row in S],
        "names": [set(names[row]) for row in S],
        "parsed": CandidateSets(S),
    }
    for form, candidates in forms.items():
        fitted = clone(model).fit(X, candidates)
        np.testing.assert_array_equal(fitted.predict_proba(new), expected, err_msg=form)
    named = clone(model).fit(pd.DataFrame(X, columns=list("abcd")), forms["frame"])
    assert named.classes_.tolist() == ["x", "y", "z"]
    assert named.feature_names_in_.tolist() == list("abcd")
    assert set(named.predict(pd.DataFrame(new, columns=list("abcd")))) <= {"x", "y", "z"}
    assert set(named.transduction_) <= {"x", "y", "z"}
    assert set(named.decide(pd.DataFrame(new, columns=list("abcd"))).compressed()) <= set("xyz")


def test_singletons_are_ordinary_supervised_learning(model, data):
    X, S, new, y = data
    labels = S.argmax(axis=1)
    vector = clone(model).fit(X, labels)
    sets = clone(model).fit(X, np.eye(3, dtype=bool)[labels])
    np.testing.assert_array_equal(vector.predict_proba(new), sets.predict_proba(new))
    assert vector.score(new, y) == np.mean(vector.predict(new) == y)
    np.testing.assert_array_equal(vector.transduction_, labels)


def test_score_is_the_share_inside_the_sets(model, data):
    X, S, new, y = data
    model.fit(X, S)
    predicted = model.predict(new)
    wide = np.eye(3, dtype=bool)[y]
    wide[:, 0] = True
    assert model.score(new, wide) == np.mean((predicted == y) | (predicted == 0))
    assert model.score(new, CandidateSets(wide)) == model.score(new, sp.csr_array(wide))
    with pytest.raises(ValueError, match="S has 4 columns but there are 3 classes"):
        model.score(new, np.ones((30, 4)))


def test_same_seed_same_bits(model, data):
    X, S, new, _ = data
    for parameters in ({}, {"n_jobs": 1}, {"n_jobs": 2}):
        known = {k: v for k, v in parameters.items() if k in model.get_params()}
        if "random_state" in model.get_params():
            known["random_state"] = 7
        one = clone(model).set_params(**known).fit(X, S)
        two = clone(model).set_params(**known).fit(X, S)
        np.testing.assert_array_equal(one.predict_proba(new), two.predict_proba(new))
        np.testing.assert_array_equal(one.predict(new), two.predict(new))


def test_works_inside_scikit_learn(model, data):
    X, S, new, _ = data
    sets = CandidateSets(S)
    pipeline = make_pipeline(StandardScaler(), model)
    inside = cross_val_score(pipeline, X, sets, cv=3)
    assert (inside > 0.8).all()
    name = next(p for p in ("n_neighbors", "random_state") if p in model.get_params())
    search = GridSearchCV(clone(model), {name: [3, 5]}, cv=3).fit(X, S)
    assert search.best_score_ > 0.8
    assert search.predict(new).shape == (30,)
    np.testing.assert_array_equal(
        cross_val_predict(model, X, S, cv=3), cross_val_predict(model, X, sp.csr_array(S), cv=3)
    )
    assert cross_val_predict(model, X, sets, cv=3, method="predict_proba").shape == (120, 3)
    assert clone(pipeline).fit(X, S).predict(new).shape == (30,)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_works_in_parallel(model, data, backend):
    X, S, _, _ = data
    expected = cross_val_predict(model, X, S, cv=4)
    with parallel_backend(backend, n_jobs=2):
        found = cross_val_predict(model, X, S, cv=4, n_jobs=2)
    np.testing.assert_array_equal(found, expected)


def test_pickle_keeps_everything(model, data):
    X, S, new, _ = data
    model.fit(X, S)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(again.transduction_, model.transduction_)


def test_a_model_of_another_version_says_so(model, data, monkeypatch):
    X, S, new, _ = data
    model.fit(X, S)
    monkeypatch.setattr("demur.base.__version__", "0.0.9")
    old = pickle.dumps(model)
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="saved by demur 0.0.9 and is loaded by"):
        again = pickle.loads(old)
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(model))


# --------------------------------------------------------------------------- bad input


def refuse(model, X, S, message, error=ValueError):
    with pytest.raises(error, match=message):
        model.fit(X, S)
    assert "classes_" not in vars(model)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "Input X contains NaN at row 7, column 2 .*finite numbers"),
        (np.inf, "Input X contains infinity at row 7, column 2 .*finite numbers"),
        (-np.inf, "Input X contains infinity at row 7, column 2"),
    ],
)
def test_features_that_are_not_finite(model, data, value, message):
    X, S, new, _ = data
    bad = X.copy()
    bad[7, 2] = value
    refuse(model, bad, S, message)
    model.fit(X, S)
    new = new.copy()
    new[7, 2] = value
    with pytest.raises(ValueError, match=message):
        model.predict(new)


def test_features_that_are_text(model, data):
    X, S, _, _ = data
    text = X.astype(object)
    text[3, 1] = "blue"
    refuse(model, text, S, "X holds 'blue' at row 3, column 1; encode such columns")
    refuse(model, pd.DataFrame(text), S, "X holds 'blue' at row 3, column 1")
    refuse(model, X.astype(str).astype("U3") + "?", S, "could not convert string to float")
    fine = clone(model).fit(X.astype(object), S)
    np.testing.assert_array_equal(fine.predict(X), clone(model).fit(X, S).predict(X))


def test_tables_of_the_wrong_shape(model, data):
    X, S, new, _ = data
    refuse(model, X, S[:100], "X has 120 rows but there are 100 candidate sets")
    refuse(model, X[:0], S[:0], "0 sample")
    refuse(model, X[:, :0], S, "0 feature")
    refuse(model, X[:, 0], S, "Expected 2D array, got 1D array")
    refuse(model, X[:1], S[:1], "at least 2 training instances, got 1 sample")
    refuse(model, sp.csr_array(X), S, "[Ss]parse", error=TypeError)
    model.fit(X, S)
    with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 4 features"):
        model.predict(new[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(new[:0])


def test_candidates_that_are_no_candidates(model, data):
    X, S, _, _ = data
    refuse(model, X, np.zeros(120), "at least 2 classes to choose from, but there is only 1 class")
    empty = S.copy()
    empty[[5, 9]] = False
    refuse(model, X, empty, "candidate set is empty in row 5 .2 such rows.")
    odd = S.astype(float)
    odd[4, 1] = 2
    refuse(model, X, odd, "S holds 2.0 at row 4, column 1")
    odd[4, 1] = np.nan
    refuse(model, X, odd, "S holds nan at row 4, column 1")
    refuse(model, X, None, "target y is None")
    refuse(model, X, X[:, 0], "Unknown label type")
    with pytest.raises(ValueError, match="no class|not a class|do not match classes"):
        CandidateSets(pd.DataFrame(S, columns=["x", "y", "z"]), classes=["x", "y", "w"])


@pytest.mark.parametrize("value", ["many", np.nan, (1, 2), {"a": 1}])
def test_a_parameter_of_the_wrong_kind_is_named(model, data, value):
    X, S, new, _ = data
    free = {"random_state", "n_jobs", "verbose", "network", "image_shape"}
    for name in set(model.get_params()) - free:
        if name == "hidden_layer_sizes" and value == (1, 2):
            continue  # which is what it wants
        with pytest.raises(ValueError, match=f"{name} .*({re.escape(repr(value))}|cannot be used)"):
            clone(model).set_params(**{name: value}).fit(X, S).predict(new)


def test_asking_before_fitting(model, data):
    new = data[2]
    for ask in (model.predict, model.predict_proba, model.accept_score, model.decide):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask(new)
    with pytest.raises(NotFittedError):
        _ = model.transduction_
    assert not hasattr(model, "transduction_")


def test_a_class_that_is_never_a_candidate_is_never_predicted(model, data):
    X, S, new, _ = data
    wide = np.column_stack([S, np.zeros(120, dtype=bool)])
    model.fit(X, wide)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.predict_proba(new).shape == (30, 4)
    assert 3 not in model.predict(new)
