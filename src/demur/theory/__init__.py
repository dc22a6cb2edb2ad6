"""Expected masses of labels under the text's assumption, and how well that holds in data.

The assumption says how the candidate sets of an instance's neighbours are distributed. What
mass the neighbours' combined evidence then gives each label on average is worked out by three
routes that share nothing but the distribution: `nested_sums`, `expected_masses` by inclusion
and exclusion, and `simulate_masses`. `check_assumption` looks at data.

>>> from demur.theory import Assumption, expected_masses, nested_sums, simulate_masses
>>> assumption = Assumption((0.4, 0.35, 0.25), n_classes=3)
>>> expected_masses(assumption, 5).round(6).tolist()
[0.306098, 0.11149, 0.050484]
>>> [round(nested_sums(assumption, 5, label=label), 6) for label in (0, 1)]
[0.306098, 0.11149]
>>> simulate_masses(assumption, 5, random_state=0).mean.round(2).tolist()
[0.31, 0.11, 0.05]
"""

from demur.theory.assumption import CONFUSED, PAPER, TRUE, Assumption
from demur.theory.closed_form import expected_masses, nested_sums
from demur.theory.in_data import check_assumption, check_neighborhoods
from demur.theory.report import AssumptionReport, Neighborhoods
from demur.theory.simulation import (
    ExpectedMassCurve,
    SimulatedMasses,
    expected_mass_curve,
    simulate_masses,
)

__all__ = [
    "CONFUSED",
    "PAPER",
    "TRUE",
    "Assumption",
    "AssumptionReport",
    "ExpectedMassCurve",
    "Neighborhoods",
    "SimulatedMasses",
    "check_assumption",
    "check_neighborhoods",
    "expected_mass_curve",
    "expected_masses",
    "nested_sums",
    "simulate_masses",
]
