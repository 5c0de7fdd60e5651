"""Escaping of model text for DOT."""

from __future__ import annotations

from loopscope.errors import MOST_OF_A_NAME, neutral

_HTML = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
    "\\": "&#92;&#8288;",
    "\n": "<BR/>",
}


def escape(text: str, max_length: int = MOST_OF_A_NAME) -> str:
    """Return untrusted text as an HTML-like DOT label, for use between ``<`` and ``>``.

    A backslash is followed by a word joiner, because Graphviz expands escapes such as
    ``\\\\N`` even in HTML-like labels.

    >>> escape('<b>"a" & \\\\N')
    '&lt;b&gt;&quot;a&quot; &amp; &#92;&#8288;N'
    """
    return "".join(_HTML.get(character, character) for character in neutral(text, max_length))
