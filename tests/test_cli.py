import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import demur
from demur.cli import app
from demur.demo import MEASURES, run_demo
from places import ROOT


def invoke(*arguments):
    mpl.use("Agg")
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})


def test_help_needs_no_library():
    code = """
import sys
sys.argv = ["demur", "--help"]
from demur.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
assert not {"numpy", "sklearn", "numba", "matplotlib", "torch"} & set(sys.modules)
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "demo" in shown


def test_version_and_no_arguments():
    assert invoke("--version").output.strip() == f"demur {demur.__version__}"
    assert "Usage" in invoke().output


def test_demo_shows_table_explanation_and_picture(tmp_path):
    result = invoke("demo", "--seeds", "2", "--out", str(tmp_path / "new" / "folder"))
    assert result.exit_code == 0
    for words in ("dst-pll", "pl-knn", "AURC", "accuracy of accepted", "coverage"):
        assert words in result.output
    assert "Demurs: " in result.output
    assert "The 10 nearest training instances" in result.output
    picture = tmp_path / "new" / "folder" / "trade-off.png"
    assert str(picture) in result.output.replace("\n", "")
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("L"))
    assert (pixels < 128).mean() > 0.005  # it is not an empty sheet


def test_demo_says_why_a_folder_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    result = invoke("demo", "--seeds", "1", "--out", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "cannot write" in result.output
    assert "Traceback" not in result.output


def test_demo_numbers_are_those_of_the_predictions():
    calls = []
    shown = run_demo(2, advance=lambda: calls.append(1))
    assert len(calls) == 4
    for result in shown.results:
        for seed in range(2):
            right = result.predicted[seed] == result.truth[seed]
            accepted = result.scores[seed] > result.threshold
            values = result.measures[seed]
            assert values["accuracy"] == right.mean() > 0.9
            assert values["coverage"] == accepted.mean()
            assert values["accuracy of accepted"] == right[accepted].mean() >= right.mean()
        mean, deviation = result.summary("accuracy")
        both = [row["accuracy"] for row in result.measures]
        assert (mean, deviation) == pytest.approx((np.mean(both), abs(both[0] - both[1]) / 2**0.5))
        assert set(values) == set(MEASURES)
    assert not shown.explanation.accepted
    assert shown.digit.shape == (8, 8)


def test_readme_runs_as_written():
    code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) == 10
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "accepted" in shown.splitlines()[0]
    assert shown.splitlines()[1].startswith("Demurs: ")


def test_readme_links_lead_to_files():
    text = (ROOT / "README.md").read_text()
    for target in ("docs/trade-off.png", "CITATION.cff"):
        assert f"({target})" in text
        assert Path(ROOT / target).is_file()
