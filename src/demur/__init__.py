"""demur: learn classifiers from candidate labels, and abstain where they are not sure.

Names are loaded when first used, so that ``import demur`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from demur.candidates import CandidateSets
    from demur.embed import VAEEncoder
    from demur.evidence.mass import MassFunction
    from demur.methods.deep import Cc, CroSel, Pop, Proden, Quorum, Valen, fit_stack
    from demur.methods.dst_pll import DstPll
    from demur.methods.ipal import Ipal
    from demur.methods.pl_ecoc import PlEcoc
    from demur.methods.pl_knn import PlKnn
    from demur.methods.pl_svm import PlSvm
    from demur.plots import TradeOffDisplay
    from demur.reject import RejectClassifier

_HOMES = {
    "CandidateSets": "demur.candidates",
    "MassFunction": "demur.evidence.mass",
    "DstPll": "demur.methods.dst_pll",
    "PlKnn": "demur.methods.pl_knn",
    "Ipal": "demur.methods.ipal",
    "PlSvm": "demur.methods.pl_svm",
    "PlEcoc": "demur.methods.pl_ecoc",
    "Proden": "demur.methods.deep",
    "Cc": "demur.methods.deep",
    "Pop": "demur.methods.deep",
    "Valen": "demur.methods.deep",
    "CroSel": "demur.methods.deep",
    "Quorum": "demur.methods.deep",
    "fit_stack": "demur.methods.deep",
    "VAEEncoder": "demur.embed",
    "TradeOffDisplay": "demur.plots",
    "RejectClassifier": "demur.reject",
}

__all__ = [
    "CandidateSets",
    "MassFunction",
    "DstPll",
    "PlKnn",
    "Ipal",
    "PlSvm",
    "PlEcoc",
    "Proden",
    "Cc",
    "Pop",
    "Valen",
    "CroSel",
    "Quorum",
    "fit_stack",
    "VAEEncoder",
    "TradeOffDisplay",
    "RejectClassifier",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'demur' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
