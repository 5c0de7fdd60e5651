"""Endings of loops and runs, in the words of records, errors and exports."""

from __future__ import annotations

from typing import Literal, get_args

LoopEnding = Literal[
    "trip_count", "condition", "zero_trip_count", "initial_condition", "slices_exhausted"
]
"""Reason why an execution of a loop ended."""
StopCause = Literal["limit", "error", "stopped"]
"""Reason why a run did not finish: a limit was reached, an operation failed, or the user stopped
it.
"""
Ending = LoopEnding | StopCause

ENDINGS: tuple[LoopEnding, ...] = get_args(LoopEnding)
"""Loop endings, by their number in a recording."""
