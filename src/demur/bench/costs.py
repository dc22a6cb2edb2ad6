"""How long a run takes: by the rates in ``costs.toml``, put right by the runs that are finished."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Hashable
from functools import cache
from importlib import resources
from typing import Any

from demur.bench.spec import Spec
from demur.datasets import registry
from demur.methods import method

_UNKNOWN_ROWS, _UNKNOWN_RATE = 1000, 1.0


def rough_seconds(spec: Spec) -> float:
    """Seconds of a run on one core, by its method's rate and the size of its dataset.

    Only the order of magnitude can be right: machines differ, and so do datasets.

    Examples
    --------
    >>> from demur.bench.costs import rough_seconds
    >>> from demur.bench.spec import Spec
    >>> long, short = (
    ...     Spec("digits", "proden", "uniform", 0, parameters={"n_epochs": n}) for n in (200, 20)
    ... )
    >>> round(rough_seconds(long) / rough_seconds(short))
    10
    """
    known = registry().get(spec.dataset)
    rows, pictures = (known.shape[0], known.image_shape) if known else (_UNKNOWN_ROWS, None)
    rates = _rates()
    rate = rates["images" if pictures and not spec.encoder else "tables"].get(
        spec.method, _UNKNOWN_RATE
    )
    seconds = rate * rows * (1.0 - spec.test_size) / 1000.0
    return seconds * (_epochs(spec.method, spec.parameters.get("n_epochs")) or 1)


@cache
def _rates() -> dict[str, dict[str, float]]:
    text = resources.files("demur.bench").joinpath("costs.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def _epochs(name: str, chosen: Any) -> int | None:
    """Epochs of a method that has such."""
    epochs: int | None = method(name)().get_params().get("n_epochs") if chosen is None else chosen
    return epochs


class Costs:
    """Estimates that get better with every finished run.

    A run's rough estimate is multiplied by how much longer than their rough estimates the
    finished runs took: those of the same method and dataset, else of the method, else all.

    Examples
    --------
    >>> from demur.bench.costs import Costs, rough_seconds
    >>> from demur.bench.spec import Spec
    >>> costs = Costs()
    >>> first, second = (Spec("iris", "pl-knn", "uniform", seed) for seed in (0, 1))
    >>> costs.learn(first, 5.0)
    >>> costs.seconds(second)
    5.0
    """

    def __init__(self) -> None:
        self._taken: dict[Hashable, float] = defaultdict(float)
        self._rough: dict[Hashable, float] = defaultdict(float)

    def learn(self, spec: Spec, seconds: float) -> None:
        """Take a finished run into account."""
        rough = rough_seconds(spec)
        for key in self._keys(spec):
            self._taken[key] += seconds
            self._rough[key] += rough

    def seconds(self, spec: Spec) -> float:
        """Estimate of a run that is not finished."""
        key = next((key for key in self._keys(spec) if self._rough.get(key)), None)
        factor = 1.0 if key is None else self._taken[key] / self._rough[key]
        return rough_seconds(spec) * factor

    @property
    def is_learned(self) -> bool:
        """Whether any run has been taken into account."""
        return bool(self._taken)

    @staticmethod
    def _keys(spec: Spec) -> tuple[Hashable, ...]:
        return (spec.method, spec.dataset), spec.method, None
