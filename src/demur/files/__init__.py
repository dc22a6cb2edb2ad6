"""From annotators' answers to decisions: files in, files out.

Each function here is what a command of the same name does: ``demur audit``, ``demur fit``,
``demur predict``, ``demur plan``, ``demur explain``, ``demur evaluate`` and ``demur fit --update``.
"""

from __future__ import annotations

from demur.files.auditing import audit
from demur.files.dialing import Dial
from demur.files.errors import DataError, UsageError
from demur.files.evaluating import evaluate
from demur.files.explaining import explain
from demur.files.fitting import fit
from demur.files.model_file import Model, load, save
from demur.files.planning import plan
from demur.files.predicting import predict
from demur.files.training import Wanted
from demur.files.updating import update

__all__ = [
    "DataError",
    "Dial",
    "Model",
    "UsageError",
    "Wanted",
    "audit",
    "evaluate",
    "explain",
    "fit",
    "load",
    "plan",
    "predict",
    "save",
    "update",
]
