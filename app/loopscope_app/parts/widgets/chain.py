"""A list of places of the run; a click on a line goes to its place. Proofs, origins and differences
use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from loopscope.errors import MOST_OF_A_SENTENCE, neutral
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


def show(lines: Sequence[ChainLine], *, key: str, on_pick: Callable[[int], None]) -> None:
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
