"""Text and elements of XML, with the one escaping function of the writer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.errors import WriteError, shorten

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_ESCAPED = re.compile('[&<>"\n\r\t]')
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# Deeper levels are not set in any further, or the spaces of nested bodies would outgrow the rest.
_DEEPEST = 40


def escape(text: str) -> str:
    """Text for the inside of an attribute; ``WriteError`` for characters that XML cannot hold.

    >>> escape('a<b & "c"')
    'a&lt;b &amp; &quot;c&quot;'
    """
    impossible = _IMPOSSIBLE.search(text)
    if impossible:
        raise WriteError(f"{shorten(text, 60)!r} contains the character {impossible[0]!r}, which XML cannot hold: rename it")
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], text)


def is_name(text: str) -> bool:
    """Whether a text can be the name of an element or attribute."""
    return _NAME.fullmatch(text) is not None


def attributes(values: Mapping[str, object]) -> str:
    """`` name="value"`` for each."""
    for name in values:
        if not is_name(name):
            raise WriteError(f"attribute {shorten(name, 60)!r} cannot be written: its name is no name in XML")
    return "".join(f' {name}="{escape(str(value))}"' for name, value in values.items())


def line(level: int, text: str) -> str:
    """One line of the document, set in."""
    return "\t" * min(level, _DEEPEST) + text + "\n"
