"""Methods that train networks. Making them needs no torch; fitting them does.

`estimator` holds what they share as estimators, `stack` the networks, `training` the one
loop; each other file is one method.
"""

from demur.methods.deep.cc import Cc
from demur.methods.deep.crosel import CroSel
from demur.methods.deep.estimator import DeepClassifier, Strategy, fit_stack
from demur.methods.deep.pop import Pop
from demur.methods.deep.proden import Proden
from demur.methods.deep.quorum import Quorum
from demur.methods.deep.valen import Valen

__all__ = [
    "Cc", "CroSel", "DeepClassifier", "Pop", "Proden", "Quorum", "Strategy", "Valen", "fit_stack",
]  # fmt: skip
