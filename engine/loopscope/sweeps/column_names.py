"""Which column a person means: its name, or with the place as screens show it, or an end of the
place that no other column has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loopscope.errors import InputError
from loopscope.ir.address_suffix import ambiguous, ending
from loopscope.ir.readable import as_written, static_words

OF_PLACES = ("iterations", "ended", "margin", "then", "else")
"""The first words of columns that are called by a place."""
_MANY = re.compile(r" (?:sum|min|max)$")


def full_name(names: Sequence[str], text: str) -> str:
    """The column that a text means; the text itself where it means none. ``InputError`` where it
    means several.

    >>> full_name(["sample", "iterations main/a%2Floop"], "iterations a › loop"), full_name(["sample"], "wrong")
    ('iterations main/a%2Floop', 'wrong')
    """
    kind, _, place = text.strip().partition(" ")
    if text in names or kind not in OF_PLACES:
        return text
    of_many = found[0] if (found := _MANY.search(place)) else ""
    path = place.removesuffix(of_many).strip()
    columns = {
        name.removeprefix(f"{kind} ").removesuffix(of_many): name
        for name in names
        if _is_of(name, kind, of_many)
    }
    if path in columns:
        return columns[path]
    meant = ending(tuple(columns), as_written(path), static_words(path))
    if len(meant) > 1:
        raise InputError(ambiguous(text, meant))
    return columns[next(iter(meant))] if meant else text


def _is_of(name: str, kind: str, of_many: str) -> bool:
    found = _MANY.search(name)
    return name.startswith(f"{kind} ") and (found[0] if found else "") == of_many
