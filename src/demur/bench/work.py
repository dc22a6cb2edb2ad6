"""What a worker does: fit the runs of a task, and judge their test instances."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from demur import __version__
from demur.base import PartialLabelClassifier
from demur.bench.costs import trains_networks
from demur.bench.dialing import finite, turn
from demur.bench.judged import Judged
from demur.bench.prepare import Prepared, make_candidates, make_features, prepare
from demur.bench.spec import Spec, canonical
from demur.methods import method
from demur.methods.deep import fit_stack

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "torch")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_TRACEBACK = 4000  # characters of its end are kept
# What the place is to blame for and not the run, which may well succeed another time.
_OF_THE_PLACE = (OSError, ImportError, MemoryError)


class Outcome(NamedTuple):
    """What became of a run: its facts, and what it judged unless it failed."""

    spec: Spec
    facts: dict[str, Any]
    judged: Judged | None


class Place(NamedTuple):
    """Where a worker finds things.

    Attributes
    ----------
    data : str or None
        Folder of the datasets.
    cache : str or None
        Folder to keep what takes long to make.
    device : str
        For what trains networks.
    """

    data: str | None = None
    cache: str | None = None
    device: str = "auto"


class _Job:
    """A run on its way."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.facts: dict[str, Any] = {}
        self.prepared: Prepared | None = None
        self.model: Any = None
        self.judged: Judged | None = None
        self.failed = False

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; an exception ends this run, not the worker."""
        start = time.perf_counter()
        try:
            yield
        except (Exception, SystemExit) as error:
            self.failed, self.judged = True, None
            self.facts |= failure(error)
        finally:
            seconds = self.facts.get(f"seconds_{name}", 0.0) + time.perf_counter() - start
            self.facts[f"seconds_{name}"] = seconds


def stack_key(spec: Spec) -> str | None:
    """Runs with the same key can be trained as one stack; None for methods without stacks."""
    if not trains_networks(spec.method):
        return None
    shared = {k: v for k, v in spec.as_dict().items() if not k.startswith(("noise", "seed"))}
    return canonical(shared)


def run_task(specs: Sequence[Spec], place: Place) -> list[Outcome]:
    """Do the runs of a task: one, or several of which a stack is made.

    A run that fails says so in its outcome. If a stack fails, its runs are fitted one by one,
    so that only those to blame fail.
    """
    jobs = [_Job(spec) for spec in sorted(specs, key=lambda s: (s.seed, s.noise))]
    with one_thread():
        reset_peak()
        for job in jobs:
            with job.step("prepare"):
                job.prepared = prepare(job.spec, place.data, place.cache, place.device)
                job.model = _make(job.spec, job.prepared, place.device)
        ready = [job for job in jobs if not job.failed]
        if len(ready) < 2 or not _fit_together(ready):
            for job in ready:
                _fit(job)
        for job in ready:
            if not job.failed and job.spec.dial:
                _turn(job)
            if not job.failed:
                _judge(job)
    peak = peak_mib()
    return [Outcome(job.spec, job.facts | common_facts(peak), job.judged) for job in jobs]


def prepare_task(kind: str, specs: Sequence[Spec], place: Place) -> None:
    """Make what runs of a task need, and keep it for them.

    What fails is left to the runs themselves, which will fail likewise and say so.
    """
    with one_thread(), suppress(Exception):
        for spec in specs:
            if kind == "features":
                make_features(spec, place.data, place.cache, place.device)
            else:
                make_candidates(spec, place.data, place.cache)


def _make(spec: Spec, prepared: Prepared, device: str) -> PartialLabelClassifier:
    model = method(spec.method)(**spec.parameters)
    settings = {"random_state": spec.seed, "n_jobs": 1, "device": device}
    if prepared.image_shape is not None:
        settings["image_shape"] = prepared.image_shape
    able = model.get_params()
    chosen = {k: v for k, v in settings.items() if k in able and k not in spec.parameters}
    model.set_params(**chosen)
    return model


def _fit_together(jobs: Sequence[_Job]) -> bool:
    """Fit as one stack; each job is told its share of the seconds."""
    start = time.perf_counter()
    try:
        fit_stack(
            [job.model for job in jobs],
            [_of(job).X_train for job in jobs],
            [_of(job).sets for job in jobs],
        )
    except Exception:
        return False
    share = (time.perf_counter() - start) / len(jobs)
    for job in jobs:
        job.facts |= {"seconds_fit": share, "stack": len(jobs)}
    return True


def _fit(job: _Job) -> None:
    with job.step("fit"):
        job.model.fit(_of(job).X_train, _of(job).sets)
    job.facts["stack"] = 1


def _turn(job: _Job) -> None:
    """Set the dial, which is part of fitting."""
    with job.step("fit"):
        job.facts["device"] = _device(job.model)
        job.model, job.prepared, promised = turn(job.spec, job.model, _of(job))
        job.facts |= promised


def _device(model: Any) -> str:
    return str(getattr(model, "device_", "cpu"))


def _judge(job: _Job) -> None:
    prepared, model = _of(job), job.model
    with job.step("predict"):
        top, proba, accept = model.judge(prepared.X_test)
        predicted = model.classes_[top]
        job.judged = Judged(prepared.test, prepared.y_test, predicted, accept, proba.max(axis=1))
        for name, scores in zip(Judged._fields[3:], job.judged[3:], strict=True):
            if not np.isfinite(scores).all():
                raise ValueError(f"{name} is not finite for {(~np.isfinite(scores)).sum()} rows.")
        job.facts |= {
            "n_train": len(prepared.X_train),
            "n_test": len(prepared.X_test),
            "n_features": prepared.X_train.shape[1],
            "n_classes": len(prepared.classes),
            "labels": [str(label) for label in prepared.classes],
            "mean_candidates": float(prepared.sets.sizes.mean()),
            "threshold": finite(model.accept_threshold_),
        }
        job.facts.setdefault("device", _device(model))


def _of(job: _Job) -> Prepared:
    assert job.prepared is not None, "only prepared jobs are fitted"
    return job.prepared


# --------------------------------------------------------------------------------- facts


def failure(error: BaseException) -> dict[str, Any]:
    """What is kept of an exception."""
    text = "".join(traceback.format_exception(error))
    message = " ".join(str(error).split())
    return {
        "error": f"{type(error).__name__}: {message}" if message else type(error).__name__,
        "traceback": text[-_TRACEBACK:],
        **({"retry": True} if isinstance(error, _OF_THE_PLACE) else {}),
    }


def common_facts(peak: float) -> dict[str, Any]:
    """When and on what a task was done; its runs share the peak of the memory."""
    return {
        "peak_mib": peak,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "machine": _machine(),
    }


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    versions = {"demur": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


@lru_cache(maxsize=1)
def _machine() -> dict[str, Any]:
    told = {"system": platform.platform(terse=True), "cores": os.cpu_count(), "processor": ""}
    with suppress(OSError), open("/proc/cpuinfo") as lines:
        named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        told["processor"] = named[0] if named else ""
    return told


def reset_peak() -> None:
    """Count the peak of this process's memory from now on, where Linux lets us."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_mib() -> float:
    """Peak of this process's memory in MiB, since `reset_peak` where that can be."""
    with suppress(OSError, ValueError), open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let libraries use one thread: workers do not crowd each other out, and bits stay equal.

    The environment is for libraries that are loaded meanwhile.
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch is not None else None
    try:
        if torch is not None:
            torch.set_num_threads(1)
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if torch is not None and threads is not None:
            torch.set_num_threads(threads)
