"""Where the first NaN or infinity of a run was made: looked for once for each state of a run, briefly until a person asks for all of it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import engine
from engine.explain import NotFinite, first_not_finite

_ON_THE_WAY, _AT_THE_END, _WHEN_ASKED = 0.03, 0.25, 20.0
"""Seconds."""

_found: WeakKeyDictionary[engine.Debugger, tuple[int, NotFinite]] = WeakKeyDictionary()
"""With the number of steps that had run."""


def first_odd(debugger: engine.Debugger, *, thoroughly: bool = False) -> NotFinite:
    """What is known of it; ``thoroughly``: what was left so far is looked at too, for as long as a person waits."""
    kept = _found.get(debugger)
    if kept is None or kept[0] != debugger.steps or (thoroughly and not kept[1].is_certain):
        seconds = _WHEN_ASKED if thoroughly else _ON_THE_WAY if debugger.state == "paused" else _AT_THE_END
        kept = _found[debugger] = debugger.steps, first_not_finite(debugger, seconds)
    return kept[1]
