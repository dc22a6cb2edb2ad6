import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from demur import RejectClassifier


@pytest.fixture
def fitted(told, draw):
    sample = draw(600, low=0.9)
    return RejectClassifier(told, max_risk=0.1, random_state=0).fit(sample.X, sample.S)


@pytest.fixture
def gold(draw):
    return draw(300, seed=9, low=0.9, first=50_000)


def test_certificate_passes_by_the_planned_rows(fitted, draw):
    batch = draw(2000, seed=4, low=0.9, first=20_000)
    assert fitted.decide(batch.X).mask.all()
    assert "not certified yet" in str(fitted.promise_)
    assert not fitted.promise_.holds
    plan = fitted.plan(batch.X, 200)
    fitted.certify(batch.X[plan.rows], batch.y[plan.rows])
    tests, last = fitted.tests_, fitted.tests_.passed - 1
    kept = batch.X[plan.rows, 1] > fitted.accept_threshold_
    wrong = batch.X[plan.rows, 2] != batch.y[plan.rows]
    assert (tests.accepted[last], tests.errors[last]) == (kept.sum(), (wrong & kept).sum())
    assert fitted.promise_.holds
    assert "with 95.0% confidence the error among accepted predictions is at most 10.0%" in str(
        fitted.promise_
    )
    new = draw(3000, seed=5, low=0.9, first=90_000)
    decided = fitted.decide(new.X)
    assert decided.count() / 3000 == pytest.approx(fitted.promise_.coverage, abs=0.05)
    assert (decided != new.y).mean() < 0.1
    assert fitted.attempts_made_ == 1


def test_when_nothing_passes_all_is_rejected_and_it_says_what_would_help(fitted, gold):
    wrong = (gold.X[:, 2].astype(int) + 1) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.certify(gold.X, wrong)
    assert fitted.accept_threshold_ == np.inf
    assert fitted.decide(gold.X).mask.all()
    assert not fitted.promise_.holds
    for words in ("nothing passed", "everything is rejected", "not worth drawing"):
        assert words in str(fitted.promise_)


def test_tells_how_many_more_labels_are_worth_drawing(told, draw):
    sample, gold = draw(600, low=0.9), draw(60, seed=9, first=50_000)
    model = RejectClassifier(told, max_risk=0.1).fit(sample.X, sample.S)
    y = gold.X[:, 2].astype(int)
    # One error among the surest: too many for 60, and still below the bound.
    y[np.argsort(-gold.X[:, 1])[:3]] = (y[np.argsort(-gold.X[:, 1])[:3]] + 1) % 3
    model.certify(gold.X, y)
    assert not model.promise_.holds
    said = str(model.promise_)
    assert "new gold labels from the same region would be worth drawing" in said
    assert int(said.split("about ")[1].split(" ")[0]) > 60


def test_refuses_gold_that_was_used_in_fit(told, draw, fitted):
    sample = draw(600, low=0.9)
    with pytest.raises(ValueError, match="copies of rows used in fit.*neither label nor candidate"):
        fitted.certify(sample.X[:100], sample.y[:100])
    named = RejectClassifier(told, max_risk=0.1).fit(sample.X, sample.S, ids=np.arange(600))
    with pytest.raises(ValueError, match=r"gold row 0 \(id 599; 1 such row\(s\)\) was used in fit"):
        named.certify(sample.X[:100] + 1e5, sample.y[:100], ids=np.arange(599, 699))
    # Names count more than features.
    named.certify(sample.X[:100], sample.y[:100], ids=np.arange(600, 700))


def test_refuses_a_fit_after_a_test(fitted, gold, draw):
    fitted.certify(gold.X, gold.y)
    with pytest.raises(ValueError, match="not fitted again.*Use sklearn.base.clone"):
        fitted.fit(*draw(600)[::2])
    with pytest.raises(ValueError, match="not fitted again"):
        RejectClassifier.adopt(fitted, fitted.out_of_fold_, draw(600).X)
    clone(fitted).fit(*draw(600)[::2])


def test_refuses_to_draw_again_until_it_passes(fitted, gold, draw):
    fitted.certify(gold.X, (gold.y + 1) % 3)
    again = draw(300, seed=10, low=0.9, first=60_000)
    with pytest.raises(ValueError, match=r"tested 1 time\(s\).*attempts=1; to draw again until"):
        fitted.certify(again.X, again.y)
    fitted.attempts = 2
    with pytest.raises(ValueError, match="attempts was 1 in fit and is 2 now"):
        fitted.certify(again.X, again.y)
    assert fitted.decide(gold.X).mask.all()


def test_declared_attempts_share_the_confidence(told, draw, gold):
    sample = draw(600, low=0.9)
    model = RejectClassifier(told, max_risk=0.1, attempts=2).fit(sample.X, sample.S)
    assert model.plan(n_gold=100).confidence == pytest.approx(0.975)
    assert model.plan_.least[0] == 36  # (1 - 0.1)**36 < 0.025 < (1 - 0.1)**35
    model.certify(gold.X, (gold.y + 1) % 3)
    with pytest.raises(ValueError, match="used in an earlier test"):
        model.certify(gold.X, gold.y)
    again = draw(300, seed=10, low=0.95, first=60_000)
    model.certify(again.X, again.y)
    assert model.promise_.holds
    assert model.attempts_made_ == 2


def test_too_few_gold_labels_are_not_an_attempt(fitted, gold):
    with pytest.raises(ValueError, match="28 gold labels are too few.*Nothing was tested"):
        fitted.certify(gold.X[:28], gold.y[:28])
    assert fitted.attempts_made_ == 0
    fitted.certify(gold.X[:29], gold.X[:29, 2].astype(int))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: np.where(np.arange(300) == 7, 5, y), "gold label 5 at row 7 is not one of"),
        (lambda y: y[:299], "300 gold instances but 299 gold labels"),
        (lambda y: np.column_stack([y, y]), "one true label a row"),
        (lambda y: [None, *y[1:].tolist()], "the gold label is missing .* at row 0"),
        (lambda y: np.where(np.arange(300) == 4, np.nan, y), "missing .* at row 4"),
    ],
)
def test_bad_gold_labels(fitted, gold, labels, message):
    with pytest.raises(ValueError, match=message):
        fitted.certify(gold.X, labels(gold.y))
    assert fitted.attempts_made_ == 0


def test_rows_that_the_plan_did_not_draw_are_refused(fitted, draw):
    batch = draw(2000, seed=4, low=0.9, first=20_000)
    plan = fitted.plan(batch.X, 200)
    others = np.setdiff1d(np.arange(2000), plan.rows)[:200]
    with pytest.raises(ValueError, match=r"gold row 0 \(200 such row\(s\)\) is not among the 200"):
        fitted.certify(batch.X[others], batch.y[others])
    with pytest.warns(UserWarning, match="200 rows were to be verified, but 150 are given"):
        fitted.certify(batch.X[plan.rows[:150]], batch.y[plan.rows[:150]])


def test_gold_given_twice_counts_once(fitted, gold):
    twice = np.tile(np.arange(50), 2)
    with pytest.raises(ValueError, match="50 of 100 gold rows repeat another gold row"):
        fitted.certify(gold.X[twice], gold.y[twice])
    with pytest.raises(ValueError, match="gold instance with id 3 is given 2 times"):
        fitted.certify(gold.X, gold.y, ids=[3, 3, *range(100, 398)])


def test_groups_of_gold(told, draw, gold):
    sample = draw(600, low=0.9)
    model = RejectClassifier(told, max_risk=0.1).fit(sample.X, sample.S, groups=np.arange(600) // 3)
    with pytest.raises(ValueError, match="fitted with groups; give groups= of the gold"):
        model.certify(gold.X, gold.y)
    with pytest.raises(ValueError, match="group 500 has 2 gold instances"):
        model.certify(gold.X, gold.y, groups=[500, *range(500, 799)])
    with pytest.raises(ValueError, match="group 7 of gold row 0 .* was used in fit"):
        model.certify(gold.X, gold.y, groups=[7, *range(501, 800)])
    with pytest.raises(ValueError, match="300 gold instances but 2 groups"):
        model.certify(gold.X, gold.y, groups=[1, 2])
    model.certify(gold.X, gold.y, groups=np.arange(500, 800))


def test_a_plan_of_another_risk_is_refused_and_one_from_elsewhere_needs_nothing_held_out(
    fitted, told, draw, gold
):
    plan = fitted.plan(n_gold=300)
    frozen = FrozenEstimator(fitted.estimator_)
    other = RejectClassifier(frozen, max_risk=0.1).adopt(None, draw(600, low=0.9).X)
    with pytest.raises(ValueError, match="nothing is known of the training instances to plan by"):
        other.certify(gold.X, gold.y)
    other.certify(gold.X, gold.y, plan=plan)
    fitted.certify(gold.X, gold.y)
    assert other.promise_ == fitted.promise_
    strict = RejectClassifier(frozen, max_risk=0.05).adopt(None, draw(600, low=0.9).X)
    with pytest.raises(ValueError, match="the plan is for an error of at most 0.1"):
        strict.certify(gold.X, gold.y, plan=plan)
    with pytest.raises(ValueError, match="held_out may be None only for max_risk"):
        RejectClassifier(frozen, coverage=0.5).adopt(None, draw(600).X)


def test_unplanned_gold_is_taken_as_drawn_from_everything(fitted, gold):
    fitted.certify(gold.X, gold.y)
    assert fitted.plan_.region == -np.inf


def test_stays_within_its_confidence_where_the_risk_is_just_over_the_bound(told, draw):
    """Predictions are wrong in 11 % at every score, so that any certificate is false."""
    sample = draw(300)
    model = RejectClassifier(told, max_risk=0.1, random_state=0).fit(sample.X, sample.S)
    plan = model.plan(n_gold=150)
    frozen = FrozenEstimator(model.estimator_)
    violations, repetitions = 0, 300
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        gold = draw(300, seed=seed, first=10_000)
        gold_X = gold.X[gold.X[:, 1] > plan.region][:150]
        wrong = rng.random(len(gold_X)) < 0.11
        y = np.where(wrong, (gold_X[:, 2] + 1) % 3, gold_X[:, 2]).astype(int)
        again = RejectClassifier(frozen, max_risk=0.1).adopt(None, sample.X)
        violations += again.certify(gold_X, y, plan=plan).promise_.holds
    # At a rate of 5 % more than 25 of 300 come with a chance of 0.6 %.
    assert 0 < violations <= 25
