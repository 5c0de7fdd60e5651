"""The first steps of a new user: a sample, and what each step does with its run."""

from __future__ import annotations

import loopscope

FIRST_SAMPLE = "collatz"
FIRST_SET, OTHER_SET = "three", "seventeen"
CONDITION = "main/while_not_one[3]/body/keep_going"
"""The value that the third step sets to false."""
LOOP = "main/while_not_one"
ALL_STEPS = 4
PRESSES = 3
"""Number of operations to run in the first step."""


def steps_done(debugger: loopscope.Debugger, *, by_hand: bool) -> int:
    """Return how many first steps a run shows as done; ``by_hand`` if a value was set."""
    cursor = debugger.cursor
    if cursor.kind == "finished":
        return 3 if by_hand else 2
    return int(cursor.step >= PRESSES)
