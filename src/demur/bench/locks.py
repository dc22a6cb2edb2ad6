"""Locks on files that the kernel takes back from a process that dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Lock:
    """A lock that is held; see `try_lock`."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle

    def release(self) -> None:
        """Give the lock back, and leave no file."""
        with suppress(OSError):
            self.path.unlink()
        os.close(self._handle)


def try_lock(path: Path, *, wait: bool = False) -> Lock | None:
    """Take the lock named by a path, or None if another holds it.

    Threads of one process exclude each other as processes do.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, handle):
                return Lock(path, handle)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last holder removed the file meanwhile: no one else sees this one


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock; wait for it. Where there can be no lock, a full disk, go on without."""
    lock = None
    with suppress(OSError):
        lock = try_lock(path, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
