"""Why a quorum of networks, neighbours and trees accepts or demurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demur.methods.explanation import text_table

SHOWN_LABELS = 6
KERNEL = "kernel machine"


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
        What the three sides say together.
    pool_weights : ndarray of shape (3,)
        How loud networks, neighbours and trees are.
    networks : list of str
        What they are called; the kernel machine, where it stands in for them.
    by_network : ndarray of shape (n_networks, n_classes)
    by_neighbors, by_trees : ndarray of shape (n_classes,)
    neighbors : list of NeighborVoice
        Nearest first.
    """

    classes: list[Any]
    prediction: Any
    accept_score: float
    threshold: float
    proba: NDArray[np.float64]
    pool_weights: NDArray[np.float64]
    networks: list[str]
    by_network: NDArray[np.float64]
    by_neighbors: NDArray[np.float64]
    by_trees: NDArray[np.float64]
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
    def _first(self) -> str:
        return KERNEL if self.networks == [KERNEL] else "networks"

    @property
    def sides(self) -> dict[str, NDArray[np.float64]]:
        """Probabilities by each of the three sides, by name."""
        return {
            self._first: self.by_network.mean(axis=0),
            "neighbours": self.by_neighbors,
            "trees": self.by_trees,
        }

    @property
    def reason(self) -> str:
        """One sentence on why."""
        own = self.classes.index(self.prediction)
        said = ", ".join(f"{name} {proba[own]:.3f}" for name, proba in self.sides.items())
        if self.accepted:
            return f"Accepted as {self.prediction} with {self.accept_score:.3f} ({said})."
        tops = {name: int(proba.argmax()) for name, proba in self.sides.items()}
        if len(set(tops.values())) > 1:
            told = ", ".join(
                f"{name} {self.classes[y]} ({self.sides[name][y]:.3f})" for name, y in tops.items()
            )
            return f"Demurs: the sides differ: {told}."
        return f"Demurs: {self.prediction} has {self.accept_score:.3f} only ({said})."

    def __str__(self) -> str:
        voices = self._first if len(self.networks) == 1 else "networks"
        against = len(self.dissenting_networks), len(self.dissenting_neighbors)
        lines = [
            self.reason,
            f"Accept score {self.accept_score:.3f}, accepted when over {self.threshold:g}.",
            f"For another label: {against[0]} of {len(self.networks)} {voices}, "
            f"{against[1]} of {len(self.neighbors)} neighbours.",
            "Loudness: "
            + ", ".join(
                f"{name} {w:.2f}" for name, w in zip(self.sides, self.pool_weights, strict=True)
            )
            + ".",
        ]
        shown = np.argsort(-self.proba, kind="stable")[:SHOWN_LABELS]
        columns = [
            ("together", self.proba),
            ("neighbours", self.by_neighbors),
            ("trees", self.by_trees),
            *zip(self.networks, self.by_network, strict=True),
        ]
        header = ("label", *(name for name, _ in columns))
        rows = [(str(self.classes[y]), *(f"{p[y]:.3f}" for _, p in columns)) for y in shown]
        lines += ["", "Probabilities", *text_table(header, rows)]
        lines += ["", f"The {len(self.neighbors)} nearest training instances"]
        told = [
            (str(v.row), f"{v.distance:.4g}", f"{v.share:.3f}", str(v.label), f"{v.weight:.3f}")
            for v in self.neighbors
        ]
        lines += text_table(("row", "distance", "say", "label", "weight"), told)
        return "\n".join(lines)
