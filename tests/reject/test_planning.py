from dataclasses import replace

import numpy as np
import pytest

from demur import RejectClassifier
from demur.reject.certificate import fixed_sequence
from demur.reject.planning import WORLDS, draw_rows, make_plan


def model_and_batch(told, draw, **dial):
    sample, batch = draw(600), draw(1500, seed=1, first=10_000, low=0.8)
    dial = {"max_risk": 0.1, "random_state": 0} | dial
    return RejectClassifier(told, **dial).fit(sample.X, sample.S), batch


def test_plan_says_what_to_verify_and_the_least_numbers(told, draw):
    model, batch = model_and_batch(told, draw)
    plan = model.plan(batch.X, 150)
    assert len(plan.rows) == len(set(plan.rows)) == 150
    assert np.all(batch.X[plan.rows, 1] > plan.region)
    assert (batch.X[:, 1] > plan.region).mean() == pytest.approx(plan.region_coverage)
    for threshold, coverage in zip(plan.thresholds, plan.coverages, strict=True):
        assert (batch.X[:, 1] > threshold).mean() == pytest.approx(coverage)
    assert np.all(np.diff(plan.thresholds) < 0)
    assert np.all(plan.thresholds >= plan.region)
    assert plan.least == (29, 46, 61)
    for words in ("verify             150 labels", "29, 46 or 61", "until the first fails"):
        assert words in str(plan)
    assert replace(plan, max_risk=0.05).least == (59, 93, 124)


def won_by(plan, scores, times, rng, repetitions=200):
    """Coverage of certificates by this plan, where errors are so many times the estimates."""
    region, won = scores[scores > plan.region], []
    for _ in range(repetitions):
        gold = rng.choice(region, plan.n_gold)
        wrong = rng.random(plan.n_gold) < times * (1 - gold)
        tests = fixed_sequence(gold, wrong, plan.thresholds, max_risk=plan.max_risk)
        won.append(plan.coverages[tests.passed - 1] if tests.passed else 0.0)
    return np.asarray(won)


def test_expected_coverage_is_what_comes_out_in_the_worlds_planned_for(draw, rng):
    """A simulation from outside; the plan's is one of many, and the luckiest, so a bit higher."""
    scores = draw(20_000).X[:, 1]
    plan = make_plan(scores, 1 - scores, max_risk=0.1, n_gold=200, seed=0)
    won = [won_by(plan, scores, times, rng) for times in WORLDS]
    assert plan.expected_coverage == pytest.approx(np.mean(won), abs=0.03)
    assert plan.chance == pytest.approx(np.mean(np.asarray(won) > 0), abs=0.06)


def test_a_plan_serves_where_the_estimates_are_right_and_where_they_are_too_high(draw, rng):
    """In each of these worlds at least a fifth of what could be certified there."""
    scores = draw(20_000).X[:, 1]
    plan = make_plan(scores, 1 - scores, max_risk=0.1, n_gold=200, seed=0)
    for times in WORLDS[:3]:
        # The surest share c errs in c / 4 of cases, so that this much could be certified.
        most = min(0.4 / times, 1.0)
        assert won_by(plan, scores, times, rng).mean() > most / 5


def test_more_gold_is_worth_more_and_a_region_above_a_score_is_chosen(draw):
    scores = draw(5000).X[:, 1]
    made = [make_plan(scores, 1 - scores, max_risk=0.1, n_gold=n) for n in (30, 100, 400)]
    expected = [plan.expected_coverage for plan in made]
    assert expected == sorted(expected)
    assert expected[0] < expected[2] - 0.05
    assert all(plan.region > 0.5 for plan in made)
    whole = make_plan(scores, 1 - scores, max_risk=0.1, n_gold=400, whole=True)
    assert whole.region == -np.inf
    assert whole.expected_coverage < expected[2]


def test_same_seed_same_plan(told, draw):
    batch = draw(900, 5, first=50_000)
    rows = [model_and_batch(told, draw)[0].plan(batch.X, 60).rows for _ in range(2)]
    assert np.array_equal(*rows)


def test_groups_are_honoured(told, draw):
    model, batch = model_and_batch(told, draw)
    groups = np.arange(1500) // 3
    plan = model.plan(batch.X, 80, groups=groups)
    assert len(np.unique(groups[plan.rows])) == 80
    sample = draw(600)
    fitted = RejectClassifier(told, max_risk=0.1).fit(
        sample.X, sample.S, groups=np.arange(600) // 2
    )
    with pytest.raises(ValueError, match="fitted with groups; give groups= of X too"):
        fitted.plan(batch.X, 80)
    # Groups 0 to 299 were trained on: nothing is drawn from those.
    plan = fitted.plan(batch.X, 50, groups=groups)
    assert groups[plan.rows].min() >= 300
    with pytest.raises(ValueError, match="only 200 groups to draw from"):
        fitted.plan(batch.X, 201, groups=groups)


def test_each_group_counts_the_same(draw, rng):
    """A group of a hundred rows is not drawn more often than one of a single row."""
    scores = np.ones(200)
    groups = np.concatenate([np.zeros(101, dtype=int), np.arange(1, 100)])
    plan = make_plan(scores, np.zeros(200), max_risk=0.1, n_gold=50, whole=True)
    counts = np.zeros(100)
    for _ in range(400):
        counts[groups[draw_rows(scores, plan, rng, groups)]] += 1
    assert abs(counts[0] / 400 - 0.5) < 0.1


def test_too_few_for_a_plan(told, draw):
    model, batch = model_and_batch(told, draw)
    with pytest.raises(ValueError, match="28 gold labels are too few.* needs 29 accepted ones"):
        model.plan(batch.X, 28)
    with pytest.raises(ValueError, match="batch has only 40 rows to draw from"):
        model.plan(batch.X[:40], 60)
    assert not hasattr(model, "plan_")
    with pytest.raises(ValueError, match="n_gold"):
        model.plan(batch.X, 0)
    other = RejectClassifier(told, coverage=0.5).fit(*draw(100)[::2])
    with pytest.raises(ValueError, match="no max_risk is set"):
        other.plan(batch.X)


def test_batch_of_training_instances_is_refused(told, draw):
    model, _ = model_and_batch(told, draw)
    with pytest.raises(ValueError, match="copies of rows used in fit"):
        model.plan(draw(600).X, 60)
