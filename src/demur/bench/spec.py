"""What one run is: enough to do it again, and a name made of exactly that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

REAL = "real"  # the noise of sets that bring their own candidates


@dataclass(frozen=True, eq=False)
class Spec:
    """One run: a method with its parameters, on one split of a dataset with one draw of noise.

    Two are equal when everything in them is.

    Parameters
    ----------
    dataset, method : str
        Names in `demur.datasets` and `demur.methods`.
    noise : str
        ``"uniform"``, ``"class-dependent"``, ``"instance-dependent"``, or ``"real"`` for the
        candidates that come with the dataset.
    seed : int
        Decides the split, the noise, and what the method draws.
    classes : str, default="all"
        The filter of classes, by its name in `demur.datasets`.
    noise_parameters, parameters : mapping
        Of the noise, and of the method; what is not named has its default.
    encoder : mapping
        Empty, or the ``kind`` of an encoder of the features and its parameters.
    test_size : float, default=0.2
        Share of the instances that are judged; the others are learned from.
    dial : mapping
        Empty, or the one dial of `RejectClassifier` that decides what is accepted, and what goes
        with it: ``coverage`` (``ties``), ``cost`` (``n_gold``), or ``max_risk`` (``n_gold`` or
        ``ambiguity``, ``confidence``).

    Examples
    --------
    >>> from demur.bench.spec import Spec
    >>> spec = Spec("ecoli", "dst-pll", "real", seed=0, parameters={"n_neighbors": 5})
    >>> spec.run_id
    '55e6be997cd9d3d5'
    >>> Spec.from_json(spec.to_json()) == spec
    True
    """

    dataset: str
    method: str
    noise: str
    seed: int
    classes: str = "all"
    noise_parameters: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)
    test_size: float = 0.2
    dial: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            text = self.to_json()
        except (TypeError, ValueError) as error:
            raise ValueError(f"a run is told in JSON, but {error}: {self}") from None
        if json.loads(text) != self.as_dict():
            raise ValueError(f"a run is told in JSON, which would change some value of {self}.")

    def as_dict(self) -> dict[str, Any]:
        """Every field by its name; the dial only if there is one."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if not self.dial:  # else runs would not have the names they had before there were dials
            del values["dial"]
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}

    def to_json(self) -> str:
        """The one way to write this run as JSON."""
        return canonical(self.as_dict())

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))

    @cached_property
    def run_id(self) -> str:
        """Names the run, and its file."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @property
    def setting(self) -> tuple[Any, ...]:
        """What tables tell runs apart by; in one folder it must decide the parameters too."""
        return self.dataset, self.classes, self.noise, self.method, self.seed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.run_id == other.run_id

    def __hash__(self) -> int:
        return hash(self.run_id)

    def __str__(self) -> str:
        which = "" if self.classes == "all" else f" ({self.classes})"
        return f"{self.method} on {self.dataset}{which}, {self.noise}, seed {self.seed}"


FIELDS = tuple(f.name for f in fields(Spec))


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces; NaN is refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
