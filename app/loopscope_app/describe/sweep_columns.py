"""Columns of many runs on the screen: drawable ones, their titles, and errors of conditions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from loopscope.errors import EngineError
from loopscope.ir import readable, readable_steps
from loopscope.sweeps import RowLayout, places_where


def counts(layout: RowLayout) -> list[str]:
    """Return the columns of counts, iterations first.

    For a loop with several executions per run, the longest execution counts.
    """
    names = [loop.counts[-1] for loop in layout.loops]
    for branch in layout.branches:
        names += [f"then {branch.address}", f"else {branch.address}"]
    return names


def drawable(layout: RowLayout, rows: pa.Table) -> list[str]:
    """Return the numeric columns for an axis: varying inputs, other columns, constant inputs."""
    inputs = [column.name for column in layout.inputs if column.kind != "string"]
    others = [
        name
        for name in rows.column_names
        if name not in inputs and not pa.types.is_string(rows.schema.field(name).type)
    ]
    varying = [
        name for name in inputs if len(set(pc.min_max(rows.column(name)).as_py().values())) > 1
    ]
    return [*varying, *others, *(name for name in inputs if name not in varying)]


def said(name: str) -> str:
    """Return the title of a column, with readable addresses.

    >>> said("iterations main/while_not_one"), said("then main/loop/body/a%2Fif"), said("number")
    ('iterations while_not_one', 'then loop › a › if', 'number')
    """
    kind, separator, place = name.partition(" main/")
    return f"{kind} {readable(f'main/{place}')}" if separator else name


def problem(rows: pa.Table, condition: str) -> str:
    """Return the error of a condition, or an empty text."""
    try:
        places_where(rows, condition)
    except EngineError as error:
        return str(error)
    return ""


def in_words(text: str, rows: pa.Table) -> str:
    """Return a sentence of the engine with the titles of columns."""
    for name in sorted(
        (name for name in rows.column_names if " main/" in name), key=len, reverse=True
    ):
        text = text.replace(name, said(name))
    return text


def short_names(addresses: Sequence[str], longest: int) -> dict[str, str]:
    """Return a unique short name for each address: its shortest unique end, with the middle cut out
    if that is long.

    >>> short_names(["main/a%2Floop/body/if", "main/b%2Floop/body/if"], 40)
    {'main/a%2Floop/body/if': 'a › loop › if', 'main/b%2Floop/body/if': 'b › loop › if'}
    >>> list(short_names(["main/a_long_name_of_one", "main/a_long_name_of_two"], 12).values())
    ['a_lon…of_one', 'a_lon…of_two']
    """
    steps = {address: readable_steps(address) for address in addresses}
    ends = {
        address: _unique_end(
            words_of_place, [other for candidate, other in steps.items() if candidate != address]
        )
        for address, words_of_place in steps.items()
    }
    half = longest // 2
    cut = {
        address: words if len(words) <= longest else f"{words[: half - 1]}…{words[-half:]}"
        for address, words in ends.items()
    }
    return cut if len(set(cut.values())) == len(cut) else ends


def _unique_end(words: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    counts = range(1, len(words) + 1)
    shortest = next(
        (count for count in counts if all(other[-count:] != words[-count:] for other in others)),
        len(words),
    )
    return " › ".join(words[-shortest:])
