"""The count of a grid's runs while it is worked off."""

from __future__ import annotations

import csv
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.bench.costs import Costs, encoder_seconds, trains_networks
from demur.bench.spec import Spec

if TYPE_CHECKING:
    from demur.bench.backends import Task

UNFINISHED = "unfinished.csv"


@dataclass
class Share:
    """What a crew of workers is given.

    Attributes
    ----------
    name : str
    workers : int
    tasks, runs : int
    estimate : float
        Seconds until all is done.
    seconds : float or None
        How long it has been at it.
    elsewhere : int
        Runs of it that another process is at work on.
    """

    name: str
    workers: int
    tasks: int
    runs: int
    estimate: float
    seconds: float | None = None
    elsewhere: int = 0


@dataclass
class Tally:
    """How far a grid is.

    Attributes
    ----------
    specs : list of Spec
        The grid.
    jobs : int
        Workers.
    lanes : int
        Workers for networks alone; if there are none, the others train them.
    shares : list of Share
        What is to be done by the workers, and by the lanes if there are any.
    status : dict
        "ok", "failed" or "running" of each run that is no longer waiting, by its run_id.
    facts : dict
        What is known of each finished run, by its run_id.
    old : int
        Runs that were finished before.
    unrecorded : dict
        Why the outcome of a run could not be written, by its run_id.
    damaged : list of Path
        Files that could not be read, whose runs are done anew.
    put_off : list of Spec
        Runs that were not begun, as they would have taken longer than there was time.
    costs : Costs
        Estimates of seconds.
    encoders : dict
        Estimates of the encoders that are still to be trained for the runs.
    """

    specs: list[Spec]
    jobs: int = 1
    lanes: int = 0
    shares: list[Share] = field(default_factory=list)
    status: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    old: int = 0
    unrecorded: dict[str, str] = field(default_factory=dict)
    damaged: list[Path] = field(default_factory=list)
    put_off: list[Spec] = field(default_factory=list)
    costs: Costs = field(default_factory=Costs)
    encoders: dict[str | None, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._start = time.perf_counter()
        self._lock = threading.Lock()
        self._begun: dict[str, tuple[float, int]] = {}  # when, and how many together

    def start(self, specs: Sequence[Spec]) -> None:
        """Runs are given to a worker, which does them in one go."""
        with self._lock:
            now = time.perf_counter()
            self.status.update({spec.run_id: "running" for spec in specs})
            self._begun.update({spec.run_id: (now, len(specs)) for spec in specs})

    def finish(self, spec: Spec, status: str, facts: Mapping[str, Any]) -> None:
        """A run is ok, or failed."""
        with self._lock:
            self.status[spec.run_id] = status
            self.facts[spec.run_id] = facts
            if status == "ok":
                self.costs.learn(spec, seconds_of(facts), str(facts.get("device", "cpu")))

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

    def seconds(self, specs: Iterable[Spec]) -> float:
        """Seconds of work that the finished among some runs took."""
        with self._lock:
            facts = [self.facts.get(spec.run_id, {}) for spec in specs]
        return sum(map(seconds_of, facts))

    def estimate(self, specs: Iterable[Spec]) -> float:
        """Seconds of work in some runs, for one worker."""
        with self._lock:
            return sum(self.costs.seconds(spec) for spec in specs)

    def estimate_of(self, task: Task) -> float:
        """Seconds of work in a task."""
        if task.kind == "runs":
            return self.estimate(task.specs)
        if task.kind == "features":
            return sum(encoder_seconds(spec, gpu=self.costs.gpu) for spec in task.specs)
        return 0.0

    def share(self, name: str, workers: int, tasks: Sequence[Task]) -> None:
        """Tell what a crew is given."""
        seconds = [self.estimate_of(task) for task in tasks]
        runs = sum(len(task.specs) for task in tasks if task.kind == "runs")
        estimate = max([sum(seconds) / workers, *seconds])
        self.shares.append(Share(name, workers, len(tasks), runs, estimate))

    @property
    def elsewhere(self) -> int:
        """Number of runs that another process is at work on."""
        return sum(share.elsewhere for share in self.shares)

    def seconds_left(self) -> float:
        """An estimate of the seconds until nothing waits any more."""
        left = {True: 0.0, False: 0.0}  # for lanes, for the others
        with self._lock:
            put_off = {spec.run_id for spec in self.put_off}
            for spec in self.specs:
                waits = self.status.get(spec.run_id, "waiting") in ("waiting", "running")
                if waits and spec.run_id not in put_off:
                    left[bool(self.lanes) and trains_networks(spec.method)] += self._left(spec)
            left[bool(self.lanes)] += sum(self.encoders.values())
        return max(left[True] / max(self.lanes, 1), left[False] / self.jobs)

    def _left(self, spec: Spec) -> float:
        expected = self.costs.seconds(spec)
        if self.status.get(spec.run_id) != "running":
            return expected
        begun, together = self._begun[spec.run_id]
        return max(0.0, expected - (time.perf_counter() - begun) / together)


def seconds_of(facts: Mapping[str, Any]) -> float:
    """Seconds of work for a finished run."""
    return sum(float(facts.get(f"seconds_{step}") or 0) for step in ("prepare", "fit", "predict"))


def list_unfinished(folder: Path, tally: Tally) -> Path | None:
    """Write which runs of a grid are not done, by setting and method, and why.

    Returns
    -------
    Path or None
        None if there are none; a list of an earlier time is then taken away.
    """
    path = folder / UNFINISHED
    put_off = {spec.run_id for spec in tally.put_off}
    groups: dict[tuple[str, ...], list[Spec]] = {}
    for spec in tally.specs:
        state = tally.status.get(spec.run_id, "waiting")
        if state != "ok":
            why = "no time" if spec.run_id in put_off else state
            groups.setdefault(
                (spec.dataset, spec.classes, spec.noise, spec.method, why), []
            ).append(spec)
    draft = path.with_suffix(".draft")
    try:
        if not groups:
            path.unlink(missing_ok=True)
            return None
        with draft.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(
                ["dataset", "classes", "noise", "method", "why", "seeds", "estimated_seconds"]
            )
            for key, specs in groups.items():
                seeds = " ".join(str(spec.seed) for spec in specs)
                lines.writerow([*key, seeds, f"{tally.estimate(specs):.1f}"])
        os.replace(draft, path)
    except OSError:  # a full disk; the end of the output tells what is not done, too
        with suppress(OSError):
            draft.unlink()
    return path
