import numpy as np
import pytest

from demur import RejectClassifier
from demur.reject.risk_estimate import (
    FLOOR,
    error_estimates,
    recalibrate,
    temperature,
    threshold_for_cost,
)
from demur.reject.scores import Fresh


def softened(proba, t):
    mixed = (1 - FLOOR) * proba + FLOOR / proba.shape[1]
    powers = mixed ** (1 / t)
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.fixture
def fresh(rng):
    """Too sure of itself: the sets follow the square root of the probabilities."""
    proba = rng.dirichlet([0.4] * 4, size=600)
    milder = np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True)
    y = (milder.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    held = rng.random((600, 4)) < 0.3
    held[np.arange(600), y] = True
    return Fresh(proba.max(axis=1), proba.argmax(axis=1), proba, held)


def test_temperature_maximises_the_likelihood_of_the_sets(fresh):
    def loss(t):
        return -np.log((softened(fresh.proba, t) * fresh.held).sum(axis=1)).sum()

    found = temperature(fresh.proba, fresh.held)
    grid = np.linspace(0.2, 9.9, 2000)
    assert found == pytest.approx(grid[np.argmin([loss(t) for t in grid])], abs=0.01)
    assert 1.2 < found < 3


def test_estimates_are_one_outside_and_the_share_missed_inside(fresh):
    estimates = error_estimates(fresh)
    soft = softened(fresh.proba, temperature(fresh.proba, fresh.held)) * fresh.held
    for i in range(600):
        expected = 1 - soft[i, fresh.top[i]] / soft[i].sum() if fresh.held[i, fresh.top[i]] else 1
        assert estimates[i] == pytest.approx(expected)
    assert 0 < np.mean(estimates == 1) < 1
    without = error_estimates(fresh._replace(held=None))
    assert without == pytest.approx(1 - fresh.accept)


def test_threshold_is_the_best_of_all(rng):
    for _ in range(50):
        scores = rng.integers(0, 8, 30) / 8
        estimates = rng.random(30)
        cost = rng.uniform(0.05, 0.9)

        def loss(t, scores=scores, estimates=estimates, cost=cost):
            return np.where(scores > t, estimates, cost).sum()

        best = min(loss(t) for t in [-np.inf, *np.unique(scores)])
        assert loss(threshold_for_cost(scores, estimates, cost)) == pytest.approx(best)


def test_recalibration_moves_towards_the_gold_and_no_further_than_it_says(rng):
    estimates = np.concatenate([rng.uniform(0.05, 0.4, 500), np.ones(50)])
    truth = rng.random(550) < np.minimum(estimates * 2, 1)  # twice as bad as estimated
    rows = np.arange(0, 550, 2)
    moved = recalibrate(estimates, rows, truth[rows])
    assert np.all(moved[500:] == 1)
    assert abs(moved[:500].mean() - truth[:500].mean()) < 0.06
    assert truth[:500].mean() - estimates[:500].mean() > 0.15
    order = np.argsort(estimates[:500])
    assert np.all(np.diff(moved[:500][order]) >= 0)
    # With nothing to learn from it stays as it was.
    kept = recalibrate(estimates, np.arange(500, 550), np.ones(50, dtype=bool))
    assert kept == pytest.approx(estimates, abs=1e-5)


def test_dial_lowers_the_cost_and_says_what_it_rests_on(told, draw):
    sample, new = draw(1500), draw(4000, first=5000)
    for cost in (0.1, 0.3):
        model = RejectClassifier(told, cost=cost, random_state=0).fit(sample.X, sample.S)
        decided = model.decide(new.X)
        # The chance of an error is 1 - score here, so the best threshold is 1 - cost.
        wrong = model.predict(new.X) != new.y

        def loss(mask, wrong=wrong, cost=cost):
            return np.where(mask, cost, wrong).mean()

        assert loss(decided.mask) <= loss(new.X[:, 1] <= 1 - cost) + 0.02
        assert not model.promise_.holds
        assert "nothing is guaranteed" in str(model.promise_)
        kept = model.out_of_fold_.accept > model.accept_threshold_
        outside = model.out_of_fold_.outside[kept].mean()
        assert f"{outside:.1%} of these lie outside" in str(model.promise_)
        assert "lower bound" in str(model.promise_)
        true_risk = np.mean(model.out_of_fold_.top[kept] != sample.y[kept])
        assert outside <= true_risk


def test_dial_recalibrated_by_gold(told, draw):
    sample = draw(800, extra=0.9)  # candidates tell next to nothing
    model = RejectClassifier(told, cost=0.2, random_state=0).fit(sample.X, sample.S)
    before = model.accept_threshold_
    rows = np.random.default_rng(0).choice(800, 200, replace=False)
    model.recalibrate(rows, sample.y[rows])
    assert abs(model.accept_threshold_ - 0.8) <= abs(before - 0.8) + 0.02
    assert "corrected by 200 gold labels" in str(model.promise_)
    with pytest.raises(ValueError, match="49 gold labels are too few to correct by; at least 50"):
        model.recalibrate(rows[:49], sample.y[rows[:49]])
    with pytest.raises(ValueError, match="different rows of the 800 training"):
        model.recalibrate(np.zeros(60, dtype=int), np.zeros(60, dtype=int))
    with pytest.raises(ValueError, match="different rows of the 800 training"):
        model.recalibrate(np.arange(760, 820), np.zeros(60, dtype=int))
    with pytest.raises(ValueError, match="whole numbers"):
        model.recalibrate(np.linspace(0, 1, 60), np.zeros(60, dtype=int))
    with pytest.raises(ValueError, match="gold label 7 at row 0 is not one of the classes"):
        model.recalibrate(rows[:60], np.full(60, 7))
    other = RejectClassifier(told, coverage=0.5).fit(sample.X, sample.S)
    with pytest.raises(ValueError, match="recalibrate.. is for the cost dial"):
        other.recalibrate(rows, sample.y[rows])


def test_rejects_everything_when_no_prediction_is_worth_it(told, draw):
    sample = draw(400)
    sample.X[:, 1] *= 0.5
    model = RejectClassifier(told, cost=0.01).fit(sample.X, sample.S)
    assert model.decide(sample.X).mask.all()
    assert "rejects everything" in str(model.promise_)
