import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from demur.bench.statistics import (
    alike_groups,
    average_ranks,
    bootstrap_intervals,
    compare_with_best,
    nemenyi_critical_difference,
    paired_p_value,
)

COLUMNS = arrays(np.float64, (7, 2), elements=st.integers(0, 20).map(lambda n: n / 20))


@given(COLUMNS)
def test_p_value_is_scipys(values):
    a, b = values.T
    if np.ptp(a - b) == 0:
        assert paired_p_value(a, b) == float((a == b).all())
    else:
        assert paired_p_value(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=1e-9)


def test_one_pair_cannot_be_tested():
    assert np.isnan(paired_p_value([0.1], [0.2]))
    compared = compare_with_best([[0.1, 0.2, 0.2]])
    assert compared.among_best.tolist() == [False, True, True]
    assert np.isnan(compared.stds).all()


def test_best_and_those_that_do_not_differ(rng):
    base = rng.random(30)
    values = np.column_stack([base, base + rng.normal(0, 0.1, 30), base - 0.2, base**2 + 0.4])
    higher, lower = (compare_with_best(values, better=b) for b in ("higher", "lower"))
    assert higher.among_best.tolist() == [False, False, False, True]
    assert lower.among_best.tolist() == [False, False, True, False]
    for i in range(4):
        if i != 3:
            expected = stats.ttest_rel(values[:, i], values[:, 3]).pvalue
            assert higher.p_values[i] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(higher.stds, values.std(axis=0, ddof=1))
    near = compare_with_best(values[:, :2])
    p = stats.ttest_rel(values[:, 0], values[:, 1]).pvalue
    assert near.among_best.all() == (p >= 0.05)


def test_rounding_is_no_difference(rng):
    a = rng.random(20)
    assert paired_p_value(a, a * 3 / 3) == 1.0
    assert paired_p_value(a, a + 0.1) == 0.0


def test_the_level_decides():
    values = [[1.0, 0.0], [2.0, 2.0], [3.0, 2.0], [4.0, 2.0]]  # p = 0.0917, by hand
    assert compare_with_best(values, alpha=0.05).among_best.all()
    assert compare_with_best(values, alpha=0.1).among_best.tolist() == [True, False]


def test_bootstrap_is_that_of_scipy_but_for_chance(rng):
    values = rng.normal(size=(25, 2)) * [1.0, 3.0]
    ours = bootstrap_intervals(values, n_resamples=20_000)
    for column, (low, high) in zip(values.T, ours, strict=True):
        theirs = stats.bootstrap(
            (column,), np.mean, method="percentile", n_resamples=20_000, rng=rng
        ).confidence_interval
        spread = column.std() / 5
        assert low == pytest.approx(theirs.low, abs=0.06 * spread)
        assert high == pytest.approx(theirs.high, abs=0.06 * spread)
    np.testing.assert_array_equal(ours, bootstrap_intervals(values, n_resamples=20_000))


def test_critical_difference_of_demsar():
    # Table 5 of the reference: q for 2, 5 and 10 methods at 0.05 is 1.960, 2.728 and 3.164.
    for k, q in ((2, 1.960), (5, 2.728), (10, 3.164)):
        expected = q * np.sqrt(k * (k + 1) / (6 * 14))
        assert nemenyi_critical_difference(k, 14) == pytest.approx(expected, rel=1e-3)


def test_ranks_and_friedman():
    values = np.array([[0.9, 0.8, 0.7], [0.8, 0.9, 0.1], [0.5, 0.5, 0.4], [0.6, 0.5, 0.55]])
    ranks = average_ranks(values)
    # Rows rank 1 2 3, 2 1 3, 1.5 1.5 3, 1 3 2.
    np.testing.assert_allclose(ranks.average, [1.375, 1.875, 2.75])
    assert ranks.p_value == pytest.approx(stats.friedmanchisquare(*values.T).pvalue)
    assert ranks.n_settings == 4
    np.testing.assert_allclose(average_ranks(-values, better="lower").average, ranks.average)
    assert average_ranks(np.ones((4, 3))).p_value == 1.0


def test_rounding_does_not_break_a_tie():
    assert average_ranks([[0.1 + 0.2, 0.3]]).average.tolist() == [1.5, 1.5]


@given(arrays(np.float64, 6, elements=st.floats(1, 6)), st.floats(0.0, 5.0))
def test_groups_are_the_largest_that_are_alike(ranks, difference):
    found = alike_groups(ranks, difference)
    order = np.sort(ranks)
    widest = {tuple(order[(order >= low) & (order <= low + difference)].tolist()) for low in order}
    maximal = {
        group
        for group in widest
        if len(group) > 1
        and not any(set(group) < set(g) or (group != g and _inside(group, g)) for g in widest)
    }
    assert {tuple(sorted(ranks[list(g)].tolist())) for g in found} == maximal


def _inside(small, large):
    """Whether one group is a part of another, equal ranks counted."""
    return len(small) < len(large) and min(large) <= min(small) and max(small) <= max(large)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: compare_with_best([[0.1, np.nan]]), "row 0, column 1"),
        (lambda: compare_with_best([0.1, 0.2]), "got shape"),
        (lambda: compare_with_best([[1.0]], better="more"), "better must be"),
        (lambda: compare_with_best([[1.0]], alpha=5), "between 0 and 1"),
        (lambda: bootstrap_intervals([[1.0]], level=95), "between 0 and 1"),
        (lambda: bootstrap_intervals([[1.0]], n_resamples=0), "at least 1"),
        (lambda: nemenyi_critical_difference(1, 3), "at least 2 methods"),
        (lambda: average_ranks([[1.0, 2.0]], better="more"), "better must be"),
    ],
)
def test_what_cannot_be_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
