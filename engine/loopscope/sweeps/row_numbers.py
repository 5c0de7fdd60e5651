"""Sweep rows as numbers, and selection of rows by a condition on their columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopscope.debug.expression import parse
from loopscope.errors import InputError, shorten
from loopscope.sweeps.column_names import OF_PLACES, full_name

if TYPE_CHECKING:
    import pyarrow as pa

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

    >>> _quoted("iterations main/loop > n", ["iterations main/loop", "n"])
    '`iterations main/loop` > `n`'
    >>> _quoted("iterations a › loop >= 3", [])
    '`iterations a › loop` >= 3'
    """
    exactly = "|".join(rf"(?<![\w`]){re.escape(name)}(?![\w`])" for name in names)
    either = rf"`[^`]*`|{exactly + '|' if exactly else ''}{_PLACE_COLUMN}"
    return re.sub(
        either, lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", condition
    )
