"""Work off a grid: whatever happens, the same call goes on where it stopped.

The process that calls `run_grid` alone writes results, and holds a lock on each run that it has
given to workers. A worker only computes, so that it may die, or be on another machine. Where
networks have a GPU they have workers of their own, lanes, so that it is never shared by chance.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import joblib

from demur.bench.backends import (
    Lanes,
    Task,
    Workers,
    alone,
    check_backend,
    deaths,
    unordered,
    workers,
)
from demur.bench.costs import Costs, trains_networks
from demur.bench.locks import Lock, try_lock
from demur.bench.plan import arrange, features_key
from demur.bench.prepare import has_features
from demur.bench.spec import FIELDS, Spec
from demur.bench.store import DamagedFileError, files_of, path_of, read_run, write_run
from demur.bench.tally import Share, Tally, list_unfinished
from demur.bench.work import Outcome, Place, common_facts, failure, one_thread
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
    lanes: int | None = None,
    data: str | Path | None = None,
    retry_failed: bool = False,
    budget: float | None = None,
    stack: int | None = None,
    watch: Callable[[Tally], object] = lambda tally: None,
    plan_only: bool = False,
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
    lanes : int, optional
        Workers for networks alone, which keep the device and the data from stack to stack; the
        others leave them to it. By default one where there is a GPU, else none: networks are then
        trained by any worker.
    data : path, optional
        Folder of the datasets, as `demur.datasets.load` takes it.
    retry_failed : bool, default=False
        Do again what failed before. What failed for want of something here, a file, a package,
        memory, or room on the disk, is always done again.
    budget : float, optional
        Seconds; what would probably not be done by then is not begun.
    stack : int, optional
        Most networks that are trained as one stack; by default all of a dataset and method, but
        on a CPU not more than take a few minutes. A stack is lost or kept as a whole when the
        process is killed.
    watch : callable
        Is given the tally whenever it changes.
    plan_only : bool, default=False
        Begin nothing; the tally tells what would be done.

    Returns
    -------
    Tally
    """
    specs = list(dict.fromkeys(specs))
    check_backend(backend, jobs, scheduler)
    check_parameters(specs)
    place = Place(None if data is None else str(Path(data).absolute()), None, device)
    grid = _Grid(specs, Path(out), place, budget, watch)
    grid.survey(retry_failed)
    left = grid.left()
    gpu = any(trains_networks(spec.method) for spec in left) and _is_gpu(device)
    grid.tally.costs.gpu = gpu
    n_lanes = _n_lanes(lanes, backend, left, gpu)
    if jobs == -1 and n_lanes and backend == "loky":
        jobs = max(joblib.effective_n_jobs(-1) - n_lanes, 1)
    grid.plan(left, stack, n_lanes, jobs)
    if plan_only:
        return grid.tally
    if scheduler is None:  # else the workers may be where the data is, and the device
        check_data(left, data)
        check_device(left, device)
    return grid.work(jobs, backend, scheduler)


def _n_lanes(lanes: int | None, backend: str, specs: Iterable[Spec], gpu: bool) -> int:
    if lanes is not None and lanes < 0:
        raise ValueError(f"lanes is {lanes}; it must be 0 or more.")
    if lanes and backend != "loky":
        raise ValueError(f"lanes are processes here; the backend {backend} has workers elsewhere.")
    if not any(trains_networks(spec.method) for spec in specs):
        return 0
    return int(gpu and backend == "loky") if lanes is None else lanes


def _is_gpu(device: str) -> bool:
    """Whether networks will be trained on something else than the CPU."""
    if device != "auto":
        return not device.startswith("cpu")
    try:
        import torch
    except ModuleNotFoundError:
        return False  # the runs say so themselves
    return bool(torch.cuda.is_available())


class _Grid:
    """A grid, its folder, and how far it is."""

    def __init__(
        self,
        specs: list[Spec],
        folder: Path,
        place: Place,
        budget: float | None,
        watch: Callable[[Tally], object],
    ) -> None:
        self.folder, self.budget, self.watch = folder, budget, watch
        self.cache = folder / "cache"
        self.place = place._replace(cache=str(self.cache.absolute()))
        self.tally = Tally(specs, costs=Costs())
        self.retried: dict[str, tuple[int, int]] = {}
        self.features: dict[str | None, str] = {}  # "awaited", "late", or there
        self.queues: list[_Queue] = []
        self.lanes: Lanes | None = None
        self.ended = False

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

    def left(self) -> list[Spec]:
        """Runs that are to be done."""
        return [spec for spec in self.tally.specs if spec.run_id not in self.tally.status]

    def plan(self, specs: Sequence[Spec], stack: int | None, lanes: int, jobs: int) -> None:
        """Give each crew its tasks, in order."""
        costs = self.tally.costs
        crews = arrange(specs, costs, stack, lanes=bool(lanes))
        for_workers, for_lanes = ([t for t in crew if not self._is_made(t)] for crew in crews)
        self.queues = [_Queue(self, unordered, for_workers)]
        if for_lanes:
            self.lanes = Lanes(lanes)
            self.queues.append(_Queue(self, self.lanes, for_lanes))
        for task in for_workers + for_lanes:
            if task.kind == "features":
                key = features_key(task.specs[0])
                self.features[key] = "awaited"
                self.tally.encoders[key] = self.tally.estimate_of(task)
        self.tally.jobs = joblib.effective_n_jobs(jobs)
        self.tally.lanes = lanes if for_lanes else 0
        names = ("other runs", "networks") if for_lanes else ("runs", "")
        self.tally.share(names[0], self.tally.jobs, for_workers)
        if for_lanes:
            self.tally.share(names[1], lanes, for_lanes)

    def _is_made(self, task: Task) -> bool:
        """Whether an earlier call has made the features already."""
        return task.kind == "features" and has_features(task.specs[0], self.place.cache)

    # ----------------------------------------------------------------------- working

    def work(self, jobs: int, backend: str, scheduler: str | None) -> Tally:
        """Work until nothing waits, here or in another process."""
        self.cache.mkdir(parents=True, exist_ok=True)
        self.watch(self.tally)
        try:
            if any(queue.waiting for queue in self.queues):
                with one_thread(), workers(backend, jobs, scheduler) as self.tally.jobs:
                    self.tally.shares[0].workers = self.tally.jobs
                    with self._lanes_at_work():
                        self.queues[0].work_off(self.tally.shares[0])
        finally:
            for queue in self.queues:
                queue.release()
        list_unfinished(self.folder, self.tally)
        self.watch(self.tally)
        return self.tally

    @contextmanager
    def _lanes_at_work(self) -> Iterator[None]:
        """Let the lanes work in a thread, and wait for them."""
        if self.lanes is None:
            yield
            return
        errors: list[BaseException] = []

        def work() -> None:
            try:
                self.queues[1].work_off(self.tally.shares[1])
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
            while thread.is_alive():
                thread.join(POLL)
        finally:
            self.ended = True  # after an error, or Ctrl-C, there may be more to do
            self.lanes.close()
            thread.join()
        if errors:
            raise errors[0]

    def settle_features(self, task: Task, state: str) -> None:
        """Features are there, or will not be."""
        key = features_key(task.specs[0])
        self.features[key] = state
        self.tally.encoders.pop(key, None)

    def is_done(self, spec: Spec) -> bool:
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

    def record(self, outcomes: Sequence[Outcome]) -> None:
        """Write what became of runs."""
        for outcome in outcomes:
            try:
                self._write(outcome)
            except OSError as error:
                self.lose(outcome.spec, error)

    def _write(self, outcome: Outcome) -> None:
        spec, facts, judged = outcome
        try:
            write_run(self.folder, spec, facts, judged)
        except Exception as error:  # no room for it, or no result: to say so takes less room
            facts, judged = failure(error) | common_facts(0.0), None
            write_run(self.folder, spec, facts, judged)
        self.tally.finish(spec, "failed" if judged is None else "ok", facts)

    def lose(self, spec: Spec, error: OSError) -> None:
        """A disk that is full cannot say so itself."""
        self.tally.lose(spec, f"not written: {error}")
        self.watch(self.tally)


class _Queue:
    """The tasks of one crew, from waiting to recorded."""

    def __init__(self, grid: _Grid, crew: Workers, tasks: Iterable[Task]) -> None:
        self.grid, self.tally, self.crew = grid, grid.tally, crew
        self.waiting = deque(tasks)
        self.held: dict[str, tuple[Task, list[Lock]]] = {}
        self.busy: list[Task] = []

    def work_off(self, share: Share) -> None:
        """Work until nothing waits, here or in another process."""
        start = time.perf_counter()
        while self.waiting and not self.grid.ended:
            n_waiting = len(self.waiting)
            self._pass()
            share.seconds = time.perf_counter() - start
            # Come back to what others are at, in case they die, and to what lacks features.
            share.elsewhere = sum(len(task.specs) for task in self.busy)
            self.grid.watch(self.tally)
            if len(self.busy) + len(self.waiting) == n_waiting:
                time.sleep(POLL)
            self.waiting.extend(self.busy)
            self.busy = []
        share.elsewhere = 0

    def release(self) -> None:
        """Give back all locks."""
        for _, locks in self.held.values():
            _release(locks)

    def _pass(self) -> None:
        """Give all that can be begun to the crew; what it strands is tried one by one."""
        place = self.grid.place
        try:
            for name, outcomes in self.crew(self._claimed(), place):
                self._record(name, outcomes)
        except deaths():
            # A worker died, and took with it what the others had; which of them is not known.
            for task in [task for task, _ in list(self.held.values())]:
                self._record(task.name, alone(task, place, self.crew))

    def _claimed(self) -> Iterator[Task]:
        """Tasks that no other process is at; called from threads of joblib."""
        while (task := self._next()) is not None:
            if self._is_late(task):
                self._put_off(task)
            elif task.kind != "runs":
                self.held[task.name] = task, []
                yield task
            elif (claimed := self._claim(task)).specs:
                self.tally.start(claimed.specs)
                self.grid.watch(self.tally)
                yield claimed

    def _next(self) -> Task | None:
        """Take the first task that has the features it needs."""
        for i, task in enumerate(self.waiting):
            if task.kind != "runs" or self._features_of(task) != "awaited":
                del self.waiting[i]
                return task
        return None

    def _features_of(self, task: Task) -> str:
        return self.grid.features.get(features_key(task.specs[0]), "there")

    def _is_late(self, task: Task) -> bool:
        if task.kind == "runs" and self._features_of(task) == "late":
            return True
        budget = self.grid.budget
        return budget is not None and self.tally.elapsed + self.tally.estimate_of(task) > budget

    def _put_off(self, task: Task) -> None:
        if task.kind == "runs":
            self.tally.put_off += task.specs
        elif task.kind == "features":
            self.grid.settle_features(task, "late")

    def _claim(self, task: Task) -> Task:
        """Lock the runs of a task that are still to be done."""
        mine, locks, busy = [], [], []
        for spec in task.specs:
            try:
                lock = try_lock(self.grid.folder / "locks" / spec.run_id)
            except OSError as error:
                self.grid.lose(spec, error)
                continue
            if lock is None:
                busy.append(spec)
            elif self.grid.is_done(spec):
                lock.release()
            else:
                mine.append(spec)
                locks.append(lock)
        if busy:
            self.busy.append(task._replace(specs=tuple(busy)))
        claimed = task._replace(specs=tuple(mine))
        if mine:
            self.held[task.name] = claimed, locks
        return claimed

    def _record(self, name: str, outcomes: Sequence[Outcome]) -> None:
        self.grid.record(outcomes)
        task, locks = self.held.pop(name)
        if task.kind == "features":
            self.grid.settle_features(task, "there")
        _release(locks)
        self.grid.watch(self.tally)


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


def check_device(specs: Iterable[Spec], device: str) -> None:
    """Refuse to begin where networks are to have a GPU and there is none."""
    if not device.startswith("cuda") or not any(trains_networks(s.method) for s in specs):
        return
    try:
        import torch
    except ModuleNotFoundError:
        return  # the runs say so themselves
    if not torch.cuda.is_available():
        raise ValueError(
            f"device {device!r} is not here: torch finds no GPU. With --device cpu networks are "
            "trained on processors; add --plan to see how long that would take."
        )


def _difference(one: Spec, other: Spec) -> str:
    """How two runs of one setting differ, in words."""
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in FIELDS}
    return ", ".join(
        f"{name} {mine or 'by default'} instead of {theirs or 'by default'}"
        for name, (mine, theirs) in pairs.items()
        if mine != theirs
    )


def _signature(path: Path) -> tuple[int, int]:
    """Tells a file from the one that takes its place."""
    stat = path.stat()
    return stat.st_ino, stat.st_mtime_ns
