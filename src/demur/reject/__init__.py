"""From accept scores to decisions, by a dial that says what it promises."""

from demur.reject.certificate import fixed_sequence, gold_worth_drawing, least_gold
from demur.reject.dial import RejectClassifier
from demur.reject.labels import LabelClassifier
from demur.reject.planning import Plan
from demur.reject.promise import Promise

__all__ = [
    "LabelClassifier",
    "Plan",
    "Promise",
    "RejectClassifier",
    "fixed_sequence",
    "gold_worth_drawing",
    "least_gold",
]
