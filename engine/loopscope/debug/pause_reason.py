"""Reason why a run pauses at the cursor: the breakpoint that stops there, and the condition or
value that it met.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.debug.breakpoints import Breakpoint, Breakpoints
from loopscope.debug.cursor import levels_of
from loopscope.debug.run import Run
from loopscope.debug.seek import PastValues, instruction_at
from loopscope.debug.stop_conditions import (
    completed,
    concerns,
    condition_holds,
    evaluate_condition,
    holds,
    matches,
)
from loopscope.executor.plan.numbers import Slot
from loopscope.ir.address import decode
from loopscope.ops.values import is_tensor
from loopscope.timeline.timeline import Moment

_UNUSUAL_VALUES = {"nan": "a NaN", "infinity": "an infinity"}


def reason(run: Run, breakpoints: Breakpoints) -> str | None:
    """Describe the first breakpoint that stops a run at the cursor; None if none does."""
    reasons = (
        _reason_before(run, breakpoint)
        if breakpoint.kind == "address"
        else _reason_after(run, breakpoint)
        for breakpoint in breakpoints.on
    )
    return next((breakpoint for breakpoint in reasons if breakpoint is not None), None)


def _reason_before(run: Run, breakpoint: Breakpoint) -> str | None:
    moment = run.moment
    levels = levels_of(moment)
    if not moment or run.cursor.kind == "finished" or not matches(levels, breakpoint):
        return None
    holds_here, problem = (
        (True, "")
        if breakpoint.condition is None
        else evaluate_condition(breakpoint.condition, levels, PastValues(run, moment))
    )
    if problem:
        return (
            f"breakpoint {breakpoint.id} stops here "
            f"because its condition cannot be computed: {problem}"
        )
    return f"breakpoint {breakpoint.id}, {breakpoint.describe()}" if holds_here else None


def _reason_after(run: Run, breakpoint: Breakpoint) -> str | None:
    """Describe a breakpoint that stops after the unusual value of the operation that ran last."""
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
        return (
            f"breakpoint {breakpoint.id}, {decode(last.label)!r} gave "
            f"{_UNUSUAL_VALUES[breakpoint.kind]}, and its inputs have none"
        )
    change = next(
        (
            shapes
            for slot in last.outputs
            if (shapes := _shape_change(run, (*before, *moment), slot))
        ),
        None,
    )
    if change is None or not condition_holds(breakpoint.condition, levels, values):
        return None
    return (
        f"breakpoint {breakpoint.id}, the shape of {decode(last.label)!r} "
        f"changed from {change[0]} to {change[1]}"
    )


def _shape_change(run: Run, moment: Moment, slot: Slot) -> tuple[list[int], list[int]] | None:
    """Return the shapes of a value in the previous row of its graph and now; None if they are
    equal.
    """
    level = next((open_level for open_level in moment if slot in open_level.program.owned), None)
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
