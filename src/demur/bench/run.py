"""Work off a grid: whatever happens, the same call goes on where it stopped.

The process that calls `run_grid` alone writes results, and holds a lock on what it has given
to workers. A worker only computes, so that it may die, or be on another machine.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import joblib

from demur.bench.locks import Lock, try_lock
from demur.bench.spec import Spec
from demur.bench.store import DamagedFileError, files_of, path_of, read_run, write_run
from demur.bench.tally import Tally
from demur.bench.work import Outcome, Place, common_facts, failure, one_thread, run_task, stack_key
from demur.methods import method

BACKENDS = ("loky", "threading", "dask", "ray")
POLL = 0.5  # seconds between looks at what other processes hold
_EXTRAS = {"dask": ("distributed", "dask"), "ray": ("ray.util.joblib", "ray")}


class Task(NamedTuple):
    """Runs that one worker does in one go."""

    name: str
    specs: tuple[Spec, ...]


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
        Do again what failed before.
    watch : callable
        Is given the tally whenever it changes.

    Returns
    -------
    Tally
    """
    return _Grid(list(dict.fromkeys(specs)), Path(out), device, data, retry_failed, watch).work(
        jobs, backend, scheduler
    )


def make_tasks(specs: Iterable[Spec]) -> list[Task]:
    """Group runs that are trained as one stack; each other run is a task of its own."""
    groups: dict[str, list[Spec]] = {}
    for spec in specs:
        groups.setdefault(stack_key(spec) or spec.run_id, []).append(spec)
    return [
        Task(hashlib.sha256(key.encode()).hexdigest()[:16], tuple(group))
        for key, group in groups.items()
    ]


class _Grid:
    """A grid, its folder, and how far it is."""

    def __init__(
        self,
        specs: list[Spec],
        folder: Path,
        device: str,
        data: str | Path | None,
        retry_failed: bool,
        watch: Callable[[Tally], object],
    ) -> None:
        check_parameters(specs)
        self.folder, self.watch = folder, watch
        cache = folder / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        where = None if data is None else str(Path(data).absolute())
        self.place = Place(where, str(cache.absolute()), device)
        self.tally = Tally(specs)
        self.held: dict[str, tuple[Task, Lock]] = {}
        self.retried: dict[str, tuple[int, int]] = {}
        self._survey(retry_failed)
        self.waiting = deque(make_tasks(s for s in specs if s.run_id not in self.tally.status))
        self.busy: list[Task] = []

    def _survey(self, retry_failed: bool) -> None:
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
            if facts["status"] == "failed" and retry_failed:
                self.retried[there.run_id] = _signature(path)
            else:
                tally.finish(there, facts["status"], facts)
                tally.old += 1

    # ----------------------------------------------------------------------- working

    def work(self, jobs: int, backend: str, scheduler: str | None) -> Tally:
        """Work until nothing waits, here or in another process."""
        try:
            if self.waiting:
                with one_thread(), _workers(backend, jobs, scheduler) as self.tally.jobs:
                    self._work_off()
        finally:
            for _, lock in self.held.values():
                lock.release()
        self.watch(self.tally)
        return self.tally

    def _work_off(self) -> None:
        while self.waiting:
            self._pass()
            if self.busy:  # come back to what others are at, in case they die
                self.tally.elsewhere = sum(len(task.specs) for task in self.busy)
                self.watch(self.tally)
                if not self.waiting and len(self.busy) == self._looked_at:
                    time.sleep(POLL)
                self.waiting.extend(self.busy)
                self.busy = []
            self.tally.elsewhere = 0

    def _pass(self) -> None:
        """Give all that waits to the workers; what they strand is tried one by one."""
        self._looked_at = len(self.waiting)
        try:
            for name, outcomes in _unordered(self._claimed(), self.place):
                self._record(name, outcomes)
        except _deaths():
            # A worker died, and took with it what the others had; which of them is not known.
            for task in [task for task, _ in self.held.values()]:
                self._record(task.name, self._alone(task))

    def _alone(self, task: Task) -> list[Outcome]:
        """Do a task while no other is done; if its worker dies again, this task is to blame."""
        try:
            return next(iter(_unordered([task], self.place)))[1]
        except _deaths() as error:
            facts = failure(error) | common_facts(0.0)
            return [Outcome(spec, facts, None) for spec in task.specs]

    def _claimed(self) -> Iterator[Task]:
        """Tasks that no other process is at; called from threads of joblib."""
        while self.waiting:
            task = self.waiting.popleft()
            try:
                lock = try_lock(self.folder / "locks" / task.name)
            except OSError as error:
                self._lose(task.specs, error)
                continue
            if lock is None:
                self.busy.append(task)
                continue
            left = tuple(spec for spec in task.specs if not self._is_done(spec))
            if not left:
                lock.release()
                continue
            claimed = Task(task.name, left)
            self.held[task.name] = claimed, lock
            self.tally.start(left)
            self.watch(self.tally)
            yield claimed

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
                self._lose([outcome.spec], error)
        self.held.pop(name)[1].release()
        self.watch(self.tally)

    def _write(self, outcome: Outcome) -> None:
        spec, facts, judged = outcome
        try:
            write_run(self.folder, spec, facts, judged)
        except OSError:
            raise
        except Exception as error:  # what a method said is no result
            facts, judged = failure(error) | common_facts(0.0), None
            write_run(self.folder, spec, facts, judged)
        self.tally.finish(spec, "failed" if judged is None else "ok", facts)

    def _lose(self, specs: Iterable[Spec], error: OSError) -> None:
        """A disk that is full cannot say so itself."""
        for spec in specs:
            self.tally.lose(spec, f"not written: {error}")
        self.watch(self.tally)


def check_parameters(specs: Iterable[Spec]) -> None:
    """Refuse parameters that a method does not have."""
    for name, parameter in {(s.method, p): None for s in specs for p in s.parameters}:
        known = method(name)().get_params()
        if parameter not in known:
            raise ValueError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(sorted(known))}."
            )


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


# ------------------------------------------------------------------------------- workers


def _deaths() -> tuple[type[Exception], ...]:
    """What is raised when a worker dies."""
    scheduler = sys.modules.get("distributed.scheduler")
    killed = () if scheduler is None else (scheduler.KilledWorker,)
    return (BrokenExecutor, *killed)


def _unordered(tasks: Iterable[Task], place: Place) -> Iterator[tuple[str, list[Outcome]]]:
    """Outcomes of tasks as they come, from the workers of joblib's present backend."""
    backend, _ = joblib.parallel.get_active_backend()
    calls = (joblib.delayed(_do)(task, place) for task in tasks)
    if backend.supports_return_generator:
        yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(calls)
        return
    size = 4 * joblib.effective_n_jobs()  # the results of a part come together
    while part := list(_first(calls, size)):
        yield from joblib.Parallel(batch_size=1)(part)


def _do(task: Task, place: Place) -> tuple[str, list[Outcome]]:
    return task.name, run_task(task.specs, place)


def _first(items: Iterator[Any], n: int) -> Iterator[Any]:
    for _, item in zip(range(n), items, strict=False):
        yield item


@contextmanager
def _workers(backend: str, jobs: int, scheduler: str | None) -> Iterator[int]:
    """Make a backend the one of joblib; gives the number of its workers."""
    if backend not in BACKENDS:
        raise ValueError(f"the backend is {backend!r}; there are {', '.join(BACKENDS)}.")
    if scheduler is not None and backend not in _EXTRAS:
        raise ValueError(f"the backend {backend} has no scheduler; use --backend dask or ray.")
    if jobs == 0 or jobs < -1:
        raise ValueError(f"jobs is {jobs}; it must be 1 or more, or -1 for all cores.")
    with ExitStack() as stack:
        options: dict[str, Any] = {"n_jobs": jobs}
        if backend in _EXTRAS:
            _START[backend](stack, _import_extra(backend), jobs, scheduler)
            options["n_jobs"] = -1
        elif backend == "loky":
            options["inner_max_num_threads"] = 1
        stack.enter_context(joblib.parallel_config(backend, **options))
        yield joblib.effective_n_jobs(-1 if backend in _EXTRAS else jobs)


def _import_extra(backend: str) -> Any:
    module, extra = _EXTRAS[backend]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"the backend {backend} needs the package {module.partition('.')[0]}; install it with: "
            f'pip install "demur[{extra}]"'
        ) from error


def _start_dask(stack: ExitStack, distributed: Any, jobs: int, scheduler: str | None) -> None:
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise ValueError(f"no Dask scheduler answers at {scheduler!r}: {error}") from error
    else:
        n_workers = os.cpu_count() if jobs == -1 else jobs
        client = distributed.Client(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        )
    stack.enter_context(client)


def _start_ray(stack: ExitStack, ray_joblib: Any, jobs: int, scheduler: str | None) -> None:
    ray = importlib.import_module("ray")
    if not ray.is_initialized():
        ray.init(address=scheduler, num_cpus=None if scheduler or jobs == -1 else jobs)
        stack.callback(ray.shutdown)
    ray_joblib.register_ray()


_START = {"dask": _start_dask, "ray": _start_ray}
