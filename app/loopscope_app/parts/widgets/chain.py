"""A list of places, each a line that goes there: proofs, provenances, differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from loopscope.errors import MOST_OF_A_SENTENCE, neutral
from loopscope_app.components import component
from loopscope_app.state.user_session import widget

_chain = component("chain", "chain.js", style="chain.css")
_LONGEST = {"role": 200, "value": 200}
"""Characters of what is no sentence; names in the others are shortened by who gives them."""


@dataclass(frozen=True, slots=True)
class ChainLine:
    """One place."""

    title: str
    role: str = ""
    detail: str = ""
    value: str = ""
    depth: int = 0
    kind: Literal["", "back", "branch", "bad", "now", "file"] = ""
    hint: str = ""
    live: bool = True
    """There is somewhere to go."""


def show(lines: Sequence[ChainLine], *, key: str, on_pick: Callable[[int], None]) -> None:
    """Draws the lines; ``on_pick`` gets the number of the one that was clicked."""

    def picked() -> None:
        number = getattr(widget(key), "pick", None)
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(lines):
            on_pick(number)

    data = {
        "rows": [{name: _shown(name, one) for name, one in asdict(line).items()} for line in lines]
    }
    _chain(key=key, data=data, on_pick_change=picked)


def _shown(field: str, value: object) -> object:
    return (
        neutral(value, _LONGEST.get(field, MOST_OF_A_SENTENCE)) if isinstance(value, str) else value
    )
