"""How compiled kernels are made, announced and run in threads."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any, TypeVar, cast

from joblib import effective_n_jobs

try:
    import numba
    from numba.core import event
except ModuleNotFoundError:  # where nothing can be installed, networks still train
    numba = event = None

F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger("demur")


def kernel(function: F) -> F:
    """Compile on first call, keep the result on disk, release the interpreter lock.

    No fast-math: results must not depend on how the compiler orders a sum. Threads are
    started outside (see `in_ranges`), since numba's own pools may not be entered from two
    threads at once everywhere.
    """
    if numba is None:
        return _interpreted(function)
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def _interpreted(function: F) -> F:
    """The kernel as plain Python, which says at its first call how slow it will be."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        _warn_of_plain_python()
        return function(*args)

    return cast(F, run)


@functools.cache
def _warn_of_plain_python() -> None:
    logger.warning("numba is not installed: demur's kernels run as plain Python, 100 times slower.")


def _announce_compiling() -> None:
    """Say once a process that a kernel is being compiled; silent when the disk has it."""

    class Notice(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if not self.said and function.__module__.startswith("demur."):
                self.said = True
                logger.warning(
                    "demur compiles its kernels on first use; this takes some seconds, once a "
                    "machine."
                )

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Notice())


if numba is not None:
    _announce_compiling()


def n_threads(n_jobs: int | None) -> int:
    """Threads to use: None for all that this process may use, else as joblib reads it."""
    # joblib's workers set numba's number to their share
    allowed = int(numba.config.NUMBA_NUM_THREADS) if numba else int(effective_n_jobs(-1))
    if n_jobs is None:
        return allowed
    if not isinstance(n_jobs, Integral):
        raise ValueError(f"n_jobs must be a whole number or None; got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs is 0; use 1 for one thread, -1 or None for all.")
    return int(effective_n_jobs(n_jobs)) if n_jobs < 0 else n_jobs


def in_ranges(
    work: Callable[[int, int], object], n: int, n_jobs: int | None, *, range_size: int = 512
) -> None:
    """Call ``work(start, stop)`` on ranges that make up 0..n, in threads.

    ``work`` must release the interpreter lock to gain from it, and write to places of its
    own range only: then the result is the same for every ``n_jobs`` and ``range_size``.
    """
    starts = iter(range(0, n, range_size))
    lock = threading.Lock()

    def take_ranges() -> None:
        while True:
            with lock:
                start = next(starts, None)
            if start is None:
                return
            work(start, min(start + range_size, n))

    threads = min(n_threads(n_jobs), -(-n // range_size))
    if threads <= 1:
        take_ranges()
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(take_ranges) for _ in range(threads - 1)]
        take_ranges()
        for other in others:
            other.result()
