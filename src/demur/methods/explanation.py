"""Why an instance was accepted or not: the neighbours, their sets, each label's interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SHOWN_SETS = 6
SHOWN_LABELS = 8


class NeighborEvidence(NamedTuple):
    """One neighbour: its training row, its distance, its candidates, and whether it counts.

    A neighbour whose candidates are all labels tells nothing, and is not used.
    """

    row: int
    distance: float
    candidates: list[Any]
    used: bool


@dataclass(frozen=True)
class Explanation:
    """What `DstPll.explain` found; prints well in a terminal and in a notebook.

    Attributes
    ----------
    classes : list
        All labels, in the order of ``belief`` and ``plausibility``.
    prediction : label
    accept_score : float
        Belief in the prediction less the largest plausibility of another label.
    threshold : float
        The prediction is accepted when the accept score is over it.
    belief, plausibility : ndarray of shape (n_classes,)
        Lower and upper bound of each label's probability.
    conflict, ignorance : float
        Mass on which the neighbours contradict each other, and mass on no label in
        particular, the conflict included.
    neighbors : list of NeighborEvidence
        Nearest first.
    focal_sets : list of (labels, mass) or None
        Heaviest first; None where there are too many to list.
    """

    classes: list[Any]
    prediction: Any
    accept_score: float
    threshold: float
    belief: NDArray[np.float64]
    plausibility: NDArray[np.float64]
    conflict: float
    ignorance: float
    neighbors: list[NeighborEvidence]
    focal_sets: list[tuple[list[Any], float]] | None

    @property
    def accepted(self) -> bool:
        """Whether the prediction is safe by the method's own rule."""
        return self.accept_score > self.threshold

    @property
    def rival(self) -> Any:
        """The most plausible other label."""
        return self.classes[self._rival]

    @property
    def _own(self) -> int:
        return self.classes.index(self.prediction)

    @property
    def _rival(self) -> int:
        others = self.plausibility.copy()
        others[self._own] = -1.0
        return int(others.argmax())

    @property
    def reason(self) -> str:
        """One sentence on why."""
        label, rival = f"{self.prediction}", f"{self.rival}"
        belief, limit = self.belief[self._own], self.plausibility[self._rival]
        if self.accepted:
            return (
                f"Accepted as {label}: its probability is at least {belief:.3f}, "
                f"and no other label's can exceed {limit:.3f} ({rival})."
            )
        if not any(neighbor.used for neighbor in self.neighbors):
            return "Demurs: no neighbour tells any labels apart."
        if belief == 0:
            return "Demurs: the neighbours' sets never single out one label."
        if belief > limit - self.conflict:
            return (
                f"Demurs: {label} leads with {belief:.3f}, but neighbours contradict each other "
                f"(conflict {self.conflict:.3f}), so {rival} may reach {limit:.3f}."
            )
        return (
            f"Demurs: {label} is believed with {belief:.3f} only, and {rival} may reach "
            f"{limit:.3f}; the two are too close."
        )

    def _label_rows(self) -> list[tuple[str, str, str]]:
        order = np.lexsort((-self.plausibility, -self.belief))[:SHOWN_LABELS]
        return [
            (str(self.classes[y]), f"{self.belief[y]:.3f}", f"{self.plausibility[y]:.3f}")
            for y in order
        ]

    def _neighbor_rows(self) -> list[tuple[str, str, str]]:
        return [
            (
                str(neighbor.row),
                f"{neighbor.distance:.4g}",
                _braces(neighbor.candidates) if neighbor.used else "all labels (tells nothing)",
            )
            for neighbor in self.neighbors
        ]

    def _set_rows(self) -> list[tuple[str, str]]:
        listed = (self.focal_sets or [])[:SHOWN_SETS]
        return [
            (f"{mass:.3f}", "any label" if len(s) == len(self.classes) else _braces(s))
            for s, mass in listed
        ]

    def _tables(self) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        hidden = max(len(self.classes) - SHOWN_LABELS, 0)
        more = f", {hidden} more labels" if hidden else ""
        if self.focal_sets is None:
            sets = "Focal sets: too many to list"
        else:
            more_sets = max(len(self.focal_sets) - SHOWN_SETS, 0)
            sets = "Heaviest sets of labels" + (f" ({more_sets} more)" if more_sets else "")
        return [
            (
                f"Bounds of each label's probability (conflict {self.conflict:.3f}, "
                f"ignorance {self.ignorance:.3f}{more})",
                ("label", "belief", "plausibility"),
                list(self._label_rows()),
            ),
            (sets, ("mass", "labels"), list(self._set_rows())),
            (
                f"The {len(self.neighbors)} nearest training instances",
                ("row", "distance", "candidates"),
                list(self._neighbor_rows()),
            ),
        ]

    def __str__(self) -> str:
        lines = [
            self.reason,
            f"Delta = {self.belief[self._own]:.3f} - {self.plausibility[self._rival]:.3f} "
            f"= {self.accept_score:+.3f}, accepted when over {self.threshold:g}.",
        ]
        for title, header, rows in self._tables():
            lines += ["", title, *(text_table(header, rows) if rows else ())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{escape(self.reason)}</strong></p>"]
        for title, header, rows in self._tables():
            head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
            body = "".join(
                "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                for row in rows
            )
            parts.append(
                f"<table><caption>{escape(title)}</caption>"
                f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            )
        return "\n".join(parts)


def text_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a table, indented, columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        ("  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))).rstrip()
        for row in (header, *rows)
    ]


def _braces(labels: list[Any]) -> str:
    return "{" + ", ".join(map(str, labels)) + "}"
