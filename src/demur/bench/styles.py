"""How methods are told apart in pictures: by line, marker and lightness, also without colour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from demur.bench.curves import in_order
from demur.methods import METHODS


class Style(NamedTuple):
    """What a method's curve looks like.

    Attributes
    ----------
    color, on_dark : str
        On white, and on a dark page.
    dashes : tuple of floats
        Lengths of strokes and gaps in line widths; empty for a solid line.
    marker : str
        matplotlib's letter for the marker of the operating point.
    """

    color: str
    on_dark: str
    dashes: tuple[float, ...]
    marker: str


# Five patterns, each once dark and once light, so that ten stay distinct in grey. On a dark page
# the dark ones are pale instead: there it is they that stand out. An eleventh has its own.
_FIVE: tuple[tuple[float, ...], ...] = (
    (),
    (4.5, 1.8),
    (1.2, 1.4),
    (6.0, 1.6, 1.2, 1.6),
    (9.0, 2.5),
)
_DASHES = (*_FIVE, *_FIVE, (3.0, 1.2, 1.0, 1.2, 1.0, 1.2))
_COLORS = (
    ("#12355b", "#b9d6ff"),
    ("#8c1c13", "#ffa69c"),
    ("#14532d", "#93e3b1"),
    ("#4a1d75", "#cbb2ff"),
    ("#4f3a00", "#f0d570"),
    ("#3d8fe0", "#4f97e6"),
    ("#e56a1f", "#e0732f"),
    ("#2ca25f", "#33ad6d"),
    ("#c06bd6", "#c674db"),
    ("#b08d00", "#b89a1f"),
    ("#3a3a3a", "#e4e4e4"),
)
_MARKERS = ("o", "s", "^", "D", "P", "v", "X", "*", "<", ">", "d")


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """A style for each method, in the order of the registry.

    A method of the registry always looks the same, whichever others are shown beside it.

    Examples
    --------
    >>> from demur.bench.styles import styles_of
    >>> from demur.methods import METHODS
    >>> styles_of(METHODS)[METHODS[3]] == styles_of([METHODS[3]])[METHODS[3]]
    True
    """
    names = in_order(methods)
    place = {name: i for i, name in enumerate(in_order([*METHODS, *names]))}
    return {name: _style(place[name]) for name in names}


def _style(nth: int) -> Style:
    color, on_dark = _COLORS[nth % len(_COLORS)]
    # After these the colours meet other dashes and markers.
    turn = nth + nth // len(_COLORS)
    return Style(color, on_dark, _DASHES[turn % len(_DASHES)], _MARKERS[turn % len(_MARKERS)])
