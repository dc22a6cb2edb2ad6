"""Work off a grid: whatever happens, the same call goes on where it stopped.

The process that calls `run_grid` alone writes results, and holds a lock on each run that it has
given to workers. A worker only computes, so that it may die, or be on another machine.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from demur.bench.backends import Task, alone, deaths, unordered, workers
from demur.bench.locks import Lock, try_lock
from demur.bench.spec import Spec
from demur.bench.store import DamagedFileError, files_of, path_of, read_run, write_run
from demur.bench.tally import Tally
from demur.bench.work import Outcome, Place, common_facts, failure, one_thread, stack_key
from demur.datasets import registry
from demur.datasets.files import locate
from demur.methods import method

POLL = 0.5  # seconds between looks at what other processes hold


def run_grid(
    specs: Iterable[Spec],
    out: str | Path,
    *,
    jobs: int = -1,
    backend: str = "loky",
    scheduler: str | None = None,
    device: str = "auto",
    data: str | Path | None = None,
    retry_failed: bool = False,
    budget: float | None = None,
    stack: int | None = None,
    watch: Callable[[Tally], object] = lambda tally: None,
) -> Tally:
    """Do all runs whose results are not in the folder yet.

    Parameters
    ----------
    specs : iterable of Spec
    out : path
        Folder of the results; made if missing. Several processes may work on it.
    jobs : int, default=-1
        Workers; -1 is as many as there are cores. A Dask or Ray cluster has its own number.
    backend : {"loky", "threading", "dask", "ray"}, default="loky"
        What `joblib` gives the work to.
    scheduler : str, optional
        Address of the Dask scheduler, or of the Ray cluster; by default one is started here.
    device : str, default="auto"
        Of the networks.
    data : path, optional
        Folder of the datasets, as `demur.datasets.load` takes it.
    retry_failed : bool, default=False
        Do again what failed before. What failed for want of something here, a file, a package,
        memory, or room on the disk, is always done again.
    budget : float, optional
        Seconds; what would probably not be done by then is not begun.
    stack : int, optional
        Most networks that are trained as one stack; by default all of a dataset and method.
        A stack is lost or kept as a whole when the process is killed.
    watch : callable
        Is given the tally whenever it changes.

    Returns
    -------
    Tally
    """
    specs = list(dict.fromkeys(specs))
    check_parameters(specs)
    grid = _Grid(specs, Path(out), device, data, budget, watch)
    grid.survey(retry_failed)
    grid.plan(stack)
    if scheduler is None:  # else the workers may be where the data is
        check_data((spec for task in grid.waiting for spec in task.specs), data)
    return grid.work(jobs, backend, scheduler)


def make_tasks(specs: Iterable[Spec], stack: int | None = None) -> list[Task]:
    """Group runs that are trained as one stack; each other run is a task of its own."""
    if stack is not None and stack < 1:
        raise ValueError(f"stack is {stack}; it must be 1 or more.")
    groups: dict[str, list[Spec]] = {}
    for spec in specs:
        groups.setdefault(stack_key(spec) or spec.run_id, []).append(spec)
    tasks = []
    for group in groups.values():
        size = stack or len(group)
        parts = [tuple(group[i : i + size]) for i in range(0, len(group), size)]
        tasks += [Task(part[0].run_id, part) for part in parts]
    return tasks


class _Grid:
    """A grid, its folder, and how far it is."""

    def __init__(
        self,
        specs: list[Spec],
        folder: Path,
        device: str,
        data: str | Path | None,
        budget: float | None,
        watch: Callable[[Tally], object],
    ) -> None:
        self.folder, self.budget, self.watch = folder, budget, watch
        cache = folder / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        where = None if data is None else str(Path(data).absolute())
        self.place = Place(where, str(cache.absolute()), device)
        self.tally = Tally(specs)
        self.held: dict[str, tuple[Task, list[Lock]]] = {}
        self.retried: dict[str, tuple[int, int]] = {}
        self.waiting: deque[Task] = deque()
        self.busy: list[Task] = []

    def survey(self, retry_failed: bool) -> None:
        """See what is there already, and refuse a folder that holds another study."""
        tally = self.tally
        grid = {spec.run_id: spec for spec in tally.specs}
        settings = {spec.setting: spec for spec in tally.specs}
        for path in files_of(self.folder):
            try:
                facts = read_run(path)[1]
            except DamagedFileError:
                tally.damaged += [path] if path.stem in grid else []
                continue
            there = Spec(**facts["spec"])
            wanted = settings.get(there.setting, there)
            if wanted != there:
                raise ValueError(
                    f"{self.folder} holds {there} with {_difference(there, wanted)}. "
                    "Tables could not tell the two apart; use another folder."
                )
            if there.run_id not in grid:
                continue
            if facts["status"] == "failed" and (retry_failed or facts.get("retry")):
                self.retried[there.run_id] = _signature(path)
            else:
                tally.finish(there, facts["status"], facts)
                tally.old += 1

    def plan(self, stack: int | None) -> None:
        """Put what is to be done in order: what takes longest first, to end together."""
        left = [spec for spec in self.tally.specs if spec.run_id not in self.tally.status]
        tasks = make_tasks(left, stack)
        self.waiting = deque(sorted(tasks, key=lambda t: -self.tally.estimate(t.specs)))

    # ----------------------------------------------------------------------- working

    def work(self, jobs: int, backend: str, scheduler: str | None) -> Tally:
        """Work until nothing waits, here or in another process."""
        self.watch(self.tally)
        try:
            if self.waiting:
                with one_thread(), workers(backend, jobs, scheduler) as self.tally.jobs:
                    self._work_off()
        finally:
            for _, locks in self.held.values():
                _release(locks)
        self.watch(self.tally)
        return self.tally

    def _work_off(self) -> None:
        while self.waiting:
            n_waiting = len(self.waiting)
            self._pass()
            # Come back to what others are at, in case they die.
            self.tally.elsewhere = sum(len(task.specs) for task in self.busy)
            self.watch(self.tally)
            if len(self.busy) == n_waiting:
                time.sleep(POLL)
            self.waiting.extend(self.busy)
            self.busy = []
        self.tally.elsewhere = 0

    def _pass(self) -> None:
        """Give all that waits to the workers; what they strand is tried one by one."""
        try:
            for name, outcomes in unordered(self._claimed(), self.place):
                self._record(name, outcomes)
        except deaths():
            # A worker died, and took with it what the others had; which of them is not known.
            for task in [task for task, _ in list(self.held.values())]:
                self._record(task.name, alone(task, self.place))

    def _claimed(self) -> Iterator[Task]:
        """Tasks that no other process is at; called from threads of joblib."""
        while self.waiting:
            task = self.waiting.popleft()
            if not self._is_in_time(task):
                self.tally.put_off += task.specs
                continue
            claimed = self._claim(task)
            if claimed.specs:
                self.tally.start(claimed.specs)
                self.watch(self.tally)
                yield claimed

    def _is_in_time(self, task: Task) -> bool:
        if self.budget is None:
            return True
        return self.tally.elapsed + self.tally.estimate(task.specs) <= self.budget

    def _claim(self, task: Task) -> Task:
        """Lock the runs of a task that are still to be done."""
        mine, locks, busy = [], [], []
        for spec in task.specs:
            try:
                lock = try_lock(self.folder / "locks" / spec.run_id)
            except OSError as error:
                self._lose(spec, error)
                continue
            if lock is None:
                busy.append(spec)
            elif self._is_done(spec):
                lock.release()
            else:
                mine.append(spec)
                locks.append(lock)
        if busy:
            self.busy.append(Task(task.name, tuple(busy)))
        claimed = Task(task.name, tuple(mine))
        if mine:
            self.held[task.name] = claimed, locks
        return claimed

    def _is_done(self, spec: Spec) -> bool:
        """Whether a run has been finished, by another process, since the survey."""
        path = path_of(self.folder, spec.run_id)
        try:
            facts = read_run(path)[1]
            if self.retried.get(spec.run_id) == _signature(path):
                return False
        except (FileNotFoundError, DamagedFileError):
            return False
        self.tally.finish(spec, facts["status"], facts)
        return True

    # --------------------------------------------------------------------- recording

    def _record(self, name: str, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            try:
                self._write(outcome)
            except OSError as error:
                self._lose(outcome.spec, error)
        _release(self.held.pop(name)[1])
        self.watch(self.tally)

    def _write(self, outcome: Outcome) -> None:
        spec, facts, judged = outcome
        try:
            write_run(self.folder, spec, facts, judged)
        except Exception as error:  # no room for it, or no result: to say so takes less room
            facts, judged = failure(error) | common_facts(0.0), None
            write_run(self.folder, spec, facts, judged)
        self.tally.finish(spec, "failed" if judged is None else "ok", facts)

    def _lose(self, spec: Spec, error: OSError) -> None:
        """A disk that is full cannot say so itself."""
        self.tally.lose(spec, f"not written: {error}")
        self.watch(self.tally)


def _release(locks: Iterable[Lock]) -> None:
    for lock in locks:
        lock.release()


def check_parameters(specs: Iterable[Spec]) -> None:
    """Refuse parameters that a method does not have."""
    for name, parameter in {(s.method, p): None for s in specs for p in s.parameters}:
        known = method(name)().get_params()
        if parameter not in known:
            raise ValueError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(sorted(known))}."
            )


def check_data(specs: Iterable[Spec], folder: str | Path | None) -> None:
    """Refuse to begin where the files of a dataset are lacking."""
    for name in dict.fromkeys(spec.dataset for spec in specs):
        if name in registry():
            try:
                locate(registry()[name], folder)
            except FileNotFoundError as error:
                raise FileNotFoundError(
                    f"{error}\nOr leave its runs out: demur bench run --only dataset!={name}"
                ) from None


def _difference(one: Spec, other: Spec) -> str:
    """How two runs of one setting differ, in words."""
    mine, theirs = one.as_dict(), other.as_dict()
    return ", ".join(
        f"{name} {mine[name] or 'by default'} instead of {theirs[name] or 'by default'}"
        for name in mine
        if mine[name] != theirs[name]
    )


def _signature(path: Path) -> tuple[int, int]:
    """Tells a file from the one that takes its place."""
    stat = path.stat()
    return stat.st_ino, stat.st_mtime_ns
