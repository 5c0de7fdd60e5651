"""Why a run pauses where the cursor is: which breakpoint stops there, and what it met."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.debug.breakpoints import Breakpoint, Breakpoints
from loopscope.debug.cursor import levels_of
from loopscope.debug.run import Run
from loopscope.debug.seek import PastValues, instruction_at
from loopscope.debug.stop_conditions import (
    asked,
    completed,
    concerns,
    condition_holds,
    holds,
    matches,
)
from loopscope.executor.plan.numbers import Slot
from loopscope.ir.address import decode
from loopscope.ops.values import is_tensor
from loopscope.timeline.timeline import Moment

_GIVEN = {"nan": "a NaN", "infinity": "an infinity"}


def reason(run: Run, breakpoints: Breakpoints) -> str | None:
    """The first breakpoint that stops a run at the cursor, in words; None when none does."""
    found = (
        _at_place(run, one) if one.kind == "address" else _after_something(run, one)
        for one in breakpoints.on
    )
    return next((one for one in found if one is not None), None)


def _at_place(run: Run, breakpoint: Breakpoint) -> str | None:
    moment = run.moment
    levels = levels_of(moment)
    if not moment or run.cursor.kind == "finished" or not matches(levels, breakpoint):
        return None
    held, why = (
        (True, "")
        if breakpoint.condition is None
        else asked(breakpoint.condition, levels, PastValues(run, moment))
    )
    if why:
        return (
            f"breakpoint {breakpoint.id} stops here because its condition cannot be computed: {why}"
        )
    return f"breakpoint {breakpoint.id}, {breakpoint.describe()}" if held else None


def _after_something(run: Run, breakpoint: Breakpoint) -> str | None:
    """Of a breakpoint that stops after what is unusual: that what ran last was so."""
    step = run.cursor.step
    if not step:
        return None
    before, moment = run.timeline.moment(step - 1), run.moment
    levels, values = levels_of(moment), PastValues(run, (*before, *moment))
    last = completed(levels, instruction_at(before))
    if last is None or not concerns(breakpoint, last):
        return None
    if breakpoint.kind != "shape":
        if not holds(run, breakpoint, levels, instruction_at(before), values):
            return None
        return f"breakpoint {breakpoint.id}, {decode(last.label)!r} gave {_GIVEN[breakpoint.kind]}, and its inputs have none"
    change = next(
        (found for slot in last.outputs if (found := _change(run, (*before, *moment), slot))), None
    )
    if change is None or not condition_holds(breakpoint.condition, levels, values):
        return None
    return f"breakpoint {breakpoint.id}, the shape of {decode(last.label)!r} changed from {change[0]} to {change[1]}"


def _change(run: Run, moment: Moment, slot: Slot) -> tuple[list[int], list[int]] | None:
    """The shape of a value when its graph ran the time before, and now; None where they are the
    same.
    """
    level = next((one for one in moment if slot in one.program.owned), None)
    if level is None or not level.row:
        return None
    shapes = [
        _shape(run.values.get(run.timeline, level.program, row, slot))
        for row in (level.row - 1, level.row)
    ]
    return (shapes[0], shapes[1]) if shapes[0] != shapes[1] else None


def _shape(value: Any) -> list[int]:
    return (
        [len(value)]
        if isinstance(value, tuple)
        else list(np.shape(value))
        if is_tensor(value)
        else []
    )
