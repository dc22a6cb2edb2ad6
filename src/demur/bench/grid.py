"""The grid: presets, written as TOML, and the runs they stand for.

A preset says which datasets, noises, methods and seeds are combined:

>>> from demur.bench.grid import expand
>>> specs = expand({
...     "seeds": 2,
...     "reading": "paper",
...     "parameters": {"dst-pll": {"n_neighbors": 5}},
...     "grid": [{"datasets": ["iris"], "noise": ["uniform"], "methods": ["dst-pll", "pl-knn"]}],
... })
>>> for spec in specs:
...     print(spec, dict(spec.parameters), dict(spec.noise_parameters))
dst-pll on iris, uniform, seed 0 {'n_neighbors': 5} {'n_noise': 2, 'share': 0.5}
pl-knn on iris, uniform, seed 0 {} {'n_noise': 2, 'share': 0.5}
dst-pll on iris, uniform, seed 1 {'n_neighbors': 5} {'n_noise': 2, 'share': 0.5}
pl-knn on iris, uniform, seed 1 {} {'n_noise': 2, 'share': 0.5}
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from demur.bench.dialing import check_dial
from demur.bench.spec import FIELDS, REAL, Spec
from demur.methods import METHODS

# What a preset may say at its top, and in each [[grid]]; a grid's word goes before the top's.
_COMMON = {
    "methods": list,
    "seeds": (int, list),
    "test_size": float,
    "reading": str,
    "noise_parameters": dict,
    "parameters": dict,
    "encoders": dict,
    "dial": dict,
}
_TOP = {**_COMMON, "title": str, "grid": list}
_GRID = {**_COMMON, "datasets": list, "classes": str, "noise": list}
_NESTED = ("noise_parameters", "parameters", "encoders")


def preset_names() -> list[str]:
    """Names of the presets that are part of demur."""
    return sorted(f.name.removesuffix(".toml") for f in _bundled() if f.name.endswith(".toml"))


def read_preset(name: str | Path) -> dict[str, Any]:
    """Read a preset by its name, or from the path of a TOML file."""
    names = preset_names()
    if str(name) in names:
        text = (resources.files("demur.bench") / "presets" / f"{name}.toml").read_text("utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            raise ValueError(
                f"{str(name)!r} is neither a preset ({', '.join(names)}) nor a TOML file."
            )
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the preset {path} cannot be read: {error}") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the preset {name} is not TOML: {error}") from error


def _bundled() -> Iterable[Traversable]:
    return (resources.files("demur.bench") / "presets").iterdir()


def expand(
    preset: Mapping[str, Any],
    seeds: int | None = None,
    added: Sequence[str] = (),
    dial: Mapping[str, Any] | None = None,
) -> list[Spec]:
    """All runs of a preset, neighbours of one dataset and split side by side.

    Parameters
    ----------
    preset : mapping
        As `read_preset` gives it.
    seeds : int, optional
        That many seeds from 0, whatever the preset says.
    added : sequence of str, optional
        Methods beside those of the preset, with their default parameters.
    dial : mapping, optional
        That dial on every run, whatever the preset says.

    Returns
    -------
    list of Spec
        No two for the same dataset, classes, noise, method and seed.
    """
    _check_keys(preset, _TOP, "the preset")
    if not preset.get("grid"):
        raise ValueError("the preset lacks [[grid]], which names its datasets and noise.")
    specs: dict[tuple[Any, ...], Spec] = {}
    for i, block in enumerate(preset["grid"], start=1):
        where = f"[[grid]] number {i} of the preset"
        _check_keys(block, _GRID, where)
        whole = _inherit(preset, block)
        if dial is not None:
            whole["dial"] = dial
        for spec in _expand_block(whole, seeds, added, where):
            if specs.setdefault(spec.setting, spec) is not spec:
                raise ValueError(
                    f"{where} repeats {spec}; a preset has one run for each dataset, filter of "
                    "classes, noise, method and seed."
                )
    return list(specs.values())


def _expand_block(
    block: Mapping[str, Any], seeds: int | None, added: Sequence[str], where: str
) -> Iterable[Spec]:
    for name in ("datasets", "noise"):
        if not block.get(name):
            raise ValueError(f"{where} lacks {name}.")
    methods = list(dict.fromkeys([*block.get("methods", METHODS), *added]))
    for what, named in (
        ("methods", methods),
        ("parameters", block.get("parameters", {})),
        ("encoders", block.get("encoders", {})),
    ):
        unknown = [name for name in named if name not in METHODS]
        if unknown:
            raise ValueError(
                f"{what} of {where} names {unknown[0]!r}; the methods are {', '.join(METHODS)}."
            )
    dial = block.get("dial", {})
    if dial:
        try:
            check_dial(dial)
        except ValueError as error:
            raise ValueError(f"the dial of {where}: {error}") from None
    noises = {name: _noise_parameters(name, block, where) for name in block["noise"]}
    for dataset in block["datasets"]:
        for noise, noise_parameters in noises.items():
            for seed in _seeds(block.get("seeds", 5) if seeds is None else seeds, where):
                for method in methods:
                    yield Spec(
                        dataset,
                        method,
                        noise,
                        seed,
                        classes=block.get("classes", "all"),
                        noise_parameters=noise_parameters,
                        parameters=block.get("parameters", {}).get(method, {}),
                        encoder=block.get("encoders", {}).get(method, {}),
                        test_size=float(block.get("test_size", 0.2)),
                        dial=dial,
                    )


def _inherit(preset: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    """The block, and what it leaves to the top of the preset; tables are merged by name."""
    merged = {k: v for k, v in preset.items() if k in _COMMON} | dict(block)
    for name in _NESTED:
        inner, outer = block.get(name, {}), preset.get(name, {})
        merged[name] = {k: {**outer.get(k, {}), **inner.get(k, {})} for k in {**outer, **inner}}
    return merged


def _noise_parameters(name: str, block: Mapping[str, Any], where: str) -> dict[str, Any]:
    if name == REAL:
        return {}
    from demur.noise import READINGS

    reading = block.get("reading", "paper")
    if reading not in READINGS:
        raise ValueError(f"{where} has the reading {reading!r}; there are {', '.join(READINGS)}.")
    if name not in READINGS[reading]:
        known = ", ".join([*READINGS[reading], REAL])
        raise ValueError(f"{where} names the noise {name!r}; there are {known}.")
    return {**READINGS[reading][name], **block["noise_parameters"].get(name, {})}


def _seeds(wanted: int | Sequence[int], where: str) -> Sequence[int]:
    seeds = list(range(wanted)) if isinstance(wanted, int) else list(wanted)
    if not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise ValueError(
            f"seeds of {where} must be a number from 1 on, or a list of whole numbers; "
            f"got {wanted!r}."
        )
    return seeds


def _check_keys(table: Any, known: Mapping[str, Any], where: str) -> None:
    if not isinstance(table, Mapping):
        raise ValueError(f"{where} must be a table; got {table!r}.")
    for key, value in table.items():
        if key not in known:
            raise ValueError(f"{where} has {key!r}; what it may say is {', '.join(known)}.")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            kinds = known[key] if isinstance(known[key], tuple) else (known[key],)
            names = " or ".join(_KINDS[kind] for kind in kinds)
            raise ValueError(f"{key} of {where} must be {names}; got {value!r}.")


_KINDS = {list: "a list", int: "a whole number", float: "a fraction", str: "text", dict: "a table"}


# ------------------------------------------------------------------------------ filtering


class Filter(NamedTuple):
    """Which runs to take: those whose field has one of the values, or none of them.

    Attributes
    ----------
    field : str
    values : tuple of str
    wanted : bool
    """

    field: str
    values: tuple[str, ...]
    wanted: bool = True


def parse_filter(text: str) -> Filter:
    """A filter as it is typed: ``field=value,value``, or ``field!=value,value``.

    Examples
    --------
    >>> from demur.bench.grid import parse_filter
    >>> parse_filter("dataset=ecoli,flare")
    Filter(field='dataset', values=('ecoli', 'flare'), wanted=True)
    >>> parse_filter("seed!=0").wanted
    False
    """
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise ValueError(f"{text!r} is no filter; write field=value,value or field!=value,value.")
    field = name.removesuffix("!").strip()
    return Filter(field, tuple(v.strip() for v in values.split(",")), not name.endswith("!"))


def select(specs: Iterable[Spec], filters: Iterable[Filter]) -> list[Spec]:
    """The runs that pass all filters; a value that no run has is an error, as it is a slip."""
    grid = kept = list(specs)
    for name, values, wanted in filters:
        if name not in _FILTERS:
            raise ValueError(f"runs cannot be told by {name!r}, but by {', '.join(_FILTERS)}.")
        there = {str(getattr(spec, name)): None for spec in grid}
        unknown = [value for value in values if value not in there]
        if unknown:
            raise ValueError(f"no run has the {name} {unknown[0]!r}; there are {', '.join(there)}.")
        kept = [spec for spec in kept if (str(getattr(spec, name)) in values) == wanted]
    return kept


_FILTERS = tuple(
    name for name in (*FIELDS, "run_id") if not name.startswith(("param", "encod", "dial"))
)
