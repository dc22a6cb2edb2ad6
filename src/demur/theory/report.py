"""What is told of the assumption in data: figures of one class or of all, and their table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Neighborhoods:
    """What the neighbourhoods of a class, or of all, look like beside the assumption.

    A distance is one of total variation: the largest difference in probability, from 0
    (the same) to 1.

    Attributes
    ----------
    n_instances : int
    p1, p2, p3 : float
        Shares of the neighbours' sets, short of those with every class, that hold the true
        label and the confused one; the true but not the confused one; not the true one. NaN
        where every set has every class.
    dominance, tied_dominance : float
        Share of the instances whose true label is in more of the neighbours' sets than any
        other label; or in as many.
    full_share : float
        Share of the neighbours' sets with every class; the assumption has none.
    noise_share : float
        Share of the neighbours' sets that hold the true label though it is not the neighbour's
        own; the assumption has none. NaN where the neighbours' labels are not known.
    mean_size, assumed_size : float
        Mean number of candidates of a neighbour, and under the assumption.
    uneven : float
        Distance between how often each label occurs, the true and the confused one aside, and
        all of them equally often. NaN where none occurs.
    distance : float
        Distance between the distribution of the neighbours' sets and the assumption's with
        these p1, p2 and p3; overall, that of the pairs of class and set.
    chance_distance : float
        About what the distance were from so few sets, did they come from the assumption.
    true_mass, confused_mass : float
        Mean mass of the two labels in the neighbours' combined evidence.
    assumed_true_mass, assumed_confused_mass : float
        The same as expected under the assumption.
    """

    n_instances: int
    p1: float
    p2: float
    p3: float
    dominance: float
    tied_dominance: float
    full_share: float
    noise_share: float
    mean_size: float
    assumed_size: float
    uneven: float
    distance: float
    chance_distance: float
    true_mass: float
    confused_mass: float
    assumed_true_mass: float
    assumed_confused_mass: float

    @property
    def ordered(self) -> bool:
        """Whether p1 >= p2 >= p3 > 0, as the text asks."""
        return self.p1 >= self.p2 >= self.p3 > 0


@dataclass(frozen=True)
class AssumptionReport:
    """How well the text's assumption holds in data; prints as a table.

    Attributes
    ----------
    n_neighbors, n_classes : int
    overall : Neighborhoods
    by_class : dict from label to Neighborhoods
        Of the classes that instances have.
    confused : dict from label to label
        The label that is most often with the true one in the neighbours' sets; the first of
        equals; None where no label ever is.
    """

    n_neighbors: int
    n_classes: int
    overall: Neighborhoods
    by_class: dict[Any, Neighborhoods]
    confused: dict[Any, Any]

    def __str__(self) -> str:
        whole, classes = self.overall, self.by_class.values()
        n_ordered = sum(one.ordered for one in classes)
        n_ahead = sum(one.true_mass > one.confused_mass for one in classes)
        lines = [
            f"The assumption in the {self.n_neighbors} neighbours of {whole.n_instances} "
            f"instances, {self.n_classes} classes",
            "",
            f"  true label most frequent      {_share(whole.dominance)} of the instances "
            f"({_share(whole.tied_dominance).strip()} with ties)",
            f"  p1 >= p2 >= p3 > 0            {n_ordered} of {len(classes)} classes",
            f"  true ahead of confused mass   {n_ahead} of {len(classes)} classes",
            "",
            "  neighbours' candidate sets       found   assumed",
            f"  p1  true and confused label    {whole.p1:7.3f}    larger",
            f"  p2  true without confused      {whole.p2:7.3f}    middle",
            f"  p3  without the true label     {whole.p3:7.3f}   smaller",
            f"  with every class               {_share(whole.full_share)}      none",
            f"  true label only as noise       {_share(whole.noise_share)}      none",
            f"  mean size                      {whole.mean_size:7.2f}   {whole.assumed_size:7.2f}",
            f"  mass of the true label         {whole.true_mass:7.4f}   "
            f"{whole.assumed_true_mass:7.4f}",
            f"  mass of the confused label     {whole.confused_mass:7.4f}   "
            f"{whole.assumed_confused_mass:7.4f}",
            "",
            "  distance, 0 to 1                 found   by chance",
            f"  of the sets' distribution      {whole.distance:7.3f}"
            f"   {whole.chance_distance:9.3f}",
            f"  of other labels from even      {whole.uneven:7.3f}",
            "",
            *self._class_table(),
        ]
        return "\n".join(lines)

    def _class_table(self) -> Iterator[str]:
        names = {label: str(label) for label in self.by_class}
        confused = {label: str(self.confused[label]) for label in self.by_class}
        first = max(5, *map(len, names.values()))
        second = max(8, *map(len, confused.values()))
        yield (
            f"  {'class':<{first}}  {'confused':<{second}}  instances     p1     p2     p3"
            "  dominance  distance"
        )
        for label, one in self.by_class.items():
            yield (
                f"  {names[label]:<{first}}  {confused[label]:<{second}}  {one.n_instances:9d}"
                f"  {one.p1:5.3f}  {one.p2:5.3f}  {one.p3:5.3f}    {_share(one.dominance)}"
                f"  {one.distance:8.3f}"
            )


def _share(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:7.1%}"
