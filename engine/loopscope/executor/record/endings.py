"""Why a loop ended, and why a run stopped before its end: the words that records, errors and
exports use.
"""

from __future__ import annotations

from typing import Literal, get_args

LoopEnding = Literal[
    "trip_count", "condition", "zero_trip_count", "initial_condition", "slices_exhausted"
]
"""Why an execution of a loop is over."""
StopCause = Literal["limit", "error", "stopped"]
"""Endings of a run that did not finish: a limit was reached, an operation failed, or the user
stopped it.
"""
Ending = LoopEnding | StopCause

ENDINGS: tuple[LoopEnding, ...] = get_args(LoopEnding)
"""Those of loops, by the number that a recording holds."""
