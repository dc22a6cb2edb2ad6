from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from demur.reject import fixed_sequence, gold_worth_drawing, least_gold
from demur.reject.certificate import most_errors, p_value


def cdf_by_sum(k, n, r):
    return sum(comb(n, i) * r**i * (1 - r) ** (n - i) for i in range(k + 1))


def test_least_gold_numbers_of_the_text():
    assert [least_gold(0.05, 0.95, k) for k in (0, 1, 2)] == [59, 93, 124]
    assert [least_gold(0.10, 0.95, k) for k in (0, 1, 2)] == [29, 46, 61]


@pytest.mark.parametrize("risk", [0.03, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.975])
def test_least_gold_is_the_first_that_passes(risk, confidence):
    for errors in (0, 1, 5):
        n = least_gold(risk, confidence, errors)
        assert cdf_by_sum(errors, n, risk) <= 1 - confidence
        assert cdf_by_sum(errors, n - 1, risk) > 1 - confidence


def test_p_value_is_the_binomial_sum():
    for k, n, r in product((0, 1, 4), (5, 59, 200), (0.05, 0.3)):
        assert p_value(k, n, r) == pytest.approx(cdf_by_sum(k, n, r), abs=1e-12)


@pytest.mark.parametrize(("risk", "level"), [(0.05, 0.05), (0.1, 0.05), (0.05, 0.0125)])
def test_most_errors_against_a_search(risk, level):
    counts = np.arange(201)
    table = binom.cdf(np.arange(60), counts[:, None], risk)
    passing = np.where(np.arange(60) <= counts[:, None], table <= level, False)
    assert most_errors(counts, risk, level).tolist() == (passing.sum(axis=1) - 1).tolist()


def sequence_by_brute_force(scores, wrong, thresholds, max_risk, level):
    last = np.inf
    for t in thresholds:
        over = [w for s, w in zip(scores, wrong, strict=True) if s > t]
        if not over or cdf_by_sum(sum(over), len(over), max_risk) > level:
            return last
        last = t
    return last


def test_fixed_sequence_against_brute_force(rng):
    passed = set()
    for _ in range(200):
        n = int(rng.integers(40, 150))
        scores = rng.integers(0, 20, n) / 20  # with ties, also with thresholds
        wrong = rng.random(n) < 0.15 * (1 - scores)
        thresholds = np.sort(rng.choice(np.arange(-1, 20) / 20, 5, replace=False))[::-1]
        tests = fixed_sequence(scores, wrong, thresholds, max_risk=0.1)
        expected = sequence_by_brute_force(scores, wrong, thresholds, 0.1, 0.05)
        assert tests.threshold == expected
        for t, a, e in zip(thresholds, tests.accepted, tests.errors, strict=True):
            assert (a, e) == ((scores > t).sum(), wrong[scores > t].sum())
        passed.add(tests.passed)
    assert len(passed) > 3


def test_a_test_behind_a_failure_does_not_count():
    scores = np.repeat([0.9, 0.5], [60, 200])
    wrong = np.zeros(260, dtype=bool)
    wrong[:3] = True
    tests = fixed_sequence(scores, wrong, np.array([0.8, 0.4]), max_risk=0.05)
    assert tests.p_values[1] < 0.05 < tests.p_values[0]
    assert tests.passed == 0
    assert tests.threshold == np.inf


def test_the_order_is_as_given_and_minus_infinity_accepts_all():
    scores, wrong = np.linspace(0, 1, 100), np.zeros(100, dtype=bool)
    tests = fixed_sequence(scores, wrong, np.array([-np.inf]), max_risk=0.05)
    assert (tests.accepted[0], tests.threshold) == (100, -np.inf)


def test_risk_just_over_the_bound_everywhere_is_seldom_accepted(rng):
    """The stress test: at every threshold the true risk is over the bound by a hair."""
    n, repetitions, level = 300, 20_000, 0.05
    thresholds = np.array([0.8, 0.6, 0.4, 0.2, -np.inf])
    for max_risk in (0.05, 0.1):
        # Scores are uniform and say nothing, so that the risk is the same everywhere.
        accepted = rng.multinomial(n, [0.2] * 5, size=repetitions)
        errors = rng.binomial(accepted, max_risk + 1e-3).cumsum(axis=1)
        first = errors[:, 0] <= most_errors(accepted.cumsum(axis=1)[:, 0], max_risk, level)
        assert 0.01 < first.mean() <= level + 3 * np.sqrt(level * (1 - level) / repetitions)
        # The same by the code under test, on fewer draws: any pass is a violation.
        violations = 0
        for _ in range(1500):
            scores = rng.random(n)
            wrong = rng.random(n) < max_risk + 1e-3
            violations += fixed_sequence(scores, wrong, thresholds, max_risk=max_risk).passed > 0
        assert violations / 1500 <= level + 3 * np.sqrt(level * (1 - level) / 1500)


def test_gold_worth_drawing_has_the_power_it_says():
    n = gold_worth_drawing(0.02, 0.05, power=0.8)
    k = max(k for k in range(n) if binom.cdf(k, n, 0.05) <= 0.05)
    assert binom.cdf(k, n, 0.02) >= 0.8
    assert gold_worth_drawing(0.05, 0.05) is None
    assert gold_worth_drawing(0.0499, 0.05) is None  # 100,000 are not enough


@pytest.mark.parametrize("value", [0, 1, -0.1, float("nan"), True, "0.1", None])
def test_shares_out_of_range(value):
    with pytest.raises(ValueError, match="max_risk must be"):
        least_gold(value)
    with pytest.raises(ValueError, match="confidence must be"):
        least_gold(0.05, value)
