"""Kill `demur bench run` at random moments, go on, and compare with an unbroken run.

python benchmarks/crash.py --kills 20

A life of the command is ended by SIGKILL, which no program can catch: every second time the
main process alone, else its workers with it. In every third life two commands work on the folder
at once, and both are killed. Every fourth dies at any time after its start, the others once they
have written something. Checked after each death: every file of results can be read whole, and
none that was there before has changed. Checked at the end: the results are those of an unbroken
run; to the bit, and of networks, which may have been trained in other company, to the sixth
digit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from demur.bench.grid import expand, read_preset
from demur.bench.run import run_grid
from demur.bench.store import files_of, read_run, rows_digest

PRESET = """
title = "To be killed"
seeds = {seeds}
methods = {methods}

[noise_parameters.uniform]
n_noise = 1

[parameters.proden]
n_epochs = 5

[[grid]]
datasets = {datasets}
noise = ["uniform", "class-dependent"]
"""
NETWORKS = ("proden",)
COMMAND = (sys.executable, "-c", "from demur.cli import main; main()", "bench", "run")


def start(preset: Path, out: Path) -> subprocess.Popen[bytes]:
    arguments = (*COMMAND, str(preset), "--out", str(out), "--jobs", "2", "--stack", "4")
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, start_new_session=True)


def stamps(out: Path) -> dict[str, tuple[int, int]]:
    """Of each file, what changes when it is written anew."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files_of(out)}


def kill_some(preset: Path, out: Path, kills: int, longest: float, chance: random.Random) -> int:
    """Lives that end early; gives the number of processes that were killed."""
    before: dict[str, tuple[int, int]] = {}
    died = 0
    for life in range(kills):
        processes = [start(preset, out) for _ in range(2 if life % 3 == 2 else 1)]
        if life % 4 != 3:  # every fourth is killed whenever, the others at work
            wait_for_results(processes, out, len(before))
        time.sleep(chance.uniform(0.0, longest))
        alive = [process for process in processes if process.poll() is None]
        for process in alive:
            if life % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        died += len(alive)
        for path in files_of(out):
            read_run(path)  # raises if it is not whole
        after = stamps(out)
        changed = [name for name, stamp in before.items() if after.get(name) != stamp]
        assert not changed, f"done again after kill {life}: {changed}"
        before = after
        print(f"kill {life + 1}: {len(after)} results", file=sys.stderr, flush=True)
        if not alive:
            break
    assert start(preset, out).wait() == 0, "the command failed"
    after = stamps(out)
    assert all(after[name] == stamp for name, stamp in before.items()), "a run was done twice"
    return died


def wait_for_results(processes: list[subprocess.Popen[bytes]], out: Path, there: int) -> None:
    while len(files_of(out)) <= there and any(p.poll() is None for p in processes):
        time.sleep(0.01)


def compare(one: Path, other: Path) -> dict[str, int]:
    """Numbers of runs, of those equal to the bit, and of networks equal but for rounding."""
    names = [path.name for path in files_of(one)]
    assert names == [path.name for path in files_of(other)], "the runs are not the same"
    equal = near = 0
    for a, b in zip(files_of(one), files_of(other), strict=True):
        (rows, facts), (others, _) = read_run(a), read_run(b)
        assert facts["status"] == "ok", facts["error"]
        if rows_digest(rows) == rows_digest(others):
            equal += 1
            continue
        assert facts["spec"]["method"] in NETWORKS, f"{facts['spec']} differs"
        for name in ("accept_score", "max_proba"):
            np.testing.assert_allclose(rows[name], others[name], atol=1e-6)
        near += 1
    return {"runs": len(names), "equal": equal, "equal_but_for_rounding": near}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--datasets", nargs="+", default=["digits", "wine", "iris"])
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["dst-pll", "pl-knn", "ipal", "pl-svm", "pl-ecoc", "proden"],
    )
    parser.add_argument("--longest", type=float, default=2.0, help="Seconds at work, at most.")
    parser.add_argument("--random-state", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        preset = Path(folder) / "crash.toml"
        lists = {"methods": json.dumps(given.methods), "datasets": json.dumps(given.datasets)}
        preset.write_text(PRESET.format(seeds=given.seeds, **lists))
        broken, whole = Path(folder) / "broken", Path(folder) / "whole"
        chance = random.Random(given.random_state)
        died = kill_some(preset, broken, given.kills, given.longest, chance)
        run_grid(expand(read_preset(preset)), whole, jobs=1, device="cpu")
        locks = [path.name for path in (broken / "locks").iterdir()]
        assert not locks, f"locks are left: {locks}"
        print(json.dumps({"kills": died, **compare(broken, whole)}))


if __name__ == "__main__":
    main()
