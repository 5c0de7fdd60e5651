"""Places of the run on a screen: lists and tables that lead to them, and one address to copy.

Proofs, origins and differences use the list. The row of the moment is marked and kept in view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from loopscope.errors import MOST_OF_A_SENTENCE, neutral
from loopscope.ir import readable_steps
from loopscope_app.components import component
from loopscope_app.state.user_session import widget

_chain = component("chain", "chain.js", style="chain.css")
_LONGEST = {"role": 200, "value": 200}
"""Largest number of characters of fields that are not sentences. Callers shorten names in the other
fields.
"""


@dataclass(frozen=True, slots=True)
class ChainLine:
    """One line of the list: a place with its texts."""

    title: str
    role: str = ""
    detail: str = ""
    value: str = ""
    depth: int = 0
    kind: Literal["", "back", "branch", "bad", "now", "file"] = ""
    hint: str = ""
    live: bool = True
    """True if a click on the line goes somewhere."""


def show_list(lines: Sequence[ChainLine], *, key: str, on_pick: Callable[[int], None]) -> None:
    """Draw the lines. ``on_pick`` receives the index of the clicked line."""

    def picked() -> None:
        number = getattr(widget(key), "pick", None)
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(lines):
            on_pick(number)

    data = {
        "rows": [
            {name: _shown(name, value) for name, value in asdict(line).items()} for line in lines
        ]
    }
    _chain(key=key, data=data, on_pick_change=picked)


def _shown(field: str, value: object) -> object:
    return (
        neutral(value, _LONGEST.get(field, MOST_OF_A_SENTENCE)) if isinstance(value, str) else value
    )


_rows = component("rows", "rows.js", style="rows.css")
LONGEST = 120


def show_table(
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    key: str,
    now: int | None,
    on_pick: Callable[[int], None],
    in_view: int | None = None,
) -> None:
    """Draw the rows. ``now`` is the index of the marked row; ``on_pick`` receives the index of a
    clicked row. ``in_view`` is the row to scroll to without a marked row.
    """

    def picked() -> None:
        number = getattr(widget(key), "pick", None)
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(cells):
            on_pick(number)

    words = [[neutral(cell, LONGEST) for cell in row] for row in (titles, *cells)]
    data = {
        "titles": words[0],
        "cells": words[1:],
        "now": now,
        "inView": in_view if now is None else now,
    }
    _rows(key=key, data=data, on_pick_change=picked)


_address = component("place", "address.js", style="address.css")
_LONGEST_ADDRESS = 160


def show_address(address: str, *, key: str) -> None:
    """Draw the address. The button copies the form that links, commands and fields accept."""
    _address(
        key=key,
        data={
            "steps": [neutral(step, _LONGEST_ADDRESS) for step in readable_steps(address)],
            "exact": address,
        },
    )
