"""Fixtures and paths that several rooms share."""

import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def reference_folder() -> Path:
    """Where the public implementation's answers lie, if they are here."""
    return Path(os.environ.get("DEMUR_REFERENCE", ROOT.parent / "shared" / "reference"))
