"""`demur bench run` and its kin: options, progress, plan, and what the exit code says."""

import pytest
from rich.console import Console
from typer.testing import CliRunner

from demur.bench.spec import Spec
from demur.bench.store import read_results
from demur.bench.tally import Tally
from demur.cli import app, progress
from demur.methods.pl_knn import PlKnn

PRESET = """
seeds = 2
methods = ["dst-pll", "pl-knn"]
[noise_parameters.uniform]
n_noise = 1
[[grid]]
datasets = ["iris", "wine"]
noise = ["uniform"]
"""


@pytest.fixture
def preset(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(PRESET)
    return path


def invoke(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "100"})


def runs(preset, out, *more):
    return invoke("run", preset, "--out", out, "--jobs", 1, *more)


def test_run_with_filters_then_the_rest(preset, tmp_path):
    out = tmp_path / "out"
    first = runs(preset, out, "--only", "dataset=iris", "--only", "seed=0")
    assert first.exit_code == 0, first.output
    assert "2 of 2 runs are done (0 were before), 0 failed" in first.output
    assert "runs: 2 in 2 tasks with 1 worker(s), about" in first.output
    assert "took" in first.output
    assert "expected was about" in first.output
    rest = runs(preset, out, "--only", "method!=pl-knn")
    assert "4 of 4 runs are done (1 were before)" in rest.output
    shown = read_results(out).runs
    assert sorted(shown["method"]) == ["dst-pll"] * 4 + ["pl-knn"]


def test_a_method_beside_the_presets(preset, tmp_path):
    out = tmp_path / "out"
    told = runs(preset, out, "--add-method", "ipal", "--only", "dataset=iris", "--seeds", 1)
    assert "3 of 3 runs are done" in told.output
    assert set(read_results(out).runs["method"]) == {"dst-pll", "pl-knn", "ipal"}
    assert "names 'nosuch'; the methods are" in runs(preset, out, "--add-method", "nosuch").output


def test_a_plan(preset, tmp_path):
    out = tmp_path / "out"
    plan = runs(preset, out, "--plan")
    assert plan.exit_code == 0
    lines = {line.split()[0]: line.split() for line in plan.output.splitlines() if line}
    assert lines["iris"][1:3] == lines["dst-pll"][1:3] == ["4", "4"]
    assert "8 runs: 0 done, 0 failed, 8 to do" in plan.output
    assert "only the order of magnitude" in plan.output
    assert not out.exists()
    runs(preset, out, "--only", "dataset=iris")
    again = runs(preset, out, "--plan").output
    assert "8 runs: 4 done, 0 failed, 4 to do" in again
    assert "order of magnitude" not in again


def test_failures_are_told_and_the_exit_code_is_1(preset, tmp_path, monkeypatch):
    monkeypatch.setattr(PlKnn, "fit", lambda self, X, S: 1 / 0)
    told = runs(preset, tmp_path / "out", "--only", "dataset=iris")
    assert told.exit_code == 1
    assert "failed: pl-knn on iris, uniform, seed 1: ZeroDivisionError" in told.output
    assert "2 of 4 runs are done (0 were before), 2 failed" in told.output
    assert "unfinished.csv" in told.output


def test_what_there_was_no_time_for_is_told(preset, tmp_path):
    told = runs(preset, tmp_path / "out", "--budget", "0s")
    assert told.exit_code == 0
    assert "Not begun, for want of time" in told.output
    assert "  dst-pll on iris: 2 run(s), about" in told.output


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (["--only", "dataset=irs"], "no run has the dataset 'irs'; there are iris, wine"),
        (["--only", "colour=red"], "runs cannot be told by 'colour'"),
        (["--budget", "soon"], "'soon' is no time; write 90s, 20m or 1h30m."),
        (["--backend", "slurm"], "the backend is 'slurm'; there are loky, threading, dask, ray."),
        (["--scheduler", "tcp://x:1"], "the backend loky has no scheduler"),
    ],
)
def test_slips_are_told_in_one_line_and_the_exit_code_is_2(preset, tmp_path, more, match):
    told = runs(preset, tmp_path / "out", *more)
    assert told.exit_code == 2
    assert match in told.output
    assert told.output.startswith("demur: ")
    assert told.output.count("\n") == 1


def test_no_preset(tmp_path):
    told = runs("quikc", tmp_path / "out")
    assert told.exit_code == 2
    assert "neither a preset (paper, paper-text, quick, tabular) nor a TOML file" in told.output


def test_list():
    lines = {line.split()[0]: line.split()[1] for line in invoke("list").output.splitlines()}
    assert lines == {"paper": "1,600", "paper-text": "1,600", "quick": "180", "tabular": "1,150"}


def test_summary(preset, tmp_path):
    out = tmp_path / "out"
    runs(preset, out, "--only", "dataset=iris")
    shown = invoke("summary", out).output.splitlines()
    assert len(shown) == 3
    assert shown[0].startswith("dataset,classes,noise,method,")
    file = tmp_path / "new" / "summary.csv"
    assert invoke("summary", out, "--out", file).exit_code == 0
    assert file.read_text().splitlines() == shown


def test_ctrl_c_says_that_what_is_finished_is_kept(preset, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("demur.bench.run.unordered", interrupted)
    told = runs(preset, tmp_path / "out")
    assert told.exit_code == 130
    assert "interrupted; what is finished is kept" in told.output


def test_the_live_table_has_a_line_for_each_method():
    specs = [Spec("iris", m, "uniform", s) for m in ("dst-pll", "ipal") for s in range(4)]
    tally = Tally(specs)
    tally.start(specs[:3])
    tally.finish(specs[0], "ok", {"seconds_fit": 90.0})
    tally.finish(specs[1], "failed", {"error": "no"})
    console = Console(width=100, record=True, file=None)
    with console.capture() as captured:
        console.print(progress.progress_table(tally))
    text = captured.get()
    cells = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.split()}
    assert cells["method"] == ["done", "running", "failed", "waiting", "work"]
    assert cells["dst-pll"] == ["1", "1", "1", "1", "1", "min", "30", "s"]
    assert cells["ipal"] == ["-", "-", "-", "4", "0", "s"]
    assert cells["all"] == ["1", "1", "1", "5"]
    assert "2 of 8" in text
    assert "left" in text
