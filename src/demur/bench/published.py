"""The numbers of the text's tables, to set beside one's own; they lie in ``published.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Published(NamedTuple):
    """A number as it was printed.

    Attributes
    ----------
    mean, std : float
    best : bool
        Printed in bold: the best, or not significantly different from it.
    """

    mean: float
    std: float
    best: bool = False


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("demur.bench").joinpath("published.toml").read_text("utf-8"))


def published(table: str, *keys: str) -> dict[str, Published]:
    """The numbers of one column of a table, by method; empty where there is no such column.

    Parameters
    ----------
    table : {"table1", "table2", "table3"}
    *keys : str
        Of table 1 the group of datasets and the noise; of table 2 the cost of a reject, with
        two decimals; of table 3 ``"rejects"`` or ``"accuracy"``.

    Examples
    --------
    >>> from demur.bench.published import published
    >>> published("table1", "UCI", "class-dependent")["pl-knn"]
    Published(mean=81.2, std=13.9, best=True)
    >>> published("table1", "UCI", "uniform")
    {}
    """
    column = _data()[table]
    for key in keys:
        column = column.get(key, {})
    return {method: Published(**number) for method, number in column.items()}


def published_costs() -> tuple[float, ...]:
    """The costs of a reject in table 2.

    Examples
    --------
    >>> from demur.bench.published import published_costs
    >>> published_costs()
    (0.0, 0.05, 0.1, 0.15, 0.2)
    """
    return tuple(float(cost) for cost in _data()["table2"])


def published_extent() -> tuple[int, int]:
    """How many settings, and seeds of each, the text's tables 2 and 3 are averages of.

    Examples
    --------
    >>> from demur.bench.published import published_extent
    >>> published_extent()
    (34, 5)
    """
    extent = _data()["extent"]
    return extent["settings"], extent["seeds"]


def groups() -> dict[str, tuple[str, ...]]:
    """The groups of datasets that table 1 averages over."""
    return {group["name"]: tuple(group["datasets"]) for group in _data()["groups"]}


def reference_method() -> str:
    """The method whose share of rejects all others are brought to in table 3."""
    return str(_data()["reference_method"])
