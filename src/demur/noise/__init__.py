"""Candidate sets made from true labels, by adding wrong ones: noise to learn from.

Two readings of the published experiments are at hand in `READINGS`: ``"paper"`` follows
the published code, which made the published tables; ``"paper-text"`` follows the text.

>>> from demur.noise import READINGS, uniform_noise
>>> uniform_noise([0, 1, 2, 3], **READINGS["paper"]["uniform"], random_state=0).to_lists()
[[0], [0, 1, 3], [1, 2, 3], [1, 2, 3]]
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from demur.noise.by_class import class_dependent_noise, pair_classes, uniform_noise
from demur.noise.by_instance import flip_probabilities, instance_dependent_noise

__all__ = [
    "READINGS",
    "class_dependent_noise",
    "flip_probabilities",
    "instance_dependent_noise",
    "pair_classes",
    "uniform_noise",
]

READINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "paper": {
            "uniform": {"n_noise": 2, "share": 0.5},
            "class-dependent": {"share": 0.7, "partner_probability": 0.7},
            "instance-dependent": {"mean_rate": 0.3},
        },
        "paper-text": {
            "uniform": {"n_noise": 3, "share": 0.7},
            "class-dependent": {"share": 0.7, "partner_probability": 1.0},
            "instance-dependent": {"mean_rate": None},
        },
    }
)
