"""Rows of a sweep as numbers, and the rows for which a condition on their columns holds."""

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
"""Between two conditions, not in a name in backticks or a text in quotes."""
_OF_TEXT = re.compile(
    r"""(?P<name>[^"]+?)\s*(?P<how>==|!=|\bcontains\b|\blacks\b)\s*(?P<quote>["'])(?P<text>.*)(?P=quote)"""
)
_BY_PLACE = rf"\b(?:{'|'.join(OF_PLACES)}) [^\s<>=!()+*`][^<>=!()+*`]*(?<!\s)"
"""A column that is called by a place, up to the next sign of a comparison."""


def numbers(rows: pa.Table, name: str) -> np.ndarray:
    """A column as float64; NaN for what a run did not come to."""
    column = rows[name]
    if str(column.type) == "bool":
        column = column.cast("int8")
    values: np.ndarray = column.to_numpy().astype(np.float64)
    return values


def places_where(rows: pa.Table, condition: str) -> np.ndarray:
    """The places of the rows for which a condition holds: comparisons of columns, joined by
    ``and``.

    A column of texts is compared with a text: ``ended main/loop == "condition"``, ``error contains
    "shape"``, also with ``!=`` and ``lacks``; a run that has none has an empty one. Places in names
    of columns may stand as screens show them, or as an end that no other column has.
    ``EngineError`` says what in it is no condition.
    """
    holds = np.ones(len(rows), bool)
    for part in _AND.split(condition.strip()) if condition.strip() else []:
        holds &= _where(rows, part)
    return np.flatnonzero(holds)


def _where(rows: pa.Table, part: str) -> np.ndarray:
    numeric = sorted(
        (field.name for field in rows.schema if str(field.type) != "string"), key=len, reverse=True
    )
    texts = [name for name in rows.column_names if name not in numeric]
    if (asked := _OF_TEXT.fullmatch(part.strip())) and (
        name := full_name(texts, asked["name"].strip("` "))
    ) in texts:
        return _where_text(rows, name, asked["how"], asked["text"])
    found = np.asarray(
        parse(_quoted(part, numeric)).value(lambda name: _column(rows, numeric, name))
    )
    if found.shape != (len(rows),) or found.dtype != bool:
        raise InputError(
            f"{shorten(repr(part), 80)} is no condition of a run: compare a column, such as {numeric[-1]} > 3"
        )
    return found


def _where_text(rows: pa.Table, name: str, how: str, text: str) -> np.ndarray:
    values = ["" if value is None else value for value in rows[name].to_pylist()]
    match how:
        case "==":
            return np.array([value == text for value in values], bool)
        case "!=":
            return np.array([value != text for value in values], bool)
        case "contains":
            return np.array([text in value for value in values], bool)
        case _:
            return np.array([text not in value for value in values], bool)


def _column(rows: pa.Table, names: Sequence[str], name: str) -> np.ndarray:
    meant = full_name(names, name)
    if meant not in names:
        raise InputError(f"there is no column {shorten(repr(name), 80)} of numbers")
    return numbers(rows, meant)


def _quoted(condition: str, names: Sequence[str]) -> str:
    """Names of columns in backticks, which they need where they are no identifiers.

    >>> _quoted("iterations main/loop > n", ["iterations main/loop", "n"]), _quoted("iterations a › loop >= 3", [])
    ('`iterations main/loop` > `n`', '`iterations a › loop` >= 3')
    """
    exactly = "|".join(rf"(?<![\w`]){re.escape(name)}(?![\w`])" for name in names)
    either = rf"`[^`]*`|{exactly + '|' if exactly else ''}{_BY_PLACE}"
    return re.sub(
        either, lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", condition
    )
