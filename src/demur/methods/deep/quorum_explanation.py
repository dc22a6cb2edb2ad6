"""Why a quorum of networks and neighbours accepts or demurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.methods.explanation import text_table

SHOWN_LABELS = 6


class NeighborVoice(NamedTuple):
    """One neighbour: its row, its distance, its share of the say, and its label.

    The label is the candidate that the networks think likeliest, with its ``weight``.
    """

    row: int
    distance: float
    share: float
    label: Any
    weight: float


@dataclass(frozen=True)
class QuorumExplanation:
    """What `Quorum.explain` found.

    Attributes
    ----------
    classes : list
        All labels, in the order of the probabilities.
    prediction : label
    accept_score : float
        Probability of the prediction.
    threshold : float
        The prediction is accepted when the accept score is over it.
    proba : ndarray of shape (n_classes,)
        What both sides say together.
    by_network : ndarray of shape (n_networks, n_classes)
    by_neighbors : ndarray of shape (n_classes,)
    neighbors : list of NeighborVoice
        Nearest first.
    """

    classes: list[Any]
    prediction: Any
    accept_score: float
    threshold: float
    proba: NDArray[np.float64]
    by_network: NDArray[np.float64]
    by_neighbors: NDArray[np.float64]
    neighbors: list[NeighborVoice]

    @property
    def accepted(self) -> bool:
        """Whether the prediction is safe by the method's own rule."""
        return self.accept_score > self.threshold

    @property
    def dissenting_networks(self) -> list[int]:
        """Networks that would have predicted another label."""
        own = self.classes.index(self.prediction)
        return np.flatnonzero(self.by_network.argmax(axis=1) != own).tolist()

    @property
    def dissenting_neighbors(self) -> list[NeighborVoice]:
        """Neighbours that stand for another label."""
        return [voice for voice in self.neighbors if voice.label != self.prediction]

    @property
    def reason(self) -> str:
        """One sentence on why."""
        own = self.classes.index(self.prediction)
        by_networks = self.by_network.mean(axis=0)
        said = f"networks {by_networks[own]:.3f}, neighbours {self.by_neighbors[own]:.3f}"
        if self.accepted:
            return f"Accepted as {self.prediction} with {self.accept_score:.3f} ({said})."
        other_networks, other_neighbors = by_networks.argmax(), self.by_neighbors.argmax()
        if other_networks != other_neighbors:
            return (
                f"Demurs: the networks say {self.classes[other_networks]} "
                f"({by_networks[other_networks]:.3f}), the neighbours "
                f"{self.classes[other_neighbors]} ({self.by_neighbors[other_neighbors]:.3f})."
            )
        return f"Demurs: {self.prediction} has {self.accept_score:.3f} only ({said})."

    def __str__(self) -> str:
        against = len(self.dissenting_networks), len(self.dissenting_neighbors)
        lines = [
            self.reason,
            f"Accept score {self.accept_score:.3f}, accepted when over {self.threshold:g}.",
            f"For another label: {against[0]} of {len(self.by_network)} networks, "
            f"{against[1]} of {len(self.neighbors)} neighbours.",
        ]
        shown = np.argsort(-self.proba, kind="stable")[:SHOWN_LABELS]
        numbers = [f"network {i + 1}" for i in range(len(self.by_network))]
        header = ("label", "together", "neighbours", *numbers)
        rows = [
            (
                str(self.classes[y]),
                *(
                    f"{p:.3f}"
                    for p in (self.proba[y], self.by_neighbors[y], *self.by_network[:, y])
                ),
            )
            for y in shown
        ]
        lines += ["", "Probabilities", *text_table(header, rows)]
        lines += ["", f"The {len(self.neighbors)} nearest training instances"]
        told = [
            (str(v.row), f"{v.distance:.4g}", f"{v.share:.3f}", str(v.label), f"{v.weight:.3f}")
            for v in self.neighbors
        ]
        lines += text_table(("row", "distance", "say", "label", "weight"), told)
        return "\n".join(lines)
