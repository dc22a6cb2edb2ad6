"""A small table of clouds, as files, and the model fitted to it."""

import numpy as np
import pytest

from demur import files
from small_tables import LABELS, write_csv


@pytest.fixture
def clouds(rng):
    """Features, true labels and candidate sets of 150 rows; two clouds overlap."""
    y = rng.integers(3, size=150)
    centers = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    X = np.round(centers[y] + rng.normal(size=(150, 3)), 4)
    S = rng.random((150, 3)) < 0.3
    S[np.arange(150), y] = True
    sets = [[LABELS[j] for j in np.flatnonzero(row)] for row in S]
    return X, [LABELS[k] for k in y], sets


@pytest.fixture
def folder(tmp_path, clouds):
    """train.csv with candidates, new.csv with labels; both with ids."""
    X, y, sets = clouds
    header = ["id", "f1", "f2", "f3"]
    rows = [[f"r{i}", *x] for i, x in enumerate(X.tolist())]
    train = [[*row, "|".join(s)] for row, s in zip(rows[:100], sets, strict=False)]
    new = [[*row, label] for row, label in zip(rows[100:], y[100:], strict=True)]
    write_csv(tmp_path / "train.csv", [*header, "labels"], train)
    write_csv(tmp_path / "new.csv", [*header, "label"], new)
    return tmp_path


@pytest.fixture
def wanted():
    return files.Wanted(candidates="labels", id_column="id")


@pytest.fixture
def model(folder, wanted):
    files.fit(folder / "train.csv", folder / "model.demur", wanted=wanted, features="f1:f3")
    return folder / "model.demur"
