"""One file, one method; `METHODS` is the one registry of them, the published ten and `quorum`."""

from __future__ import annotations

import importlib
from typing import cast

from demur.base import PartialLabelClassifier

# name: (module, class); loaded when asked for, to keep `import demur` quick.
_HOMES = {
    "dst-pll": ("demur.methods.dst_pll", "DstPll"),
    "pl-knn": ("demur.methods.pl_knn", "PlKnn"),
    "ipal": ("demur.methods.ipal", "Ipal"),
    "pl-svm": ("demur.methods.pl_svm", "PlSvm"),
    "pl-ecoc": ("demur.methods.pl_ecoc", "PlEcoc"),
    "proden": ("demur.methods.deep", "Proden"),
    "cc": ("demur.methods.deep", "Cc"),
    "pop": ("demur.methods.deep", "Pop"),
    "valen": ("demur.methods.deep", "Valen"),
    "crosel": ("demur.methods.deep", "CroSel"),
    "quorum": ("demur.methods.deep", "Quorum"),
}

METHODS = tuple(_HOMES)


def method(name: str) -> type[PartialLabelClassifier]:
    """The class of a method, by its name in tables and on the command line.

    Examples
    --------
    >>> from demur.methods import METHODS, method
    >>> METHODS[:5]
    ('dst-pll', 'pl-knn', 'ipal', 'pl-svm', 'pl-ecoc')
    >>> METHODS[5:]
    ('proden', 'cc', 'pop', 'valen', 'crosel', 'quorum')
    >>> method("dst-pll").__name__
    'DstPll'
    """
    if name not in _HOMES:
        raise ValueError(f"no method is called {name!r}; there are {', '.join(METHODS)}.")
    module, class_name = _HOMES[name]
    return cast(type[PartialLabelClassifier], getattr(importlib.import_module(module), class_name))
