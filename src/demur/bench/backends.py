"""What does the work: joblib's own workers, or a Dask or Ray cluster; and lanes for networks."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from demur.bench import prepare
from demur.bench.spec import Spec
from demur.bench.work import Outcome, Place, common_facts, failure, prepare_task, run_task

BACKENDS = ("loky", "threading", "dask", "ray")
_EXTRAS = {"dask": ("distributed", "dask"), "ray": ("ray.util.joblib", "ray")}


class Task(NamedTuple):
    """What one worker does in one go.

    Attributes
    ----------
    name : str
    specs : tuple of Spec
    kind : {"runs", "features", "candidates"}
        The runs themselves, or something that they and others need.
    """

    name: str
    specs: tuple[Spec, ...]
    kind: str = "runs"


# Workers take tasks, and give their outcomes as they come.
Workers = Callable[[Iterable[Task], Place], Iterator[tuple[str, list[Outcome]]]]


def unordered(tasks: Iterable[Task], place: Place) -> Iterator[tuple[str, list[Outcome]]]:
    """Outcomes of tasks as they come, from the workers of joblib's present backend.

    No more tasks are taken than there are workers, so that one that is taken is at work.
    """
    backend, _ = joblib.parallel.get_active_backend()
    calls = (joblib.delayed(_do)(task, place, os.getpid()) for task in tasks)
    options = {"batch_size": 1, "pre_dispatch": "n_jobs"}
    if backend.supports_return_generator:
        yield from joblib.Parallel(return_as="generator_unordered", **options)(calls)
        return
    size = 4 * joblib.effective_n_jobs()  # the results of a part come together
    while part := list(islice(calls, size)):
        yield from joblib.Parallel(**options)(part)


class Lanes:
    """Processes for networks alone, which keep the device and the data from task to task."""

    splits = 6  # scaled splits in memory: those of five seeds

    def __init__(self, n: int) -> None:
        self.n = n
        self._pool: Any = None
        self._closed = False

    def __call__(self, tasks: Iterable[Task], place: Place) -> Iterator[tuple[str, list[Outcome]]]:
        """Outcomes of tasks as they come; one that is taken is at work."""
        if self._closed:
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.n, timeout=None, initializer=prepare.keep_splits, initargs=(self.splits,)
            )
        todo, working = iter(tasks), set[Future[tuple[str, list[Outcome]]]]()
        try:
            while True:
                for task in islice(todo, self.n - len(working)):
                    working.add(self._pool.submit(_do, task, place, os.getpid()))
                if not working:
                    return
                done, working = wait(working, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except deaths():
            self._end()
            raise

    def close(self) -> None:
        """End the processes, whatever they are at."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(kill_workers=True)


def alone(task: Task, place: Place, crew: Workers = unordered) -> list[Outcome]:
    """Do a task while no other is done; if its worker dies again, this task is to blame."""
    try:
        return next(iter(crew([task], place)), (task.name, []))[1]
    except deaths() as error:
        return _failed(task, error)


def deaths() -> tuple[type[Exception], ...]:
    """What is raised when a worker dies."""
    scheduler = sys.modules.get("distributed.scheduler")
    killed = () if scheduler is None else (scheduler.KilledWorker,)
    return (BrokenExecutor, *killed)


def _do(task: Task, place: Place, owner: int) -> tuple[str, list[Outcome]]:
    _end_with(owner)
    try:
        if task.kind == "runs":
            return task.name, run_task(task.specs, place)
        prepare_task(task.kind, task.specs, place)
        return task.name, []
    except Exception as error:
        return task.name, _failed(task, error)


def _failed(task: Task, error: BaseException) -> list[Outcome]:
    facts = failure(error) | common_facts(0.0)
    return [Outcome(spec, facts, None) for spec in task.specs if task.kind == "runs"]


@cache
def _end_with(owner: int) -> None:
    """End this worker when the process that started it is gone: no one wants its results."""
    if os.getppid() != owner:
        return  # a thread of the owner, or a worker that others look after

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def check_backend(backend: str, jobs: int, scheduler: str | None) -> None:
    """Refuse what `workers` cannot start."""
    if backend not in BACKENDS:
        raise ValueError(f"the backend is {backend!r}; there are {', '.join(BACKENDS)}.")
    if scheduler is not None and backend not in _EXTRAS:
        raise ValueError(f"the backend {backend} has no scheduler; use --backend dask or ray.")
    if jobs == 0 or jobs < -1:
        raise ValueError(f"jobs is {jobs}; it must be 1 or more, or -1 for all cores.")


@contextmanager
def workers(backend: str, jobs: int, scheduler: str | None) -> Iterator[int]:
    """Make a backend the one of joblib; gives the number of its workers."""
    with ExitStack() as stack:
        options: dict[str, Any] = {"n_jobs": jobs}
        if backend in _EXTRAS:
            _START[backend](stack, _import_extra(backend), jobs, scheduler)
            options["n_jobs"] = -1
        elif backend == "loky":
            options["inner_max_num_threads"] = 1
            # A worker that has loaded torch has grown, and joblib replaces it: no one's concern.
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
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
