"""Rows of a sweep as numbers, and the rows for which a condition on their columns holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.debug.expression import parse
from engine.errors import InputError, shorten

if TYPE_CHECKING:
    import pyarrow as pa

_AND = re.compile(r"\s+and\s+(?=(?:[^`]*`[^`]*`)*[^`]*$)")
"""Between two conditions, not in a name in backticks."""


def numbers(rows: pa.Table, name: str) -> np.ndarray:
    """A column as float64; NaN for what a run did not come to."""
    column = rows[name]
    if str(column.type) == "bool":
        column = column.cast("int8")
    values: np.ndarray = column.to_numpy().astype(np.float64)
    return values


def places_where(rows: pa.Table, condition: str) -> np.ndarray:
    """The places of the rows for which a condition holds: comparisons of columns, joined by ``and``.

    ``EngineError`` says what in it is no condition.
    """
    names = sorted((field.name for field in rows.schema if str(field.type) != "string"), key=len, reverse=True)
    holds = np.ones(len(rows), bool)
    for part in _AND.split(_quoted(condition.strip(), names)) if condition.strip() else []:
        found = np.asarray(parse(part).value(lambda name: _column(rows, names, name)))
        if found.shape != (len(rows),) or found.dtype != bool:
            raise InputError(f"{shorten(repr(part), 80)} is no condition of a run: compare a column, such as {names[-1]} > 3")
        holds &= found
    return np.flatnonzero(holds)


def _column(rows: pa.Table, names: Sequence[str], name: str) -> np.ndarray:
    if name not in names:
        raise InputError(f"there is no column {shorten(repr(name), 80)} of numbers")
    return numbers(rows, name)


def _quoted(condition: str, names: Sequence[str]) -> str:
    """Names of columns in backticks, which they need where they are no identifiers.

    >>> _quoted("iterations main/loop > n", ["iterations main/loop", "n"])
    '`iterations main/loop` > `n`'
    """
    either = "|".join(rf"(?<![\w`]){re.escape(name)}(?![\w`])" for name in names)
    return re.sub(rf"`[^`]*`|{either}", lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", condition)
