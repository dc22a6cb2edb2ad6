"""The plan of a certificate, kept beside the model, and what the gold labels gave.

A certificate is worth something only if its tests were fixed before the labels were seen, and
made once. So plan and outcome belong to one model, and are known by the checksum of its file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from demur.files.errors import DataError, UsageError
from demur.files.output import atomic
from demur.reject import Plan, Promise
from demur.reject.scores import fingerprints

FORMAT = "demur-plan"


@dataclass
class PlanFile:
    """A plan for a model file.

    Attributes
    ----------
    path : Path
    model : str
        SHA-256 of the model file.
    plan : Plan
    group_column : str or None
    tested : str or None
        Checksum of the gold that was tested, if any was.
    promise : Promise or None
        What it gave.
    """

    path: Path
    model: str
    plan: Plan
    group_column: str | None = None
    tested: str | None = None
    promise: Promise | None = None

    @classmethod
    def of(cls, model_path: str | Path) -> Self | None:
        """The plan that lies beside a model, if there is one."""
        path = place_of(model_path)
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}.") from None
        try:
            known = json.loads(text)
            if known["format"] != FORMAT:
                raise ValueError("it is of another format")
            promise = known["promise"]
            return cls(
                path,
                str(known["model"]),
                _read_plan(known["plan"]),
                known["group_column"],
                known["tested"],
                None if promise is None else _read_promise(promise),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is no plan, or is damaged: {error}.") from None

    def write(self) -> None:
        """Write it beside the model."""
        plan = asdict(self.plan) | {
            "region": _finite(self.plan.region),
            "thresholds": [_finite(t) for t in self.plan.thresholds.tolist()],
            "coverages": self.plan.coverages.tolist(),
            "rows": None,
            "prints": None if self.plan.prints is None else self.plan.prints.tolist(),
        }
        promise = None if self.promise is None else asdict(self.promise)
        if promise is not None:
            promise["threshold"] = _finite(promise["threshold"])
        known = {
            "format": FORMAT,
            "model": self.model,
            "plan": plan,
            "group_column": self.group_column,
            "tested": self.tested,
            "promise": promise,
        }
        with atomic(self.path) as out:
            out.write(json.dumps(known, indent=1, ensure_ascii=False, allow_nan=False).encode())

    def check_model(self, model_path: str | Path) -> None:
        """Refuse a plan for a model that was fitted or updated since."""
        if checksum(model_path) != self.model:
            raise DataError(
                f"{model_path} has changed since {self.path} was written; what was planned or "
                "certified is for the model as it was. Plan again, and verify new rows."
            )

    def check_same_gold(self, X: NDArray[np.float64], labels: list[str]) -> None:
        """Refuse other gold than what was tested."""
        if gold_checksum(X, labels) != self.tested:
            raise UsageError(
                "this model has been tested with other gold labels; to draw again until a test "
                "passes would make the certificate worthless. Without --gold the outcome of that "
                "test is used."
            )

    def record(self, X: NDArray[np.float64], labels: list[str], promise: Promise) -> None:
        """Keep what a test gave."""
        self.tested, self.promise = gold_checksum(X, labels), promise
        self.write()


def place_of(model_path: str | Path) -> Path:
    """Where the plan for a model lies."""
    return Path(f"{model_path}.plan.json")


def checksum(path: str | Path) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def gold_checksum(X: NDArray[np.float64], labels: list[str]) -> str:
    """Of gold rows with their labels, in whatever order."""
    rows = sorted(zip(fingerprints(X).tolist(), labels, strict=True))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _finite(value: float) -> float | str:
    """JSON has no infinity."""
    return value if np.isfinite(value) else str(value)


def _read_plan(known: dict[str, Any]) -> Plan:
    prints = known["prints"]
    return Plan(
        max_risk=float(known["max_risk"]),
        confidence=float(known["confidence"]),
        n_gold=int(known["n_gold"]),
        region=float(known["region"]),
        region_coverage=float(known["region_coverage"]),
        thresholds=np.asarray([float(t) for t in known["thresholds"]]),
        coverages=np.asarray([float(c) for c in known["coverages"]]),
        expected_coverage=float(known["expected_coverage"]),
        chance=float(known["chance"]),
        prints=None if prints is None else np.asarray(prints, dtype=np.uint64),
    )


def _read_promise(known: dict[str, Any]) -> Promise:
    return Promise(
        str(known["kind"]),
        bool(known["holds"]),
        str(known["statement"]),
        tuple(map(str, known["rests_on"])),
        float(known["threshold"]),
        float(known["coverage"]),
    )
