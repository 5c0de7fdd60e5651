"""Searches for the first NaN and the first infinity of a run: once for each state, briefly until
a person asks for more.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import loopscope
from loopscope.explain import NotFinite, first_infinity, first_nan

_ON_THE_WAY, _AT_THE_END, _WHEN_ASKED = 0.03, 0.25, 20.0
"""Seconds."""

SEARCHES = {"nan": first_nan, "infinity": first_infinity}
_found: WeakKeyDictionary[loopscope.Debugger, dict[str, tuple[int, NotFinite]]] = (
    WeakKeyDictionary()
)
"""By what was searched for, with the number of steps that had run."""


def first_odd(
    debugger: loopscope.Debugger, kind: str = "nan", *, thoroughly: bool = False
) -> NotFinite:
    """Return what is known of the first NaN or infinity; ``thoroughly``: search what was left,
    for as long as a person waits.
    """
    answers = _found.setdefault(debugger, {})
    kept = answers.get(kind)
    if kept is None or kept[0] != debugger.steps or (thoroughly and not kept[1].is_certain):
        seconds = (
            _WHEN_ASKED
            if thoroughly
            else _ON_THE_WAY
            if debugger.state == "paused"
            else _AT_THE_END
        )
        kept = answers[kind] = debugger.steps, SEARCHES[kind](debugger, seconds)
    return kept[1]
