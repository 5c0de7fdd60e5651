"""Sweep rows as numbers, and selection of rows by a condition on their columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopscope.debug.expression import parse
from loopscope.errors import InputError, shorten
from loopscope.ir.address_search import ambiguous, ending
from loopscope.ir.readable import as_written, static_words

if TYPE_CHECKING:
    import pyarrow as pa


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


_AND = re.compile(r"""\s+and\s+(?=(?:[^`"]|`[^`]*`|"[^"]*")*$)""")
"""Pattern of ``and`` between two conditions, outside of names in backticks and quoted texts."""
_TEXT_CONDITION = re.compile(
    r"(?P<name>[^\"]+?)\s*(?P<how>==|!=|\bcontains\b|\blacks\b)\s*"
    r"(?P<quote>[\"'])(?P<text>.*)(?P=quote)"
)
_PLACE_COLUMN = rf"\b(?:{'|'.join(OF_PLACES)}) [^\s<>=!()+*`][^<>=!()+*`]*(?<!\s)"
"""Pattern of a column that is named after a place, up to the next comparison sign."""


def numbers(rows: pa.Table, name: str) -> np.ndarray:
    """Return a column as float64; NaN if the run did not reach it."""
    column = rows[name]
    if str(column.type) == "bool":
        column = column.cast("int8")
    values: np.ndarray = column.to_numpy().astype(np.float64)
    return values


def places_where(rows: pa.Table, condition: str) -> np.ndarray:
    """Return the indices of the rows for which a condition holds: comparisons of columns, joined by
    ``and``.

    A text column is compared with a text: ``ended main/loop == "condition"``, ``error contains
    "shape"``, also with ``!=`` and ``lacks``. A missing text counts as empty. Places in column
    names may be in the form that screens show, or a unique end. Raises ``EngineError`` for an
    invalid condition.
    """
    holds = np.ones(len(rows), bool)
    for part in _AND.split(condition.strip()) if condition.strip() else []:
        holds &= _holds(rows, part)
    return np.flatnonzero(holds)


def _holds(rows: pa.Table, part: str) -> np.ndarray:
    numeric = sorted(
        (field.name for field in rows.schema if str(field.type) != "string"), key=len, reverse=True
    )
    texts = [name for name in rows.column_names if name not in numeric]
    if (match := _TEXT_CONDITION.fullmatch(part.strip())) and (
        name := full_name(texts, match["name"].strip("` "))
    ) in texts:
        return _text_holds(rows, name, match["how"], match["text"])
    result = np.asarray(
        parse(_quote_names(part, numeric)).value(lambda name: _column(rows, numeric, name))
    )
    if result.shape != (len(rows),) or result.dtype != bool:
        raise InputError(
            f"{shorten(repr(part), 80)} is not a condition of a run: "
            f"compare a column, such as {numeric[-1]} > 3"
        )
    return result


def _text_holds(rows: pa.Table, name: str, operator: str, text: str) -> np.ndarray:
    values = ["" if value is None else value for value in rows[name].to_pylist()]
    match operator:
        case "==":
            return np.array([value == text for value in values], bool)
        case "!=":
            return np.array([value != text for value in values], bool)
        case "contains":
            return np.array([text in value for value in values], bool)
        case _:
            return np.array([text not in value for value in values], bool)


def _column(rows: pa.Table, names: Sequence[str], name: str) -> np.ndarray:
    column = full_name(names, name)
    if column not in names:
        raise InputError(f"there is no column {shorten(repr(name), 80)} of numbers")
    return numbers(rows, column)


def _quote_names(condition: str, names: Sequence[str]) -> str:
    """Put names of columns into backticks, which names that are not identifiers require.

    >>> _quote_names("iterations main/loop > n", ["iterations main/loop", "n"])
    '`iterations main/loop` > `n`'
    >>> _quote_names("iterations a › loop >= 3", [])
    '`iterations a › loop` >= 3'
    """
    exactly = "|".join(rf"(?<![\w`]){re.escape(name)}(?![\w`])" for name in names)
    either = rf"`[^`]*`|{exactly + '|' if exactly else ''}{_PLACE_COLUMN}"
    return re.sub(
        either, lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", condition
    )
