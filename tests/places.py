"""Where things lie beside the tests."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def reference_folder() -> Path:
    """Where the public implementation's answers lie, if they are here."""
    return Path(os.environ.get("DEMUR_REFERENCE", ROOT.parent / "shared" / "reference"))
