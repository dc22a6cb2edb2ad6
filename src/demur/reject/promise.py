"""What a dial promises, in words: the statement, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """What can be promised of the accepted predictions.

    Attributes
    ----------
    kind : {"coverage", "cost", "certificate", "conditional bound"}
    holds : bool
        False where nothing is promised: not certified yet, nothing passed, or a cost.
    statement : str
        What is promised.
    rests_on : tuple of str
        What it is true under, or what was measured.
    threshold : float
        Scores over it are accepted; infinity where all are rejected.
    coverage : float
        Share of the instances that it is expected to accept.
    """

    kind: str
    holds: bool
    statement: str
    rests_on: tuple[str, ...]
    threshold: float
    coverage: float

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {self.statement}", *(f"  {r}" for r in self.rests_on)])
