"""How long a run takes: by the rates in ``costs.toml``, put right by the runs that are finished."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Hashable
from functools import cache
from importlib import resources
from typing import Any

from demur.bench.dialing import n_trainings
from demur.bench.spec import Spec
from demur.datasets import registry
from demur.methods import method
from demur.methods.deep import DeepClassifier

_UNKNOWN_ROWS, _UNKNOWN_RATE = 1000, 1.0
_STACK = 15  # networks that are usually trained together on a GPU


@cache
def trains_networks(name: str) -> bool:
    """Whether a method trains networks, which runs of one dataset then do as one stack."""
    return issubclass(method(name), DeepClassifier)


def rough_seconds(spec: Spec, *, gpu: bool = False) -> float:
    """Seconds of a run on one core, by its method's rate and the size of its dataset.

    Only the order of magnitude can be right: machines differ, and so do datasets.

    Parameters
    ----------
    spec : Spec
    gpu : bool, default=False
        Whether networks are trained on a GPU, 15 of them at a time.

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
    trainings = n_trainings(spec)
    rows, images = _size(spec)
    kind = "images" if images and not spec.encoder else "tables"
    if gpu and trains_networks(spec.method):
        rates = _rates()["gpu"]
        steps = _epochs(spec) * -(-rows // _batch_size(spec, kind))
        seconds = steps * rates[kind] * rates["times"].get(spec.method, 1.0)
        return trainings * float(seconds) / _STACK
    rate = float(_rates()[kind].get(spec.method, _UNKNOWN_RATE))
    return trainings * rate * rows / 1000.0 * (_epochs(spec) or 1)


def encoder_seconds(spec: Spec, *, gpu: bool = False) -> float:
    """Seconds that the encoder of a run is trained for, by its epochs and rows."""
    rate = _rates()["encoders"].get(str(spec.encoder.get("kind")), {}).get("gpu" if gpu else "cpu")
    rows, _ = _size(spec)
    return float(rate or 0.0) * rows / 1000.0 * float(spec.encoder.get("n_epochs", 30))


def _size(spec: Spec) -> tuple[int, bool]:
    """Rows to learn from, and whether they are images."""
    known = registry().get(spec.dataset)
    rows, images = (known.shape[0], bool(known.image_shape)) if known else (_UNKNOWN_ROWS, False)
    return max(round(rows * (1.0 - spec.test_size)), 1), images


@cache
def _rates() -> dict[str, Any]:
    text = resources.files("demur.bench").joinpath("costs.toml").read_text("utf-8")
    return tomllib.loads(text)


def _epochs(spec: Spec) -> int:
    """Epochs of a method that has such, else 0."""
    chosen = spec.parameters.get("n_epochs")
    return int(_defaults(spec.method).get("n_epochs") or 0) if chosen is None else int(chosen)


@cache
def _defaults(name: str) -> dict[str, Any]:
    return dict(method(name)().get_params())


def _batch_size(spec: Spec, kind: str) -> int:
    chosen = spec.parameters.get("batch_size") or getattr(
        method(spec.method), "default_batch_size", None
    )
    return int(chosen or (1024 if kind == "tables" else 64))


class Costs:
    """Estimates that get better with every finished run.

    A run's rough estimate is multiplied by how much longer than their rough estimates the
    finished runs took: those of the same method and dataset, else of the method, else all. What
    networks took on a GPU says nothing of those on a CPU, nor of other methods.

    Parameters
    ----------
    gpu : bool, default=False
        Whether the networks to come are trained on a GPU.

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

    def __init__(self, *, gpu: bool = False) -> None:
        self.gpu = gpu
        self._taken: dict[Hashable, float] = defaultdict(float)
        self._rough: dict[Hashable, float] = defaultdict(float)

    def learn(self, spec: Spec, seconds: float, device: str = "cpu") -> None:
        """Take a finished run into account."""
        gpu = device != "cpu" and trains_networks(spec.method)
        rough = rough_seconds(spec, gpu=gpu)
        for key in self._keys(spec, gpu):
            self._taken[key] += seconds
            self._rough[key] += rough

    def seconds(self, spec: Spec) -> float:
        """Estimate of a run that is not finished."""
        gpu = self.gpu and trains_networks(spec.method)
        key = next((key for key in self._keys(spec, gpu) if self._rough.get(key)), None)
        factor = 1.0 if key is None else self._taken[key] / self._rough[key]
        return rough_seconds(spec, gpu=gpu) * factor

    @property
    def is_learned(self) -> bool:
        """Whether any run has been taken into account."""
        return bool(self._taken)

    @staticmethod
    def _keys(spec: Spec, gpu: bool) -> tuple[Hashable, ...]:
        return (spec.method, spec.dataset, gpu), (spec.method, gpu), gpu
