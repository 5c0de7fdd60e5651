"""The columns of many runs on the screen: which can be drawn, what they are called, and what is wrong with a condition on them."""

from __future__ import annotations

import pyarrow as pa

from engine.errors import EngineError
from engine.ir import readable
from engine.sweep import RowLayout, places_where


def counts(layout: RowLayout) -> list[str]:
    """What can be counted in a run: iterations first; of a loop that one run executes many times, of the longest execution."""
    found = [loop.counts[-1] for loop in layout.loops]
    for branch in layout.branches:
        found += [f"then {branch.address}", f"else {branch.address}"]
    return found


def drawable(layout: RowLayout, rows: pa.Table) -> list[str]:
    """The columns with numbers that may stand along an axis: inputs first, where there are any."""
    inputs = [one.name for one in layout.inputs if one.kind != "string"]
    others = [name for name in rows.column_names if name not in inputs and not pa.types.is_string(rows.schema.field(name).type)]
    return [*inputs, *others]


def said(name: str) -> str:
    """A column on the screen: addresses as people read them.

    >>> said("iterations main/while_not_one"), said("then main/loop/body/a%2Fif"), said("number")
    ('iterations while_not_one', 'then loop › a › if', 'number')
    """
    what, found, place = name.partition(" main/")
    return f"{what} {readable(f'main/{place}')}" if found else name


def problem(rows: pa.Table, condition: str) -> str:
    """What is wrong with a condition; empty where nothing is."""
    try:
        places_where(rows, condition)
    except EngineError as error:
        return str(error)
    return ""
