"""HTML that is safe by construction: what is not made here is text, and is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any


class Html(str):
    """Markup that is used as it is."""

    __slots__ = ()


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element; content that is not `Html` is escaped.

    Parameters
    ----------
    tag : str
    *content
        None is left out; anything else is shown as text, unless it is `Html`.
    **attributes
        By their names; ``class_`` stands for class, and other ``_`` for ``-``. Those that are
        None or False are left out.

    Examples
    --------
    >>> from demur.bench.markup import element
    >>> str(element("p", "1 < 2", class_="note"))
    '<p class="note">1 &lt; 2</p>'
    >>> str(element("p", element("b", 'say "hi"'), title='"'))
    '<p title="&quot;"><b>say &quot;hi&quot;</b></p>'
    """
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{tag}{told}>{joined(content)}</{tag}>")


def joined(parts: Iterable[object]) -> Html:
    """Several pieces of content, one after the other."""
    return Html(
        "".join(
            part if isinstance(part, Html) else html.escape(str(part))
            for part in parts
            if part is not None
        )
    )


def as_script_data(value: Any) -> str:
    r"""JSON that may stand inside a ``<script>``: nothing in it can end that.

    Examples
    --------
    >>> from demur.bench.markup import as_script_data
    >>> as_script_data({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
