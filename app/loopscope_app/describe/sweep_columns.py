"""The columns of many runs on the screen: which can be drawn, what they are called, and what is
wrong with a condition on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from loopscope.errors import EngineError
from loopscope.ir import readable, readable_steps
from loopscope.sweeps import RowLayout, places_where


def counts(layout: RowLayout) -> list[str]:
    """What can be counted in a run: iterations first; of a loop that one run executes many
    times, of the longest execution.
    """
    found = [loop.counts[-1] for loop in layout.loops]
    for branch in layout.branches:
        found += [f"then {branch.address}", f"else {branch.address}"]
    return found


def drawable(layout: RowLayout, rows: pa.Table) -> list[str]:
    """The columns with numbers that may stand along an axis: inputs first, those apart that are
    the same in all runs.
    """
    inputs = [one.name for one in layout.inputs if one.kind != "string"]
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


def in_words(text: str, rows: pa.Table) -> str:
    """A sentence of the engine in which columns are called as on the screen."""
    for name in sorted(
        (name for name in rows.column_names if " main/" in name), key=len, reverse=True
    ):
        text = text.replace(name, said(name))
    return text


def short_names(addresses: Sequence[str], longest: int) -> dict[str, str]:
    """What tells places apart on an axis: for each the shortest end of its words that no other has,
    its middle left out where that is long.

    >>> short_names(["main/a%2Floop/body/if", "main/b%2Floop/body/if", "main/once"], 40)
    {'main/a%2Floop/body/if': 'a › loop › if', 'main/b%2Floop/body/if': 'b › loop › if',
    'main/once': 'once'}
    >>> short_names(["main/a_long_name_of_one_of_them", "main/a_long_name_of_another_one"], 16)
    {'main/a_long_name_of_one_of_them': 'a_long_…_of_them', 'main/a_long_name_of_another_one':
    'a_long_…ther_one'}
    """
    steps = {address: readable_steps(address) for address in addresses}
    found = {
        address: _unique_end(own, [other for one, other in steps.items() if one != address])
        for address, own in steps.items()
    }
    half = longest // 2
    cut = {
        address: words if len(words) <= longest else f"{words[: half - 1]}…{words[-half:]}"
        for address, words in found.items()
    }
    return cut if len(set(cut.values())) == len(cut) else found


def _unique_end(own: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    counts = range(1, len(own) + 1)
    least = next(
        (count for count in counts if all(other[-count:] != own[-count:] for other in others)),
        len(own),
    )
    return " › ".join(own[-least:])
