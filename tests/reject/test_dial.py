import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import shuffle

from demur import DstPll, PlKnn, RejectClassifier, TradeOffDisplay
from demur.noise import class_dependent_noise


@pytest.fixture(scope="module")
def digits():
    # They come writer by writer, and those of one writer are alike: so they are shuffled.
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    return X, y, class_dependent_noise(y[:400], share=0.7, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        DstPll(random_state=0),
        PlKnn(),
        make_pipeline(MinMaxScaler(), PlKnn()),
        GridSearchCV(PlKnn(), {"n_neighbors": [5, 10]}, cv=2),
        make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=50, tol=1e-2)),
        RandomForestClassifier(30, random_state=0),
    ],
    ids=["dst-pll", "pl-knn", "pipeline", "search", "logistic", "forest"],
)
def test_any_classifier_with_any_dial(digits, estimator):
    X, y, S = digits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ties, and logistic regression stopped early
        for dial in ({"coverage": 0.6}, {"cost": 0.2}, {"max_risk": 0.2}):
            model = RejectClassifier(estimator, **dial, cv=2, random_state=0)
            model.fit(X[:400], S)
            if "max_risk" in dial:
                plan = model.plan(X[400:1000], 120)
                model.certify(X[400:1000][plan.rows], y[400:1000][plan.rows])
            if "coverage" in dial:
                model.calibrate(X[400:1000])
                share = 1 - model.decide(X[1000:]).mask.mean()
                assert share == pytest.approx(0.6, abs=0.15)
            decided = model.decide(X[1000:])
            assert decided.count() > 100
            kept_accuracy = (decided == y[1000:]).mean()
            assert kept_accuracy >= (model.predict(X[1000:]) == y[1000:]).mean()
            assert np.array_equal(
                ~decided.mask, model.accept_score(X[1000:]) > model.accept_threshold_
            )
            assert model.predict_proba(X[1000:]).sum(axis=1) == pytest.approx(1)
    assert not hasattr(estimator, "classes_")  # it was cloned


def test_a_frozen_model_is_not_trained(digits):
    X, y, S = digits
    trained = PlKnn().fit(X[:400], S)
    model = RejectClassifier(FrozenEstimator(trained), coverage=0.5).fit(X[400:900])
    assert model.promise_.holds
    assert np.array_equal(model.predict(X[900:]), trained.predict(X[900:]))
    with pytest.raises(ValueError, match="cost is set by candidate sets; give y"):
        RejectClassifier(FrozenEstimator(trained), cost=0.1).fit(X[400:900])
    with pytest.raises(ValueError, match="X has 500 rows but there are 400 candidate sets"):
        RejectClassifier(FrozenEstimator(trained), cost=0.1).fit(X[400:900], y[400:800])
    supervised = LogisticRegression(max_iter=5000, tol=1e-2).fit(X[:400], y[:400])
    RejectClassifier(FrozenEstimator(supervised), cost=0.1).fit(X[400:900], y[400:900])


def test_one_set_of_judgements_serves_several_dials(digits):
    X, _, S = digits
    first = RejectClassifier(PlKnn(), cost=0.2, random_state=0).fit(X[:400], S)
    frozen = FrozenEstimator(first.estimator_)
    again = RejectClassifier(frozen, cost=0.2).adopt(first.out_of_fold_, X[:400])
    assert again.accept_threshold_ == first.accept_threshold_
    with pytest.raises(ValueError, match="X has 399 rows, and 400 are judged"):
        RejectClassifier(frozen, cost=0.2).adopt(first.out_of_fold_, X[:399])
    with pytest.raises(ValueError, match=r"adopt\(\) is for a trained estimator"):
        RejectClassifier(PlKnn(), cost=0.2).adopt(first.out_of_fold_, X[:400])
    narrow = first.out_of_fold_._replace(proba=first.out_of_fold_.proba[:, :3])
    with pytest.raises(ValueError, match="judgements are of 3 classes, and the estimator knows 10"):
        RejectClassifier(frozen, cost=0.2).adopt(narrow, X[:400])


def test_clone_pickle_and_pipeline(digits):
    X, y, S = digits
    model = RejectClassifier(PlKnn(), cost=0.2, random_state=0)
    copy = clone(model.fit(X[:400], S))
    assert copy.get_params()["cost"] == 0.2
    with pytest.raises(NotFittedError):
        copy.predict(X)
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.decide(X[400:]).mask, model.decide(X[400:]).mask)
    line = make_pipeline(MinMaxScaler(), RejectClassifier(PlKnn(), cost=0.2)).fit(X[:400], S)
    assert line.score(X[400:], y[400:]) > 0.9
    assert TradeOffDisplay.from_estimator(line, X[400:], y[400:]).name == "RejectClassifier"


def test_same_seed_same_model(digits):
    X, _, S = digits
    forest = RandomForestClassifier(10, random_state=0)
    models = [
        RejectClassifier(forest, cost=0.2, cv=2, random_state=s).fit(X[:400], S) for s in (1, 1, 2)
    ]
    thresholds = [m.accept_threshold_ for m in models]
    assert np.array_equal(models[0].out_of_fold_.accept, models[1].out_of_fold_.accept)
    assert not np.array_equal(models[0].out_of_fold_.accept, models[2].out_of_fold_.accept)
    assert thresholds[0] == thresholds[1]


@pytest.mark.parametrize(
    ("dial", "message"),
    [
        ({}, "turn exactly one dial, coverage, cost or max_risk; none is set"),
        ({"coverage": 0.5, "cost": 0.1}, "coverage and cost are set"),
        ({"cost": 0.1, "max_risk": 0.1}, "cost and max_risk are set"),
        ({"coverage": 0}, "coverage must be over 0 and at most 1; got 0"),
        ({"coverage": 1.1}, "coverage must be over 0 and at most 1; got 1.1"),
        ({"coverage": float("nan")}, "coverage must be over 0 and at most 1; got nan"),
        ({"coverage": "80%"}, "coverage must be a number over 0 and at most 1; got '80%'"),
        ({"coverage": True}, "coverage must be a number"),
        ({"cost": 0}, "cost must be between 0 and 1"),
        ({"cost": 1}, "cost must be between 0 and 1"),
        ({"max_risk": 0}, "max_risk must be between 0 and 1"),
        ({"max_risk": 1.2}, "max_risk must be between 0 and 1"),
        ({"max_risk": 0.1, "confidence": 1}, "confidence must be between 0 and 1"),
        ({"max_risk": 0.1, "attempts": 0}, "attempts"),
        ({"coverage": 0.5, "ties": "random"}, "ties must be 'drawn' or 'whole'; got 'random'"),
    ],
)
def test_dials_out_of_range(told, draw, dial, message):
    with pytest.raises(ValueError, match=message):
        RejectClassifier(told, **dial).fit(*draw(50)[::2])


def test_other_bad_inputs(told, draw):
    sample = draw(50)
    model = RejectClassifier(told, cost=0.1)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(sample.X)
    with pytest.raises(ValueError, match="X has 49 rows but there are 50 candidate sets"):
        model.fit(sample.X[:49], sample.S)
    with pytest.raises(ValueError, match="X has 50 rows but there are 3 ids"):
        model.fit(sample.X, sample.S, ids=[1, 2, 3])
    with pytest.raises(ValueError, match="X has 50 rows but there are 3 groups"):
        model.fit(sample.X, sample.S, groups=[1, 2, 3])
    model.fit(sample.X, sample.S)
    with pytest.raises(ValueError, match="threshold is NaN"):
        model.decide(sample.X, threshold=np.nan)
    assert model.decide(sample.X, threshold=-np.inf).count() == 50
    with pytest.raises(ValueError, match="no max_risk is set"):
        model.certify(sample.X, sample.y)


def test_score_is_the_share_inside_the_sets(told, draw):
    sample = draw(200)
    model = RejectClassifier(told, cost=0.1).fit(sample.X, sample.S)
    assert model.score(sample.X, sample.y) == np.mean(sample.X[:, 2] == sample.y)
    inside = sample.S[np.arange(200), sample.X[:, 2].astype(int)]
    assert model.score(sample.X, sample.S) == inside.mean()
