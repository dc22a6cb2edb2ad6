"""What the README and the examples promise runs as it is written."""

import importlib.util
import re
import runpy
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from demur.noise import class_dependent_noise
from places import ROOT

EXAMPLE = ROOT / "examples" / "own_method.py"


def imported(path):
    """A file as the module that it would be beside a user's own, so that pickle finds it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OWN = imported(EXAMPLE).NearestCenter


def test_the_ten_lines_of_the_readme_run_as_written(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line for line in code.splitlines() if line and not line.startswith(("from", "import"))]
    assert len(lines) <= 10
    there = {}
    exec(code, there)
    said = capsys.readouterr().out
    assert re.match(r"\d+ of 397 accepted, \d+\.\d% of them right\n", said)
    assert "Delta = " in said
    assert "nearest training instances" in said
    withheld = there["decisions"].mask.argmax()
    assert there["decisions"].mask[withheld]
    assert 0.5 < there["decisions"].count() / 397 < 1
    assert there["right"] > 0.95


def test_the_readme_names_only_files_that_are_there():
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(((?!http)[^)]+)\)", text)
    named = re.findall(r"python ((?:benchmarks|examples)/\w+\.py)", text)
    assert links
    assert named
    for path in (*links, *named):
        assert (ROOT / path).exists(), path


def test_a_method_of_ones_own_takes_30_lines_and_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    of_all, of_accepted = map(float, re.findall(r"([\d.]+)%", said))
    assert of_accepted > of_all > 80
    source = EXAMPLE.read_text()
    body = re.search(r"^class NearestCenter.*?(?=^if )", source, re.DOTALL | re.MULTILINE)
    assert body
    assert len(body[0].splitlines()) <= 30


def test_a_method_of_ones_own_keeps_the_contract():
    X, y = load_digits(return_X_y=True)
    candidates = class_dependent_noise(y[:600], share=0.7, random_state=0)
    model = OWN().fit(X[:600], candidates)
    assert candidates.contains(model.transduction_).all()
    assert np.mean(model.transduction_ == y[:600]) > 0.8
    np.testing.assert_allclose(model.predict_proba(X[600:]).sum(axis=1), 1)
    decided = model.decide(X[600:])
    np.testing.assert_array_equal(decided.mask, model.accept_score(X[600:]) <= 0.9)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(X[:, :3])


@parametrize_with_checks([OWN()])
def test_scikit_learn_estimator_checks_of_ones_own_method(estimator, check):
    check(estimator)
