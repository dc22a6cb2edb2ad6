"""Metrics against exact arithmetic over all orders, all thresholds, and scikit-learn."""

import pickle
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import isnan

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from demur.base import Judgement, PartialLabelClassifier
from demur.candidates import CandidateSets
from demur.metrics import (
    accepted_accuracy,
    accepted_accuracy_scorer,
    augrc,
    aurc,
    candidate_scorer,
    coverage,
    coverage_at_risk,
    coverage_scorer,
    excess_aurc,
    judge,
    negative_aurc_scorer,
    negative_reject_risk_scorer,
    reject_risk,
    risk_at_coverage,
    risk_coverage_curve,
)


class NearestMean(PartialLabelClassifier):
    """The class whose mean is nearest; every candidate has an equal share of an instance."""

    def __init__(self, scale=1.0, threshold=0.8):
        self.scale = scale
        self.threshold = threshold

    def _fit(self, X, sets):
        self._X, self._held = X, sets.to_indicator()
        weights = self._held / self._held.sum(axis=1, keepdims=True)
        self.means_ = weights.T @ X / weights.sum(axis=0)[:, None]
        self.accept_threshold_ = self.threshold

    def _proba(self, X):
        distances = ((X[:, None, :] - self.means_) ** 2).sum(axis=2)
        odds = np.exp(-self.scale * (distances - distances.min(axis=1, keepdims=True)))
        return odds / odds.sum(axis=1, keepdims=True)

    def _judge(self, X):
        return Judgement.of_proba(self._proba(X))

    def _transduce(self):
        return np.where(self._held, self._proba(self._X), -1.0).argmax(axis=1)


@pytest.fixture
def blobs(rng):
    """Features, true labels, and candidate sets with one wrong label for half the rows."""
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 1.5 * np.column_stack([y == 0, y == 1])
    held = np.eye(3, dtype=bool)[y] | (
        np.eye(3, dtype=bool)[(y + 1) % 3] & (np.arange(90) < 45)[:, None]
    )
    return X, y, held


def labels_from(wrong):
    """True and predicted labels that differ where said."""
    wrong = np.asarray(wrong, dtype=int)
    return np.zeros_like(wrong), wrong


tied = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=6)
longer = st.lists(st.tuples(st.booleans(), st.integers(-3, 8)), min_size=1, max_size=40)


def orders(scores):
    """Every order of the instances from the safest on."""
    for order in permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            yield order


def running_errors(wrong, order):
    errors = [0]
    for place in order:
        errors.append(errors[-1] + wrong[place])
    return errors


def exact_aurc(wrong, order):
    errors = running_errors(wrong, order)
    n = len(wrong)
    return sum(Fraction(errors[k], k) for k in range(1, n + 1)) / n


def exact_augrc(wrong, order):
    errors = running_errors(wrong, order)
    return sum(Fraction(a + b, 2) for a, b in pairwise(errors)) / len(wrong) ** 2


# ---------------------------------------------------------------------- decisions


def test_decisions_by_hand():
    y_true = ["ant", "bee", "cat", "cat", "bee"]
    y_pred = ["ant", "bee", "ant", "cat", "ant"]
    accepted = [True, False, True, True, False]
    assert coverage(accepted) == 3 / 5
    assert accepted_accuracy(y_true, y_pred, accepted) == 2 / 3
    assert reject_risk(y_true, y_pred, accepted, lam=0.5) == pytest.approx(1 / 5 + 0.5 * 2 / 5)
    assert reject_risk(y_true, y_pred, accepted, lam=0.5, reading="code") == pytest.approx(
        1 / 3 + 0.5 * 2 / 5
    )


def test_a_masked_array_tells_what_is_accepted(rng):
    y_true, y_pred = rng.integers(3, size=(2, 50))
    accepted = rng.random(50) < 0.5
    decided = np.ma.MaskedArray(y_pred, mask=~accepted)
    assert coverage(decided) == coverage(accepted)
    assert accepted_accuracy(y_true, decided) == accuracy_score(y_true[accepted], y_pred[accepted])
    assert reject_risk(y_true, decided, lam=0.2) == reject_risk(y_true, y_pred, accepted, lam=0.2)
    everything = np.ma.MaskedArray(y_pred)
    assert coverage(everything) == 1.0
    assert accepted_accuracy(y_true, everything) == accuracy_score(y_true, y_pred)


def test_nothing_accepted():
    y, none = [0, 1], [False, False]
    assert coverage(none) == 0.0
    assert isnan(accepted_accuracy(y, y, none))
    assert reject_risk(y, y, none, lam=0.3) == 0.3
    assert isnan(reject_risk(y, y, none, lam=0.3, reading="code"))


def test_withheld_predictions_need_no_label():
    y_pred = np.array(["a", None, "b"], dtype=object)
    assert accepted_accuracy(["a", "b", "a"], y_pred, [True, False, True]) == 0.5


# ---------------------------------------------------------------------- curve


@settings(deadline=None)
@given(longer)
def test_every_threshold_gives_its_point(rows):
    wrong, scores = (np.array(column) for column in zip(*rows, strict=True))
    curve = risk_coverage_curve(*labels_from(wrong), scores)
    for share, risk, threshold in zip(*curve, strict=True):
        accepted = scores > threshold
        assert share == accepted.mean()
        assert risk == wrong[accepted].mean()
    # All that thresholds can reach is there, once, and in order.
    reachable = {(scores > t).mean() for t in [-np.inf, *scores]} - {0.0}
    assert curve.coverages.tolist() == sorted(reachable)


@settings(deadline=None)
@given(longer, st.fractions(0, 1, max_denominator=40))
def test_limits_against_all_thresholds(rows, limit):
    wrong, scores = (np.array(column) for column in zip(*rows, strict=True))
    n = len(wrong)
    points = [
        (Fraction(int(kept.sum()), n), Fraction(int(wrong[kept].sum()), int(kept.sum())))
        for kept in (scores >= score for score in scores)
    ]
    least = min(share for share, _ in points if share >= limit)
    given_labels = labels_from(wrong)
    assert coverage_at_risk(*given_labels, scores, risk=float(limit)) == float(
        max((share for share, risk in points if risk <= limit), default=0)
    )
    assert risk_at_coverage(*given_labels, scores, coverage=float(limit)) == float(
        next(risk for share, risk in points if share == least)
    )


def test_limits_forgive_rounding():
    wrong, scores = np.arange(10) == 9, -np.arange(10)
    assert 1 - 0.9 < 0.1
    assert coverage_at_risk(*labels_from(wrong), scores, risk=1 - 0.9) == 1.0
    assert 0.1 + 0.2 > 0.3
    assert risk_at_coverage(*labels_from(np.arange(10) == 3), scores, coverage=0.1 + 0.2) == 0.0


# ---------------------------------------------------------------------- areas


@settings(deadline=None)
@given(tied)
def test_areas_are_means_over_all_orders(rows):
    wrong, scores = zip(*rows, strict=True)
    possible = list(orders(scores))
    given_labels = labels_from(wrong)
    mean = sum(exact_aurc(wrong, order) for order in possible) / len(possible)
    assert aurc(*given_labels, scores) == pytest.approx(float(mean), abs=1e-14)
    mean_generalized = sum(exact_augrc(wrong, order) for order in possible) / len(possible)
    assert augrc(*given_labels, scores) == pytest.approx(float(mean_generalized), abs=1e-14)


@settings(deadline=None)
@given(tied)
def test_excess_is_above_the_best_of_all_orders(rows):
    wrong, scores = zip(*rows, strict=True)
    best = min(exact_aurc(wrong, order) for order in permutations(range(len(wrong))))
    given_labels = labels_from(wrong)
    excess = excess_aurc(*given_labels, scores)
    assert excess == pytest.approx(aurc(*given_labels, scores) - float(best), abs=1e-14)
    assert excess >= 0.0


def test_excess_is_nought_for_the_best_order():
    for n_right, n_wrong in product((0, 1, 7, 300), (0, 1, 6, 299)):
        wrong = np.repeat([False, True], [n_right, n_wrong])
        if len(wrong):
            assert excess_aurc(*labels_from(wrong), -np.arange(len(wrong))) == 0.0


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_augrc_in_terms_of_auroc(rng, levels):
    wrong = rng.random(400) < 0.3
    scores = rng.integers(levels, size=400) - wrong
    accuracy = 1 - wrong.mean()
    auroc = roc_auc_score(~wrong, scores)
    expected = (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert augrc(*labels_from(wrong), scores) == pytest.approx(expected, rel=1e-12)


def test_areas_know_neither_the_order_of_rows_nor_the_scale_of_scores(rng):
    wrong, scores = rng.random(500) < 0.4, rng.integers(30, size=500).astype(float)
    shuffled = rng.permutation(500)
    for area in (aurc, augrc, excess_aurc):
        value = area(*labels_from(wrong), scores)
        assert area(*labels_from(wrong[shuffled]), scores[shuffled]) == value
        assert area(*labels_from(wrong), np.exp(scores) - 7) == value


def test_a_million_instances_of_one_score():
    wrong = np.arange(1_000_000) % 8 == 0
    same = np.zeros(len(wrong))
    assert aurc(*labels_from(wrong), same) == pytest.approx(1 / 8, rel=1e-12)
    assert augrc(*labels_from(wrong), same) == 1 / 16
    assert [values.tolist() for values in risk_coverage_curve(*labels_from(wrong), same)] == [
        [1.0],
        [1 / 8],
        [-np.inf],
    ]


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("y_true", "y_pred", "score", "message"),
    [
        ([], [], [], "y_true is empty"),
        ([0, 1], [0], [0.1, 0.2], "lengths differ: y_true 2, y_pred 1"),
        ([0, 1], [0, 1], [0.1], "lengths differ: y_true 2, score 1"),
        ([0, 1], [0, 1], [0.1, np.nan], "score is nan at row 1"),
        ([0, 1], [0, 1], [-np.inf, 0.0], "score is -inf at row 0"),
        ([0, 1], [0, 1], ["a", "b"], "score must hold numbers"),
        ([0, 1], [0, 1], [[0.1], [0.2]], "score must be one-dimensional"),
        ([[0], [1]], [0, 1], [0.1, 0.2], "y_true must be one-dimensional"),
        ([0, np.nan], [0, 1], [0.1, 0.2], "y_true holds no label .* at row 1"),
        ([0, 1], np.array([None, 1], dtype=object), [0.1, 0.2], "y_pred holds no label"),
        (["0", "1"], [0, 1], [0.1, 0.2], "labels such as '0' .* such as 0"),
        ([0, 1], np.ma.MaskedArray([0, 1], mask=[True, False]), [0.1, 0.2], "y_pred is masked"),
    ],
)
@pytest.mark.parametrize("metric", [risk_coverage_curve, aurc, excess_aurc, augrc])
def test_bad_curves(metric, y_true, y_pred, score, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, y_pred, score)


@pytest.mark.parametrize(
    ("y_pred", "accepted", "message"),
    [
        ([0, 1], None, "which predictions are accepted"),
        ([0, 1], [0.9, 0.2], "accepted must be booleans"),
        ([0, 1], [True], "lengths differ"),
        (np.ma.MaskedArray([0, 1], mask=[True, False]), [True, True], "leave accepted out"),
        (["0", "1"], [True, True], "none can be right"),
        (np.array([None, 1], dtype=object), [True, True], "y_pred holds no label"),
    ],
)
def test_bad_decisions(y_pred, accepted, message):
    with pytest.raises(ValueError, match=message):
        accepted_accuracy([0, 1], y_pred, accepted)
    with pytest.raises(ValueError, match=message):
        reject_risk([0, 1], y_pred, accepted, lam=0.1)


def test_bad_parameters():
    rows = ([0, 1], [0, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match="risk is a share"):
        coverage_at_risk(*rows, risk=5)
    with pytest.raises(ValueError, match="coverage is a share"):
        risk_at_coverage(*rows, coverage=np.nan)
    for lam in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="lam is the cost of a reject"):
            reject_risk([0], [0], [True], lam=lam)
    with pytest.raises(ValueError, match="reading must be 'text' or 'code'"):
        negative_reject_risk_scorer(0.1, reading="paper")


# ---------------------------------------------------------------------- scorers

SCORERS = {
    "accuracy": accepted_accuracy_scorer,
    "coverage": coverage_scorer,
    "aurc": negative_aurc_scorer,
    "risk": negative_reject_risk_scorer(0.2),
    "risk in code": negative_reject_risk_scorer(0.2, reading="code"),
    "inside": candidate_scorer,
}


def by_functions(clf, X, y):
    """What the scorers should give for true labels, by the functions over arrays."""
    decided = clf.decide(X)
    return {
        "accuracy": accepted_accuracy(y, decided),
        "coverage": coverage(decided),
        "aurc": -aurc(y, clf.predict(X), clf.accept_score(X)),
        "risk": -reject_risk(y, decided, lam=0.2),
        "risk in code": -reject_risk(y, decided, lam=0.2, reading="code"),
        "inside": accuracy_score(y, clf.predict(X)),
    }


@pytest.mark.parametrize("names", [[0, 1, 2], ["ant", "bee", "cat"]])
def test_scorers_with_true_labels(blobs, names):
    X, y, held = blobs
    clf = NearestMean().fit(X, CandidateSets(held, classes=names))
    truth = np.array(names)[y]
    # An instance at the threshold itself is not accepted.
    clf.accept_threshold_ = float(np.sort(clf.accept_score(X))[45])
    given_scores = {name: scorer(clf, X, truth) for name, scorer in SCORERS.items()}
    assert given_scores == pytest.approx(by_functions(clf, X, truth))
    assert given_scores["coverage"] == 44 / 90


def test_scorers_with_candidate_sets_count_what_is_outside(blobs):
    X, _, held = blobs
    clf = NearestMean().fit(X, held)
    outside = ~held[np.arange(len(X)), clf.predict(X)]
    # Labels that are right exactly where the prediction is inside its set.
    stand_in = np.where(outside, (clf.predict(X) + 1) % 3, clf.predict(X))
    for y in (held, CandidateSets(held), CandidateSets(held).to_lists()):
        given_scores = {name: scorer(clf, X, y) for name, scorer in SCORERS.items()}
        assert given_scores == pytest.approx(by_functions(clf, X, stand_in))
    assert candidate_scorer(clf, X, held) == clf.score(X, held)


def test_an_indicator_has_its_columns_in_the_order_of_the_classes(blobs):
    X, _, held = blobs
    sets = CandidateSets(held, classes=["cat", "ant", "bee"])
    clf = NearestMean().fit(X, sets)
    for y in (held, sp.csr_array(held), pd.DataFrame(held, columns=sets.classes)):
        for scorer in SCORERS.values():
            assert scorer(clf, X, y) == scorer(clf, X, sets)


def test_a_label_never_seen_in_a_fold_is_outside(blobs):
    X, y, _ = blobs
    clf = NearestMean().fit(X, y)
    assert candidate_scorer(clf, X[y == 0], y[y == 0]) == np.mean(clf.predict(X[y == 0]) == 0)


@pytest.mark.parametrize("backend_jobs", [None, 2])
def test_scorers_in_cross_validation(blobs, backend_jobs):
    X, _, held = blobs
    sets, folds = CandidateSets(held), KFold(3, shuffle=True, random_state=0)
    results = cross_validate(
        NearestMean(), X, sets, cv=folds, scoring=SCORERS, n_jobs=backend_jobs, error_score="raise"
    )
    for fold, (train, test) in enumerate(folds.split(X)):
        clf = NearestMean().fit(X[train], sets[train])
        for name, scorer in SCORERS.items():
            assert results[f"test_{name}"][fold] == scorer(clf, X[test], sets[test])


def test_scorers_in_a_search_over_a_pipeline(blobs):
    X, y, held = blobs
    pipeline = make_pipeline(StandardScaler(), NearestMean())
    search = GridSearchCV(
        pipeline,
        {"nearestmean__scale": [0.01, 1.0], "nearestmean__threshold": [0.5, 0.8]},
        scoring=SCORERS,
        refit="risk",
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    )
    # Where nothing is accepted there is no accuracy, which scikit-learn warns of.
    with pytest.warns(UserWarning, match="test scores are non-finite"):
        search.fit(X, held)
    means = search.cv_results_["mean_test_risk"]
    assert search.best_index_ == means.argmax()
    assert len(set(means)) > 1
    method = search.best_estimator_[-1]
    scaled = search.best_estimator_[0].transform(X)
    for scorer in SCORERS.values():
        assert scorer(search, X, y) == scorer(method, scaled, y)


def test_one_scorer_as_scoring(blobs):
    X, y, _ = blobs
    scores = cross_val_score(NearestMean(), X, y, cv=KFold(3), scoring=negative_aurc_scorer)
    assert scores.shape == (3,)
    assert (scores <= 0).all()


def test_better_is_greater(rng, blobs):
    X, y, _ = blobs
    clf = NearestMean().fit(X, y)
    noise = NearestMean().fit(X, rng.permutation(y))
    for name in ("aurc", "risk", "inside"):
        assert SCORERS[name](clf, X, y) > SCORERS[name](noise, X, y)


def test_scorers_can_be_pickled(blobs):
    X, y, _ = blobs
    clf = NearestMean().fit(X, y)
    for scorer in SCORERS.values():
        assert pickle.loads(pickle.dumps(scorer))(clf, X, y) == scorer(clf, X, y)


def test_judge_finds_the_method(blobs):
    X, y, _ = blobs
    alone = Pipeline([("only", NearestMean())]).fit(X, y)
    judged = judge(alone, X)
    assert judged.method is alone[-1]
    np.testing.assert_array_equal(judged.predicted, alone.predict(X))
    np.testing.assert_array_equal(judged.score, judged.method.accept_score(X))


def test_bad_scoring(blobs):
    X, y, _ = blobs
    clf = NearestMean().fit(X, y)
    with pytest.raises(ValueError, match="DecisionTreeClassifier gives no accept scores"):
        coverage_scorer(DecisionTreeClassifier().fit(X, y), X, y)
    for unfitted in (NearestMean(), make_pipeline(StandardScaler(), NearestMean())):
        with pytest.raises(NotFittedError):
            coverage_scorer(unfitted, X, y)
    with pytest.raises(ValueError, match="y is None"):
        candidate_scorer(clf, X, None)
    with pytest.raises(ValueError, match="X has 90 rows but y has 89"):
        negative_aurc_scorer(clf, X, y[1:])
    with pytest.raises(ValueError, match="none can be right"):
        accepted_accuracy_scorer(clf, X, y.astype(str))
