"""Lookup of a column by its name, by its place as screens show it, or by a unique end of the
place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loopscope.errors import InputError
from loopscope.ir.address_suffix import ambiguous, ending
from loopscope.ir.readable import as_written, static_words

OF_PLACES = ("iterations", "ended", "margin", "then", "else")
"""First words of the columns that are named after a place."""
_STATISTIC = re.compile(r" (?:sum|min|max)$")


def full_name(names: Sequence[str], text: str) -> str:
    """Return the column that a text names, or the text itself if it names none; ``InputError`` if
    it names several.

    >>> full_name(["sample", "iterations main/a%2Floop"], "iterations a › loop")
    'iterations main/a%2Floop'
    >>> full_name(["sample"], "wrong")
    'wrong'
    """
    kind, _, place = text.strip().partition(" ")
    if text in names or kind not in OF_PLACES:
        return text
    statistic = match[0] if (match := _STATISTIC.search(place)) else ""
    path = place.removesuffix(statistic).strip()
    columns = {
        name.removeprefix(f"{kind} ").removesuffix(statistic): name
        for name in names
        if _is_column_of_kind(name, kind, statistic)
    }
    if path in columns:
        return columns[path]
    matches = ending(tuple(columns), as_written(path), static_words(path))
    if len(matches) > 1:
        raise InputError(ambiguous(text, matches))
    return columns[next(iter(matches))] if matches else text


def _is_column_of_kind(name: str, kind: str, statistic: str) -> bool:
    match = _STATISTIC.search(name)
    return name.startswith(f"{kind} ") and (match[0] if match else "") == statistic
