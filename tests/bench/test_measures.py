import numpy as np
import pandas as pd
import pytest

from demur.bench.measures import grid_threshold, measure_runs, missing_runs, risk_of, summarise
from demur.bench.pairs import line_up, rank_methods
from demur.bench.store import read_results
from made_up import write

RIGHT = [1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0]
SCORE = [0.97, 0.95, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.55, *np.arange(0.5, 0.0, -0.05)]
RUNS = {
    ("iris", "uniform", "dst-pll", 0): (RIGHT, SCORE),
    ("iris", "uniform", "dst-pll", 1): ([1] * 20, [0.9] * 5 + [0.1] * 15),
    ("iris", "uniform", "pl-knn", 0): (RIGHT[::-1], SCORE),
    ("iris", "uniform", "pl-knn", 1): ([0] * 4 + [1] * 16, [0.4] * 20),
    ("wine", "uniform", "dst-pll", 0): ([1] * 20, SCORE),
    ("wine", "uniform", "pl-knn", 0): None,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write(folder, RUNS)
    return read_results(folder)


@pytest.fixture(scope="module")
def measures(results):
    return measure_runs(results, reference="dst-pll")


def of(measures, dataset, method, seed):
    chosen = (measures[["dataset", "method", "seed"]] == [dataset, method, seed]).all(axis=1)
    (row,) = measures[chosen].to_dict("records")
    return row


def test_by_hand(measures):
    row = of(measures, "iris", "dst-pll", 0)
    # 15 of 20 are right; 10 have a score over 0.5, and 7 of these are right.
    assert row["accuracy"] == 0.75
    assert row["coverage"] == 0.5
    assert row["accepted_accuracy"] == 0.7
    assert row["error_text"] == pytest.approx(3 / 20)
    assert row["rejects_text"] == 0.5
    # 10 are not more than 10: the grid goes on to 0.49, which the next score, 0.5, exceeds.
    assert row["error_code"] == pytest.approx(3 / 11)
    assert row["rejects_code"] == pytest.approx(9 / 20)
    assert row["seconds"] == 1.5


def test_nobody_accepted(measures):
    row = of(measures, "iris", "pl-knn", 1)
    assert row["coverage"] == 0.0
    assert np.isnan(row["accepted_accuracy"])
    assert row["error_text"] == 0.0
    assert (row["rejects_code"], row["error_code"]) == (0.0, 0.2)  # all have the same score


def test_both_risks(measures):
    at = measures.index[(measures["dataset"] == "iris") & (measures["method"] == "dst-pll")][0]
    assert risk_of(measures, 0.1, "text")[at] == pytest.approx(0.15 + 0.05)
    assert risk_of(measures, 0.1, "code")[at] == pytest.approx(3 / 11 + 0.045)


def test_same_rejects(measures):
    # The reference rejects 10 of 20 and 15 of 20 on iris: 62.5 % on average.
    assert of(measures, "iris", "dst-pll", 0)["same_rejects"] == 0.5  # its own, not the average
    row = of(measures, "iris", "pl-knn", 0)
    # Accepting 8 or 7 would be as near, and more is better; but 7 and 8 share a score: 8.
    assert row["same_rejects"] == pytest.approx(0.6)
    assert row["same_accuracy"] == pytest.approx(sum(RIGHT[::-1][:8]) / 8)
    only = of(measures, "iris", "pl-knn", 1)
    assert (only["same_rejects"], only["same_accuracy"]) == (0.0, 0.8)  # one score: all or none


def test_without_a_reference(results):
    measured = measure_runs(results, reference="cc")
    assert measured["same_accuracy"].isna().all()
    assert measured["accuracy"].notna().all()


def test_areas_are_those_of_the_metrics(measures):
    row = of(measures, "iris", "pl-knn", 1)
    # One score: every order is as likely, so the mean risk is the error rate.
    assert row["aurc"] == pytest.approx(0.2)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.9, 0.904])
def test_grid_threshold_by_trying_all(rng, threshold):
    for n in (5, 11, 12, 60):
        score = rng.choice(np.append(rng.random(6), [0.9, 0.5]), size=n)
        grid = np.arange(-1, 102) / 100
        able = [t for t in grid if (score > t).sum() > 10]
        found = grid_threshold(score, threshold)
        if not able:
            assert found == threshold
        else:
            assert abs(found - threshold) <= min(abs(t - threshold) for t in able) + 1e-9
            assert (score > found).sum() > 10


def test_summary(measures, results):
    table = summarise(measures, results.runs).set_index(["dataset", "method"])
    first = table.loc["iris", "dst-pll"]
    assert (first["seeds"], first["failed"]) == (2, 0)
    assert first["accuracy"] == pytest.approx(0.875)
    assert first["accuracy_std"] == pytest.approx(np.std([0.75, 1.0], ddof=1))
    assert first["coverage"] == pytest.approx((0.5 + 0.25) / 2)
    assert first["accepted_accuracy"] == pytest.approx((0.7 + 1.0) / 2)
    failed = table.loc["wine", "pl-knn"]
    assert (failed["seeds"], failed["failed"]) == (0, 1)
    assert np.isnan(failed["accuracy"])
    assert np.isnan(table.loc["wine", "dst-pll"]["accuracy_std"])  # one seed has no deviation


def test_missing_runs(results):
    (row,) = missing_runs(results.runs).to_dict("records")
    assert (row["dataset"], row["method"], row["why"]) == ("wine", "pl-knn", "ValueError: too hot")


def test_two_runs_of_one_setting_are_refused(tmp_path, results):
    twice = results._replace(runs=pd.concat([results.runs, results.runs.iloc[:1]]))
    with pytest.raises(ValueError, match="ran more than once on iris"):
        measure_runs(twice, reference="dst-pll")


def test_nothing_finished_is_told(results):
    failed = results._replace(runs=results.runs[results.runs["status"] == "failed"])
    with pytest.raises(ValueError, match="none of the 1 runs is finished"):
        measure_runs(failed, reference="dst-pll")


def test_pairs_that_not_all_have_are_left_out(measures):
    lined = line_up(measures, "accuracy")
    assert lined.methods == ("dst-pll", "pl-knn")
    np.testing.assert_allclose(lined.values, [[0.75, 0.75], [1.0, 0.8]])
    assert lined.left_out == {"pl-knn": 1}
    assert lined.n_left_out == 1
    np.testing.assert_allclose(lined.by_setting(), [[0.875, 0.775]])


def test_a_method_without_any_value_takes_nothing_away(measures):
    alone = measures[measures["dataset"] == "wine"]
    more = pd.concat([alone, alone.assign(method="cc", accuracy=np.nan)])
    lined = line_up(more, "accuracy")
    assert lined.methods == ("dst-pll",)
    assert lined.values.tolist() == [[1.0]]
    assert rank_methods(more, "accuracy", better="higher") is None
