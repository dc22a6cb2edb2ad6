"""Working off a grid: what is done, gone on with, failed and listed."""

import csv
import os
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from demur.bench import backends, store
from demur.bench.locks import try_lock
from demur.bench.run import run_grid
from demur.bench.spec import Spec
from demur.bench.store import files_of, path_of, read_results, read_run, write_run
from demur.bench.work import failure
from demur.methods.pl_knn import PlKnn

UNIFORM = {"n_noise": 1, "share": 0.5}
NETWORK = {"n_epochs": 1, "hidden_layer_sizes": [4]}


def spec(method="pl-knn", seed=0, dataset="iris", **more):
    return Spec(dataset, method, "uniform", seed, noise_parameters=UNIFORM, **more)


GRID = [spec(method, seed) for method in ("dst-pll", "pl-knn") for seed in range(2)]


def work(specs, out, **more):
    return run_grid(specs, out, jobs=1, device="cpu", **more)


def stamps(folder):
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in files_of(folder)}


def unfinished(folder):
    with (folder / "unfinished.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def told(monkeypatch):
    """Counts how often a run was done."""
    done: Counter[Spec] = Counter()
    run_task = backends.run_task

    def counted(specs, place):
        done.update(specs)
        return run_task(specs, place)

    monkeypatch.setattr(backends, "run_task", counted)
    return done


# ------------------------------------------------------------------------------ going on


def test_every_run_is_done_once_and_then_never_again(tmp_path, told):
    tally = work(GRID, tmp_path)
    assert tally.count() == {"ok": 4}
    assert tally.old == 0
    assert [path.stem for path in files_of(tmp_path)] == sorted(s.run_id for s in GRID)
    assert not list((tmp_path / "locks").iterdir())
    before = stamps(tmp_path)
    again = work(GRID, tmp_path)
    assert again.old == 4
    assert stamps(tmp_path) == before
    assert set(told.values()) == {1}


def test_a_larger_grid_does_what_is_new(tmp_path, told):
    work(GRID[:1], tmp_path)
    assert work(GRID, tmp_path).old == 1
    assert told == Counter(GRID)
    assert read_results(tmp_path).runs["status"].tolist() == ["ok"] * 4


def test_what_is_missing_or_damaged_is_done_anew_and_is_the_same(tmp_path, told):
    work(GRID, tmp_path)
    rows = {path.stem: read_run(path)[1]["digest"] for path in files_of(tmp_path)}
    gone, cut = (path_of(tmp_path, s.run_id) for s in GRID[:2])
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-7])
    tally = work(GRID, tmp_path)
    assert tally.damaged == [cut]
    assert told == Counter(GRID) + Counter(GRID[:2])
    assert {p.stem: read_run(p)[1]["digest"] for p in files_of(tmp_path)} == rows


def test_a_folder_of_another_study_is_refused(tmp_path):
    work(GRID[:1], tmp_path)
    with pytest.raises(ValueError, match="holds dst-pll on iris, uniform, seed 0 with parameters"):
        work([spec("dst-pll", parameters={"n_neighbors": 3})], tmp_path)


def test_slips_are_told_before_anything_is_begun(tmp_path):
    with pytest.raises(ValueError, match="pl-knn has no parameter 'k'; it has .*n_neighbors"):
        work([spec(parameters={"k": 3})], tmp_path)
    with pytest.raises(FileNotFoundError, match="--only dataset!=ecoli"):
        work([spec(dataset="ecoli")], tmp_path, data=tmp_path)
    for wrong, match in (
        ({"backend": "threads"}, "there are loky, threading, dask, ray"),
        ({"scheduler": "tcp://here:1"}, "the backend loky has no scheduler"),
        ({"stack": 0}, "stack is 0"),
        ({"lanes": -1}, "lanes is -1"),
        ({"lanes": 1, "backend": "threading"}, "lanes are processes here"),
    ):
        with pytest.raises(ValueError, match=match):
            work([spec("proden")], tmp_path, **wrong)
    with pytest.raises(ValueError, match="jobs is 0"):
        run_grid(GRID, tmp_path, jobs=0)
    assert not files_of(tmp_path)


def test_networks_without_their_gpu_are_told_before_anything_is_begun(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="'cuda:0' is not here: .* --device cpu"):
        run_grid([spec("proden"), spec()], tmp_path, jobs=1, device="cuda:0")
    assert not files_of(tmp_path)
    assert run_grid([spec("proden")], tmp_path, jobs=1, device="cuda", plan_only=True)
    assert run_grid([spec()], tmp_path, jobs=1, device="cuda").count() == {"ok": 1}


def test_an_encoder_is_trained_once_and_first_and_counted_in_what_is_left(tmp_path):
    pytest.importorskip("torch")
    encoder = {"kind": "vae", "n_components": 2, "hidden": 4, "n_epochs": 60}
    grid = [spec(method, encoder=encoder) for method in ("dst-pll", "pl-knn")]
    plan = work(grid, tmp_path, plan_only=True)
    assert len(plan.encoders) == 1
    assert plan.shares[0].tasks == 3
    assert plan.seconds_left() > plan.estimate(grid)
    tally = work(grid, tmp_path)
    assert tally.count() == {"ok": 2}
    assert tally.encoders == {}


def test_no_run_is_begun_whose_encoder_there_is_no_time_for(tmp_path):
    slow = {"kind": "vae", "n_epochs": 10**9}
    tally = work([spec(encoder=slow), spec("dst-pll")], tmp_path, budget=600.0)
    assert tally.count() == {"ok": 1, "waiting": 1}
    assert [line["why"] for line in unfinished(tmp_path)] == ["no time"]
    assert tally.encoders == {}


def test_a_plan_begins_nothing(tmp_path, told):
    tally = work(GRID, tmp_path / "new", plan_only=True)
    assert tally.count() == {"waiting": 4}
    (share,) = tally.shares
    assert (share.runs, share.tasks, share.workers) == (4, 4, 1)
    assert share.estimate == pytest.approx(tally.estimate(GRID))
    assert not told
    assert not (tmp_path / "new").exists()


def test_whoever_watches_sees_runs_begin_and_end(tmp_path):
    seen = []
    work(GRID, tmp_path, watch=lambda tally: seen.append(dict(tally.count())))
    assert seen[0] == {"waiting": 4}
    assert {"ok": 1, "running": 1, "waiting": 2} in seen
    assert seen[-1] == {"ok": 4}


# ------------------------------------------------------------------------------ failures


def test_a_methods_exception_is_a_recorded_failure(tmp_path, monkeypatch, told):
    monkeypatch.setattr(PlKnn, "fit", lambda self, X, S: 1 / 0)
    tally = work(GRID, tmp_path)
    assert tally.count() == {"ok": 2, "failed": 2}
    assert {str(s) for s, _ in tally.failures()} == {
        f"pl-knn on iris, uniform, seed {seed}" for seed in (0, 1)
    }
    runs = read_results(tmp_path).runs.set_index("method")
    assert runs.loc["pl-knn", "error"].tolist() == ["ZeroDivisionError: division by zero"] * 2
    assert runs.loc["dst-pll", "status"].tolist() == ["ok"] * 2
    assert {(line["method"], line["why"], line["seeds"]) for line in unfinished(tmp_path)} == {
        ("pl-knn", "failed", "0 1")
    }
    monkeypatch.undo()
    assert work(GRID, tmp_path).count() == {"ok": 2, "failed": 2}  # it would only fail again
    assert work(GRID, tmp_path, retry_failed=True).count() == {"ok": 4}
    assert not (tmp_path / "unfinished.csv").exists()


@pytest.mark.parametrize("error", [MemoryError(), OSError("no such share")])
def test_what_the_place_was_to_blame_for_is_tried_again(tmp_path, monkeypatch, error):
    def no(self, X, S):
        raise error

    monkeypatch.setattr(PlKnn, "fit", no)
    assert work(GRID, tmp_path).count() == {"ok": 2, "failed": 2}
    monkeypatch.undo()
    assert work(GRID, tmp_path).count() == {"ok": 4}


def test_a_result_that_does_not_fit_on_the_disk_is_a_recorded_failure(tmp_path, monkeypatch):
    write_table = store.pq.write_table

    def small(table, file, **how):
        if table.num_rows:
            file.write(b"half of it")
            raise OSError(28, "No space left on device")
        write_table(table, file, **how)

    monkeypatch.setattr(store.pq, "write_table", small)
    tally = work(GRID, tmp_path)
    assert tally.count() == {"failed": 4}
    assert not tally.unrecorded
    errors = set(read_results(tmp_path).runs["error"])
    assert errors == {"OSError: [Errno 28] No space left on device"}
    monkeypatch.undo()
    assert work(GRID, tmp_path).count() == {"ok": 4}


def test_files_that_may_not_grow_leave_nothing_behind(tmp_path):
    """The system refuses every byte, as a full disk does: nothing half, and the grid goes on."""
    code = (
        "import resource, sys\n"
        "from demur.bench import run\n"
        "from demur.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "sys.argv = ['demur', 'bench', 'run', sys.argv[1], '--out', sys.argv[2], '--jobs', '1']\n"
        "main()\n"
    )
    preset = tmp_path / "preset.toml"
    preset.write_text(
        'seeds = 2\nmethods = ["pl-knn"]\n[[grid]]\ndatasets = ["iris"]\nnoise = ["uniform"]\n'
        "[noise_parameters.uniform]\nn_noise = 1\n"
    )
    out = tmp_path / "out"
    ended = subprocess.run(
        [sys.executable, "-c", code, preset, out], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("not written: [Errno 27] File too large") == 2
    assert "0 of 2 runs are done" in ended.stdout
    assert [p for p in out.rglob("*") if p.is_file()] == []
    assert run_grid([spec(seed=0)], out, jobs=1).count() == {"ok": 1}


def test_a_failure_of_another_process_is_not_overwritten_by_chance(tmp_path):
    """A run that failed here and was done elsewhere since the survey is left as it is."""
    (run,) = GRID[-1:]
    write_run(tmp_path, run, failure(MemoryError()), None)
    claimed = try_lock(tmp_path / "locks" / run.run_id)
    tallies = []
    thread = threading.Thread(target=lambda: tallies.append(work([run], tmp_path)))
    thread.start()
    time.sleep(0.2)
    done = run_grid([run], tmp_path / "other", jobs=1)
    assert done.count() == {"ok": 1}
    os.replace(path_of(tmp_path / "other", run.run_id), path_of(tmp_path, run.run_id))
    before = stamps(tmp_path)
    claimed.release()
    thread.join()
    assert tallies[0].count() == {"ok": 1}
    assert stamps(tmp_path) == before


# --------------------------------------------------------------------- several processes


def test_two_on_one_folder_share_the_work(tmp_path, told):
    grid = [spec("pl-knn", seed) for seed in range(12)]
    tallies = []
    threads = [
        threading.Thread(
            target=lambda: tallies.append(run_grid(grid, tmp_path, jobs=2, backend="threading"))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [dict(tally.count()) for tally in tallies] == [{"ok": 12}] * 2
    assert told == Counter(grid)


def test_what_a_dead_process_held_is_taken_over(tmp_path, told):
    """The lock of a run is held until its holder is gone; then the run is done here."""
    held = spec(seed=1)
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom demur.bench.locks import try_lock\n"
        "lock = try_lock(Path(sys.argv[1]))\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    path = tmp_path / "locks" / held.run_id
    other = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"held\n"
    elsewhere = []

    def watch(tally):
        elsewhere.append(tally.elsewhere)
        if tally.elsewhere:
            other.kill()
            other.wait()

    tally = work([spec(seed=0), held], tmp_path, watch=watch)
    other.stdout.close()
    assert max(elsewhere) == 1
    assert tally.count() == {"ok": 2}
    assert told == Counter([spec(seed=0), held])


# -------------------------------------------------------------------------------- budget


def test_what_would_end_too_late_is_listed_and_done_the_next_time(tmp_path, told):
    tally = work(GRID, tmp_path, budget=0.0)
    assert sorted(map(str, tally.put_off)) == sorted(map(str, GRID))
    lines = unfinished(tmp_path)
    assert {line["why"] for line in lines} == {"no time"}
    assert {(line["method"], line["seeds"]) for line in lines} == {
        ("dst-pll", "0 1"),
        ("pl-knn", "0 1"),
    }
    assert not told
    assert work(GRID, tmp_path, budget=3600.0).count() == {"ok": 4}
    assert not (tmp_path / "unfinished.csv").exists()


# -------------------------------------------------------------------------------- stacks


def test_networks_of_one_dataset_are_one_task_and_pieces_if_asked(tmp_path):
    pytest.importorskip("torch")
    grid = [spec("proden", seed, parameters=NETWORK) for seed in range(3)]
    work(grid, tmp_path / "whole")
    work(grid, tmp_path / "pieces", stack=2)
    stacks = [
        sorted(read_results(tmp_path / name).runs["stack"].tolist()) for name in ("whole", "pieces")
    ]
    assert stacks == [[3, 3, 3], [1, 2, 2]]
