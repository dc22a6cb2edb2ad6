"""What can be wrong with a file, and with what was asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

SHOWN_ROWS = 10


class DataError(ValueError):
    """A file does not hold what it should; the command line ends with exit code 1."""


class UsageError(ValueError):
    """What was asked for makes no sense with these files; exit code 2."""


class BadRow(NamedTuple):
    """A row that cannot be used: where it stands, why, and what it holds."""

    place: int
    reason: str
    text: str


class BadRows:
    """The bad rows of a file; they are kept for a file of their own, or they stop the work."""

    def __init__(
        self,
        name: str,
        unit: str,
        *,
        keep: bool,
        write: Callable[[list[BadRow]], object] | None = None,
    ) -> None:
        self.name, self.unit, self.keep, self.write = name, unit, keep, write
        self.count = 0
        self.rows: list[BadRow] = []

    def add(self, rows: list[BadRow]) -> None:
        """Take note of bad rows, in the order of the file."""
        self.count += len(rows)
        if self.write is not None:  # a file larger than memory may have more than fit in it
            self.write(rows)
            return
        wanted = len(rows) if self.keep else SHOWN_ROWS - len(self.rows)
        self.rows += rows[:wanted]

    @property
    def stop(self) -> bool:
        """Whether there are bad rows that nobody asked to skip."""
        return bool(self.count) and not self.keep

    @property
    def enough(self) -> bool:
        """Whether as many are known as the message names."""
        return self.stop and self.count >= SHOWN_ROWS

    def check(self) -> None:
        """Refuse to go on with bad rows that nobody asked to skip."""
        if not self.stop:
            return
        if self.count == 1:
            row = self.rows[0]
            raise DataError(f"{self.name}, {self.unit} {row.place}: {row.reason}")
        lines = [f"  {self.unit} {row.place}: {row.reason}" for row in self.rows]
        many = f"{self.count} bad rows" if self.count < SHOWN_ROWS else "10 bad rows or more"
        raise DataError("\n".join([f"{self.name} holds {many} (--skip-bad FILE goes on):", *lines]))


def share(part: int, whole: int) -> str:
    """A count with its share, for people."""
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"
