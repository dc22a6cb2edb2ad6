"""What dials promised, measured on made-up runs that are small enough to be worked out by hand."""

import json

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from demur.bench.judged import Judged
from demur.bench.measures import measure_runs, summarise
from demur.bench.promises import _coverage_kept, has_dials, measure_promises, promises_table
from demur.bench.report import make_page
from demur.bench.spec import Spec
from demur.bench.store import read_results, write_run
from demur.bench.tables import make_tables
from demur.cli import app

COVERAGE, COST = {"coverage": 0.5}, {"cost": 0.2}
BOUND = {"max_risk": 0.1, "n_gold": 60}
KINDS = {"coverage": "coverage", "cost": "cost", "max_risk": "certificate"}


def add(folder, dial, accepted, errors, *, n=40, seed=0, method="pl-knn", holds=True, kind=None):
    """A run that accepts the first so many, and is wrong in the first so many of these."""
    spec = Spec("toy", method, "real", seed, dial=dial)
    wrong = np.arange(n) < errors
    score = (np.arange(n) < accepted).astype(float)
    zeros = np.zeros(n, dtype=int)
    promise = {
        "kind": kind or KINDS[next(iter(dial))],
        "holds": holds,
        "statement": "said",
        "rests_on": ["this"],
        "coverage": 0.5,
    }
    facts = {"threshold": 0.5, "promise": promise, "n_aside": 40, "seconds_fit": 1.0}
    write_run(folder, spec, facts, Judged(np.arange(n), zeros, wrong.astype(int), score, score))


def table_of(folder):
    return {c.name: c for c in promises_table(read_results(folder)).columns}, promises_table(
        read_results(folder)
    ).cells


def test_a_certificate_by_hand(tmp_path):
    add(tmp_path, BOUND, 20, 1, seed=0)  # 5 %
    add(tmp_path, BOUND, 20, 3, seed=1)  # 15 %, but chance shows so many
    add(tmp_path, BOUND, 20, 6, seed=2)  # 30 %
    add(tmp_path, BOUND, 0, 0, seed=3, holds=False)
    add(tmp_path, BOUND, 0, 0, seed=4)  # promised, and nothing to see it by
    told = measure_promises(read_results(tmp_path))
    assert told["promised"].tolist() == [1, 1, 1, 0, 1]
    assert told["coverage"].tolist() == [0.5, 0.5, 0.5, 0, 0]
    np.testing.assert_allclose(told["risk"], [0.05, 0.15, 0.3, np.nan, np.nan])
    np.testing.assert_array_equal(told["over_bound"], [0, 1, 1, np.nan, np.nan])
    np.testing.assert_array_equal(told["kept"], [1, 1, 0, np.nan, np.nan])
    for errors, kept in ((1, 1), (3, 1), (6, 0)):
        chance = stats.binomtest(errors, 20, 0.1, alternative="greater").pvalue
        assert (chance > 0.05) == kept
    columns, cells = table_of(tmp_path)
    mean = {name: cells["pl-knn", column].mean for name, column in columns.items()}
    assert mean == pytest.approx(
        {
            "promised": 80,
            "coverage": 30,
            "accuracy of the accepted": 100 - 50 / 3,
            "risk": 0.5 / 3,
            "over the bound": 200 / 3,
            "kept": 200 / 3,
        }
    )


def test_a_coverage_is_kept_where_chance_allows_it():
    """Compared with halves of random numbers, whose share accepted is counted."""
    rng = np.random.default_rng(0)
    n_batch, n, wanted = 30, 20, 0.8
    left = round((n_batch + 1) * (1 - wanted))
    batch = np.sort(rng.random((100_000, n_batch)), axis=1)
    accepted = (rng.random((100_000, n)) > batch[:, left - 1 : left]).sum(axis=1)
    low = [np.mean(accepted <= k) for k in range(n + 1)]
    high = [np.mean(accepted >= k) for k in range(n + 1)]
    for k in range(n + 1):
        assert min(abs(low[k] - 0.025), abs(high[k] - 0.025)) > 0.001  # clear of the simulation
        assert _coverage_kept(wanted, n_batch, k, n) == (min(low[k], high[k]) > 0.025)
    kept = np.mean([_coverage_kept(wanted, n_batch, k, n) for k in accepted[:5000]])
    assert kept >= 0.95
    assert _coverage_kept(1.0, n_batch, n, n)
    assert not _coverage_kept(1.0, n_batch, n - 1, n)


def test_a_cost_promises_nothing_and_its_risk_counts_rejects(tmp_path):
    add(tmp_path, COST, 30, 3, holds=False)
    add(tmp_path, COST, 40, 8, holds=False, seed=1)
    told = measure_promises(read_results(tmp_path))
    assert told["risk"].tolist() == pytest.approx([3 / 40 + 0.2 * 0.25, 8 / 40])
    assert told[["kept", "over_bound"]].isna().all(axis=None)
    columns, _ = table_of(tmp_path)
    assert list(columns) == ["promised", "coverage", "accuracy of the accepted", "risk"]
    assert "nothing is promised" in str(promises_table(read_results(tmp_path)))


def test_an_ambiguity_is_conditional_in_every_output(tmp_path):
    dial = {"max_risk": 0.1, "ambiguity": 0.5}
    add(tmp_path, dial, 20, 1, kind="conditional bound")
    results = read_results(tmp_path)
    table = promises_table(results)
    for text in (str(table), table.to_markdown(), table.to_latex()):
        assert "max_risk=0.1, ambiguity=0.5 (conditional)".replace("_", "") in text.replace(
            "\\_", ""
        ).replace("_", "")
        assert "which nothing checks" in " ".join(text.split())
    assert measure_promises(results)["dial"][0].endswith("(conditional)")
    assert "ambiguity=0.5 (conditional)" in make_page(results, "toy")
    shown = CliRunner().invoke(app, ["bench", "summary", str(tmp_path)]).output
    assert "(conditional)" in shown


def test_several_dials_stand_side_by_side(tmp_path):
    add(tmp_path, COVERAGE, 20, 1)
    add(tmp_path, BOUND, 20, 1, seed=1)
    columns = promises_table(read_results(tmp_path)).columns
    assert [c.group for c in columns] == ["coverage=0.5"] * 5 + ["max_risk=0.1, n_gold=60"] * 6


def test_tables_summary_and_report_tell_of_promises(tmp_path):
    for seed in range(2):
        for method in ("dst-pll", "pl-knn"):
            add(tmp_path, COVERAGE, 20, 1 + seed, seed=seed, method=method)
    results = read_results(tmp_path)
    assert make_tables(results)[-1].name == "promises"
    shown = CliRunner().invoke(app, ["bench", "summary", str(tmp_path)]).output.splitlines()
    line = dict(zip(shown[0].split(","), shown[1].split(","), strict=True))
    assert line["dial"] == "coverage=0.5"
    assert [float(line[k]) for k in ("promised", "risk", "kept", "coverage")] == [1, 0.075, 1, 0.5]
    assert line["over_bound"] == ""
    page = make_page(results, "toy")
    assert "What the dial coverage=0.5 promised" in page
    assert "<dt>Dials</dt><dd>coverage=0.5</dd>" in page
    written = CliRunner().invoke(app, ["bench", "tables", str(tmp_path)])
    assert written.exit_code == 0
    assert (tmp_path / "tables" / "promises.csv").exists()


def test_without_a_dial_nothing_is_told(tmp_path):
    judged = Judged(*(np.zeros(5, dtype=int) for _ in range(3)), np.ones(5), np.ones(5))
    write_run(tmp_path, Spec("toy", "pl-knn", "real", 0), {"threshold": 0.5}, judged)
    results = read_results(tmp_path)
    assert not has_dials(results.runs)
    assert "promises" not in {table.name for table in make_tables(results)}
    header = CliRunner().invoke(app, ["bench", "summary", str(tmp_path)]).output.splitlines()[0]
    assert "dial" not in header
    measures = measure_runs(results, reference="dst-pll")
    assert header.split(",") == list(summarise(measures, results.runs).columns)
    assert json.loads(Spec("toy", "pl-knn", "real", 0).to_json()).get("dial") is None
