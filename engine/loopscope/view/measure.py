"""Estimated text widths, so that boxes fit their text before a browser draws it."""

from __future__ import annotations

import unicodedata

_NARROW = frozenset("iljtfI.,:;'|![]()/ ·-")
_WIDE = frozenset("mwMW@%…_—→")


def text_width(text: str, size: float) -> float:
    """Return the estimated width in points of a line in a proportional sans-serif; rather too
    large.

    >>> text_width("", 12), text_width("MatMul", 10) > text_width("little", 10)
    (0, True)
    """
    return sum(map(_em, text)) * size


def monospace_width(text: str, size: float) -> float:
    """Return the width in points of a line in a monospaced font."""
    return sum(1.2 if _is_wide(character) else 0.6 for character in text) * size


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.31
    if character in _WIDE:
        return 0.86
    if character.isascii():
        return 0.68 if character.isupper() else 0.56
    return 1.05 if _is_wide(character) else 0.66


def _is_wide(character: str) -> bool:
    return not character.isascii() and unicodedata.east_asian_width(character) in "WF"
