"""A dial on the methods of a benchmark: it is set without what the method is then judged by.

Half of the test part is set aside where something else than the training part is needed: as the
unlabelled batch that a coverage is set by, or to draw the gold labels of a certificate from. It
is neither learned from nor judged.
"""

from __future__ import annotations

import sys
import tomllib
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from demur._parameters import check_whole
from demur.base import PartialLabelClassifier
from demur.bench.prepare import Prepared
from demur.bench.spec import Spec
from demur.methods import method
from demur.reject import RejectClassifier, least_gold
from demur.reject.dial_settings import DIALS, turned_dial
from demur.reject.risk_estimate import MIN_GOLD
from demur.reject.scores import out_of_fold

FOLDS = 5
LARGEST = sys.float_info.max  # in place of infinity, which JSON cannot tell
# What may be said beside each dial.
_BESIDE = {
    "coverage": ("ties",),
    "cost": ("n_gold",),
    "max_risk": ("n_gold", "confidence", "ambiguity"),
}


# ------------------------------------------------------------------------- what is asked


def parse_dial(text: str) -> dict[str, Any]:
    """A dial as it is typed: its name and value, and what goes with it.

    Examples
    --------
    >>> from demur.bench.dialing import parse_dial
    >>> parse_dial("max_risk=0.05,n_gold=200")
    {'max_risk': 0.05, 'n_gold': 200}
    """
    dial = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name or not value:
            raise ValueError(
                f"{text!r} is no dial; write coverage=0.8, cost=0.1 or max_risk=0.05,n_gold=200."
            )
        try:
            dial[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            dial[name] = value  # a word
    check_dial(dial)
    return dial


def check_dial(dial: Mapping[str, Any]) -> None:
    """Refuse what is no dial, or can promise nothing before anything is begun."""
    known = dict.fromkeys([*DIALS, *(name for beside in _BESIDE.values() for name in beside)])
    for name in dial:
        if name not in known:
            raise ValueError(f"a dial has no {name!r}; it has {', '.join(known)}.")
    turned = turned_dial(**{name: value for name, value in dial.items() if name != "n_gold"})
    for name in dial:
        if name != turned and name not in _BESIDE[turned]:
            raise ValueError(f"{name} does not go with {turned}.")
    if "n_gold" in dial:
        check_whole("n_gold", dial["n_gold"], 1)
    if turned == "max_risk":
        _check_gold_or_ambiguity(dial)
    elif turned == "cost" and dial.get("n_gold", MIN_GOLD) < MIN_GOLD:
        raise ValueError(
            f"n_gold = {dial['n_gold']} is too few to correct a cost by; at least {MIN_GOLD}."
        )


def _check_gold_or_ambiguity(dial: Mapping[str, Any]) -> None:
    if ("n_gold" in dial) == ("ambiguity" in dial):
        raise ValueError(
            "max_risk rests on gold labels or on a declared ambiguity; give n_gold or ambiguity, "
            "one of them."
        )
    least = least_gold(dial["max_risk"], dial.get("confidence", 0.95))
    if dial.get("n_gold", least) < least:
        raise ValueError(
            f"n_gold = {dial['n_gold']} is too few: an error of at most {dial['max_risk']:g} needs "
            f"{least} gold labels without a single error."
        )


def describe_dial(dial: Mapping[str, Any]) -> str:
    """A dial in words, the one that is turned first.

    Examples
    --------
    >>> from demur.bench.dialing import describe_dial
    >>> describe_dial({"ambiguity": 0.5, "max_risk": 0.05})
    'max_risk=0.05, ambiguity=0.5 (conditional)'
    """
    in_order = sorted(dial, key=lambda name: name not in DIALS)
    words = ", ".join(f"{name}={dial[name]}" for name in in_order)
    return f"{words} (conditional)" if "ambiguity" in dial else words


def n_trainings(spec: Spec) -> int:
    """How often a run trains its method: once more for each fold that a dial needs."""
    if not spec.dial or "coverage" in spec.dial or hasattr(method(spec.method), "judge_left_out"):
        return 1
    return 1 + FOLDS


# ------------------------------------------------------------------------- how it is set


class Turned(NamedTuple):
    """A trained method with its dial set.

    Attributes
    ----------
    model : RejectClassifier
    prepared : Prepared
        Without the test instances that were set aside.
    facts : dict
        What is kept of the promise.
    """

    model: RejectClassifier
    prepared: Prepared
    facts: dict[str, Any]


def turn(spec: Spec, trained: PartialLabelClassifier, prepared: Prepared) -> Turned:
    """Set the run's dial on its trained method."""
    dial = dict(spec.dial)
    n_gold = dial.pop("n_gold", None)
    model = RejectClassifier(FrozenEstimator(trained), **dial, random_state=spec.seed)
    aside, judged = set_aside(len(prepared.test), spec)
    X, ids = prepared.X_test[aside], prepared.test[aside]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the promise tells of tied steps, too
        if "coverage" in dial:
            model.fit(X, ids=ids)
        else:
            held_out = out_of_fold(
                clone(trained), trained, prepared.X_train, prepared.sets, cv=FOLDS, seed=spec.seed
            )
            model.adopt(held_out, prepared.X_train, ids=prepared.train)
        if n_gold is not None and "cost" in dial:
            rng = np.random.default_rng(spec.seed)
            rows = rng.choice(len(prepared.train), min(n_gold, len(prepared.train)), replace=False)
            model.recalibrate(rows, prepared.y_train[rows])
        elif n_gold is not None:
            rows = model.plan(X, n_gold, ids=ids).rows
            assert rows is not None, "a plan with a batch names rows"
            model.certify(X[rows], prepared.y_test[aside][rows], ids=ids[rows])
    promise = model.promise_
    facts = {
        "promise": {
            "kind": promise.kind,
            "holds": promise.holds,
            "statement": promise.statement,
            "rests_on": list(promise.rests_on),
            "coverage": promise.coverage,
        },
        "n_aside": len(aside),
    }
    left = prepared._replace(
        X_test=prepared.X_test[judged], y_test=prepared.y_test[judged], test=prepared.test[judged]
    )
    return Turned(model, left, facts)


def set_aside(n_test: int, spec: Spec) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places in the test part that the dial may be set by, and those that are judged.

    The same for all methods, as the dataset's split is.
    """
    places = np.arange(n_test)
    if "coverage" not in spec.dial and not {"max_risk", "n_gold"} <= set(spec.dial):
        return places[:0], places
    shuffled = np.random.default_rng(spec.seed).permutation(places)
    return np.sort(shuffled[::2]), np.sort(shuffled[1::2])


def finite(threshold: float) -> float:
    """The threshold as JSON can tell it; what it accepts is the same."""
    return float(np.clip(threshold, -LARGEST, LARGEST))
