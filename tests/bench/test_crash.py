"""Killed at any moment, the same command goes on: `benchmarks/crash.py` with few kills."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "crash.py"


@pytest.mark.skipif(not SCRIPT.is_file(), reason="benchmarks are not part of this package")
def test_results_after_kills_are_those_of_an_unbroken_run():
    small = ("--seeds", "3", "--datasets", "iris", "--methods", "dst-pll", "pl-knn")
    command = (sys.executable, SCRIPT, "--kills", "2", "--longest", "0.1", *small)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])
    assert told["kills"] >= 1
    assert (told["runs"], told["equal"]) == (12, 12)
