"""Mean trade-off curves, against values worked out by hand and against brute force."""

from itertools import permutations

import numpy as np
import pytest

from demur.bench.curves import Setting, trade_off_curves
from demur.bench.judged import Judged
from demur.bench.spec import Spec
from demur.bench.store import read_results, write_run
from demur.metrics import accepted_accuracy, aurc
from sample_folder import EVIL, METHODS, SETTINGS, judged, write_results

RIGHT = [True, True, False, True, False, False]
SCORES = [9, 7, 7, 4, 4, 1]


def run(folder, right, scores, *, method="dst-pll", seed=0, threshold=0.5, noise="uniform"):
    """Write a run whose first label is always the true one."""
    right = np.asarray(right)
    rows = np.arange(len(right))
    told = {} if threshold is None else {"threshold": threshold}
    predicted = Judged(
        rows, 0 * rows, 1 - right.astype(int), np.asarray(scores, float), 0.5 + 0 * rows
    )
    write_run(folder, Spec("toy", method, noise, seed), told, predicted)


def only_curve(folder, **how):
    (curve,) = trade_off_curves(read_results(folder), **how)
    return curve


def test_a_curve_by_hand(tmp_path):
    run(tmp_path, RIGHT, SCORES, threshold=4.0)
    curve = only_curve(tmp_path, min_accepted=1, n_points=6)
    assert curve.setting == Setting("toy", "all", "uniform")
    assert (curve.method, curve.n_runs) == ("dst-pll", 1)
    np.testing.assert_allclose(curve.rejected, np.arange(6) / 6)
    # Of the two with score 7 one is right, so the second accepted is right with probability 1/2.
    expected = [3 / 6, 3 / 5, 2.5 / 4, 2 / 3, 1.5 / 2, 1]
    np.testing.assert_allclose(curve.accuracy, expected)
    assert curve.operating_point == pytest.approx((3 / 6, 2 / 3))  # a score of 4 is not over 4


def test_ties_are_the_mean_over_all_orders(tmp_path):
    """Whoever of one score goes first: the curve is the mean over every possible order."""
    run(tmp_path, RIGHT, SCORES)
    curve = only_curve(tmp_path, min_accepted=1, n_points=6)
    orders = [p for p in permutations(range(6)) if all(np.diff([SCORES[i] for i in p]) <= 0)]
    assert len(orders) == 4
    means = [np.mean([np.mean([RIGHT[i] for i in p[:k]]) for p in orders]) for k in range(6, 0, -1)]
    np.testing.assert_allclose(curve.accuracy, means)


def test_mean_over_all_shares_is_one_minus_aurc(tmp_path, rng):
    scores = rng.integers(12, size=50)
    right = rng.random(50) < 0.3 + scores / 20
    run(tmp_path, right, scores)
    curve = only_curve(tmp_path, min_accepted=1, n_points=50)
    assert curve.aurc == pytest.approx(aurc(np.ones(50), right.astype(int), scores))
    assert curve.accuracy.mean() == pytest.approx(1 - curve.aurc)


def test_seeds_are_averaged(tmp_path):
    run(tmp_path, [1, 1, 0, 0], [4, 3, 2, 1], seed=0, threshold=2.0)
    run(tmp_path, [0, 1, 1, 1], [4, 3, 2, 1], seed=1, threshold=9.0)  # rejects everything
    curve = only_curve(tmp_path, min_accepted=1, n_points=4)
    assert curve.n_runs == 2
    np.testing.assert_allclose(curve.accuracy, [5 / 8, (2 / 3 + 2 / 3) / 2, (1 + 1 / 2) / 2, 1 / 2])
    assert curve.operating_point == (0.75, 1.0)  # the accuracy of the seed that accepts any


@pytest.mark.parametrize(("threshold", "rejected"), [(None, np.nan), (9.5, 1.0)])
def test_no_accuracy_where_nothing_is_accepted(tmp_path, threshold, rejected):
    run(tmp_path, RIGHT, SCORES, threshold=threshold)
    point = only_curve(tmp_path).operating_point
    np.testing.assert_equal(point, (rejected, np.nan))


def test_the_curve_ends_where_few_are_left(tmp_path, rng):
    run(tmp_path, rng.random(40) < 0.7, rng.random(40))
    assert only_curve(tmp_path).rejected[-1] == pytest.approx(30 / 40)
    assert only_curve(tmp_path, min_accepted=4).rejected[-1] == pytest.approx(36 / 40)
    # Fewer than that in all: a curve of one point, the accuracy of all.
    short = only_curve(tmp_path, min_accepted=50)
    assert set(short.rejected) == {0.0}
    assert len(set(short.accuracy)) == 1


def test_runs_of_a_folder(tmp_path):
    curves = trade_off_curves(read_results(write_results(tmp_path)), min_accepted=1)
    wanted = [(Setting(d, "all", n), m) for d, n in sorted(SETTINGS) for m in METHODS]
    assert [(c.setting, c.method) for c in curves] == wanted
    for curve in curves:
        failed = (curve.setting.dataset, curve.method) == (EVIL, METHODS[-1])
        assert curve.n_runs == (1 if failed else 2)
        where = (curve.setting.dataset, curve.setting.noise)
        seeds = [judged(curve.method, where, seed) for seed in range(curve.n_runs)]
        assert curve.accuracy[0] == pytest.approx(np.mean([s.y_true == s.y_pred for s in seeds]))
        threshold = {"dst-pll": 0.0, "pl-knn": 0.5}.get(curve.method, 0.9)
        kept = [accepted_accuracy(s.y_true, s.y_pred, s.accept_score > threshold) for s in seeds]
        assert curve.operating_point[1] == pytest.approx(np.nanmean(kept))


def test_methods_are_in_the_registrys_order(tmp_path):
    for method in ("zebra", "cc", "ant", "dst-pll"):
        run(tmp_path, RIGHT, SCORES, method=method)
    curves = trade_off_curves(read_results(tmp_path))
    assert [curve.method for curve in curves] == ["dst-pll", "cc", "ant", "zebra"]


def test_bad_input(tmp_path):
    run(tmp_path, RIGHT, SCORES)
    with pytest.raises(ValueError, match="min_accepted must be at least 1; got 0"):
        only_curve(tmp_path, min_accepted=0)
    run(tmp_path, RIGHT, [np.nan, *SCORES[1:]], method="pl-knn", seed=3)
    with pytest.raises(ValueError, match="no curve of pl-knn on toy, uniform, seed 3"):
        trade_off_curves(read_results(tmp_path))
