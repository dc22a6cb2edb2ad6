"""Some hundred broken files; benchmarks/fuzz.py tries 100,000 of them."""

import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


def test_broken_files_give_clear_errors_and_nothing_else():
    done = subprocess.run(
        [sys.executable, FUZZ, "--inputs", "400"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.startswith("400 inputs, ")
    assert "model refused" in done.stdout
    assert "table read" in done.stdout
