"""Seconds until Python and the command line are ready, each in a process of its own.

python benchmarks/startup.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from common import report, rounds

CODE = {
    "import demur": "import demur",
    "from demur import DstPll": "from demur import DstPll",
    "import numpy (to compare with)": "import numpy",
}


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    demur = str(Path(sys.executable).with_name("demur"))
    sides = [lambda code=code: run(sys.executable, "-c", code) for code in CODE.values()]
    times = rounds(*sides, lambda: run(demur, "--help"), repeats=7)
    for what, column in zip([*CODE, "demur --help"], times.T, strict=True):
        report(measure=what, median_s=float(sorted(column)[3]), quickest_s=float(column.min()))
