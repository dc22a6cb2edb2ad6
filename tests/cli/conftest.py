"""The commands run in this process, as from a terminal."""

import io
import sys

import pytest

from demur.cli import main
from small_tables import LABELS, write_csv


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def demur(capfdbinary, monkeypatch):
    def run(*words, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["demur", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfdbinary.readouterr()
        return Result(ended.value.code or 0, out, err.decode())

    return run


@pytest.fixture
def tables(tmp_path, rng, monkeypatch):
    """train.csv and test.csv of three clouds, in the current folder."""
    monkeypatch.chdir(tmp_path)
    y = rng.integers(3, size=120)
    X = (rng.normal(size=(120, 3)) + 3 * y[:, None]).round(3)
    for name, start, stop in (("train.csv", 0, 80), ("test.csv", 80, 120)):
        rows = [
            [f"r{i}", *X[i], LABELS[y[i]], "|".join(sorted({LABELS[y[i]], LABELS[i % 3]}))]
            for i in range(start, stop)
        ]
        write_csv(tmp_path / name, ["id", "f1", "f2", "f3", "label", "labels"], rows)
    return tmp_path


@pytest.fixture
def fitted(demur, tables):
    done = demur(
        "fit", "train.csv", "--features", "f1:f3", "--candidates", "labels", "--id", "id",
        "-o", "m.demur",
    )  # fmt: skip
    assert done.code == 0, done.err
    return tables
