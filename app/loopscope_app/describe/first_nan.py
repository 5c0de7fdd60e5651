"""Searches for the first NaN and the first infinity of a run, one per state of the run.

A search is short unless the user requests a thorough one.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import loopscope
from loopscope.explain import NotFinite, first_infinity, first_nan

_SECONDS_PAUSED, _SECONDS_ENDED, _SECONDS_REQUESTED = 0.03, 0.25, 20.0
"""Time limits of a search: while the run is paused, after its end, and on request."""

SEARCHES = {"nan": first_nan, "infinity": first_infinity}
_results: WeakKeyDictionary[loopscope.Debugger, dict[str, tuple[int, NotFinite]]] = (
    WeakKeyDictionary()
)
"""Number of steps at the time of the search, and its result, by kind."""


def first_odd(
    debugger: loopscope.Debugger, kind: str = "nan", *, thoroughly: bool = False
) -> NotFinite:
    """Return the first NaN or infinity as far as it is known; ``thoroughly`` searches longer."""
    answers = _results.setdefault(debugger, {})
    known = answers.get(kind)
    if known is None or known[0] != debugger.steps or (thoroughly and not known[1].is_certain):
        seconds = (
            _SECONDS_REQUESTED
            if thoroughly
            else _SECONDS_PAUSED
            if debugger.state == "paused"
            else _SECONDS_ENDED
        )
        known = answers[kind] = debugger.steps, SEARCHES[kind](debugger, seconds)
    return known[1]
