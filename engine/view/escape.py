"""The one way in which text of a model enters DOT, and the neutral form in which it is shown anywhere."""

from __future__ import annotations

import unicodedata

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\\": "&#92;&#8288;", "\n": "<BR/>"}
_LONGEST = 160


def neutral(text: str, most: int = _LONGEST) -> str:
    """Text cut in the middle to ``most`` characters, without characters that could hide or reorder what is shown.

    Control characters, surrogates, private and format characters (bidirectional overrides among them) become U+FFFD;
    line breaks and tabs become spaces.

    >>> neutral("a\\tb\\x00c"), neutral("abc\\u202egnp.exe"), neutral("encoder/layer/add", 9)
    ('a b\\ufffdc', 'abc\\ufffdgnp.exe', 'enco…/add')
    """
    if len(text) > most:
        tail = (most - 1) // 2
        text = f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}" if tail else text[:most]
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def escape(text: str, most: int = _LONGEST) -> str:
    """An HTML-like DOT label of text that may come from a file, to be put between ``<`` and ``>``.

    A backslash is followed by a word joiner, because Graphviz expands escapes such as ``\\\\N`` even in HTML-like labels.

    >>> escape('<b>"a" & \\\\N')
    '&lt;b&gt;&quot;a&quot; &amp; &#92;&#8288;N'
    """
    return "".join(_HTML.get(character, character) for character in neutral(text, most))


def _shown(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    # Zs holds odd spaces that are harmless; everything of class C hides something.
    return "\ufffd" if category[0] == "C" or character in "\ufffe\uffff" else character
