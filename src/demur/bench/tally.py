"""The count of a grid's runs while it is worked off."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demur.bench.spec import Spec


@dataclass
class Tally:
    """How far a grid is.

    Attributes
    ----------
    specs : list of Spec
        The grid.
    jobs : int
        Workers.
    status : dict
        "ok", "failed" or "running" of each run that is no longer waiting, by its run_id.
    facts : dict
        What is known of each finished run, by its run_id.
    old : int
        Runs that were finished before.
    elsewhere : int
        Runs that another process is at work on.
    unrecorded : dict
        Why the outcome of a run could not be written, by its run_id.
    damaged : list of Path
        Files that could not be read, whose runs are done anew.
    """

    specs: list[Spec]
    jobs: int = 1
    status: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    old: int = 0
    elsewhere: int = 0
    unrecorded: dict[str, str] = field(default_factory=dict)
    damaged: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start = time.perf_counter()
        self._lock = threading.Lock()

    def start(self, specs: Iterable[Spec]) -> None:
        """Runs are given to a worker."""
        with self._lock:
            self.status.update({spec.run_id: "running" for spec in specs})

    def finish(self, spec: Spec, status: str, facts: Mapping[str, Any]) -> None:
        """A run is ok, or failed."""
        with self._lock:
            self.status[spec.run_id] = status
            self.facts[spec.run_id] = facts

    def lose(self, spec: Spec, why: str) -> None:
        """The outcome of a run could not be written."""
        with self._lock:
            self.status[spec.run_id] = "failed"
            self.unrecorded[spec.run_id] = why

    def count(self, specs: Iterable[Spec] | None = None) -> Counter[str]:
        """Number of runs that are "ok", "failed", "running" and "waiting"."""
        with self._lock:
            chosen = self.specs if specs is None else specs
            return Counter(self.status.get(spec.run_id, "waiting") for spec in chosen)

    def failures(self) -> list[tuple[Spec, str]]:
        """Each failed run, with the reason."""
        with self._lock:
            return [
                (spec, self.unrecorded.get(spec.run_id) or self._error(spec))
                for spec in self.specs
                if self.status.get(spec.run_id) == "failed"
            ]

    def _error(self, spec: Spec) -> str:
        return str(self.facts.get(spec.run_id, {}).get("error", "unknown"))

    @property
    def elapsed(self) -> float:
        """Seconds since the count began."""
        return time.perf_counter() - self._start

    def seconds(self, spec: Spec) -> float | None:
        """Seconds of work for a finished run."""
        facts = self.facts.get(spec.run_id)
        if facts is None or self.status.get(spec.run_id) != "ok":
            return None
        return sum(float(facts.get(f"seconds_{k}") or 0) for k in ("prepare", "fit", "predict"))

    def seconds_left(self) -> float | None:
        """An estimate, from the mean of finished runs of the same method and dataset.

        Where there are none it is the mean of the method's, then of all.
        """
        with self._lock:
            keys = (lambda s: (s.method, s.dataset), lambda s: s.method, lambda s: None)
            sums: dict[Any, list[float]] = {}
            for spec in self.specs:
                taken = self.seconds(spec)
                if taken is not None:
                    for key in keys:
                        sums.setdefault(key(spec), []).append(taken)
            if not sums:
                return None
            left = 0.0
            for spec in self.specs:
                if self.status.get(spec.run_id, "waiting") in ("waiting", "running"):
                    taken_by = next(sums[k] for key in keys if (k := key(spec)) in sums)
                    left += sum(taken_by) / len(taken_by)
            return left / self.jobs
