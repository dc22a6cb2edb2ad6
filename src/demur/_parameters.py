"""What a parameter must be, said in one way."""

from __future__ import annotations

import math
from numbers import Integral, Real


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number, or too small.

    Examples
    --------
    >>> from demur._parameters import check_whole
    >>> check_whole("n_steps", 2.5, 1)
    Traceback (most recent call last):
    ValueError: n_steps must be a whole number, 1 or more; got 2.5.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more; got {value!r}.")


def check_number(name: str, value: object) -> None:
    """Refuse what is not a finite number.

    Examples
    --------
    >>> from demur._parameters import check_number
    >>> check_number("alpha", "half")
    Traceback (most recent call last):
    ValueError: alpha must be a number; got 'half'.
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{name} must be a number; got {value!r}.")
