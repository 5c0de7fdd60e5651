"""Search for the moments at which breakpoints hold in what has already run.

The reason of a pause is the breakpoint that stops there, and the condition or value that it met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loopscope.debug.breakpoints import Breakpoint, Breakpoints
from loopscope.debug.position import levels_of
from loopscope.debug.run import Run
from loopscope.debug.stop_conditions import (
    completed,
    concerns,
    condition_holds,
    evaluate_condition,
    holds,
    matches,
)
from loopscope.executor.machine.limits import Paused
from loopscope.executor.plan.plan import Instruction, Program
from loopscope.executor.plan.slots import Slot
from loopscope.ir.address import decode
from loopscope.ops.values import is_tensor
from loopscope.timeline.timeline import Moment, Timeline

_MIN_CHUNK, _MAX_CHUNK = 1 << 10, 1 << 14
_STEPS_PER_CHECK = 64
Look = Callable[[], None]
"""Function that the search calls at intervals; its exception ends the search."""


def next_stop(run: Run, breakpoints: Sequence[Breakpoint], step: int) -> tuple[int | None, str]:
    """Return the first later step at which any breakpoint holds, and the text of the limit that the
    search reached.

    A search that is stopped or reaches a limit returns the last step that it examined; the next
    search may take the same time again. Breakpoints that name one moment are looked up. The others
    are searched in chunks, all breakpoints per chunk, so that none is missed.
    """
    control = run.machine.control
    chunk, examined = _MIN_CHUNK, step
    exact_steps = [
        _step_of_exact_place(run, breakpoint, step)
        for breakpoint in breakpoints
        if _names_a_moment(breakpoint)
    ]
    nearest_exact = min(
        (breakpoint for breakpoint in exact_steps if breakpoint is not None), default=None
    )
    searched = [breakpoint for breakpoint in breakpoints if not _names_a_moment(breakpoint)]
    last = run.steps if nearest_exact is None else nearest_exact
    control.begin()
    try:
        while searched and examined < last:
            end = min(examined + chunk, last) + 1
            matches_in_chunk = [
                next_match(run, breakpoint, examined, end, lambda: control.check(0))
                for breakpoint in searched
            ]
            nearest = min(
                (breakpoint for breakpoint in matches_in_chunk if breakpoint is not None),
                default=None,
            )
            if nearest is not None:
                return nearest, ""
            control.check(0)
            examined, chunk = end - 1, min(chunk * 2, _MAX_CHUNK)
        return nearest_exact, ""
    except Paused as pause:
        limit = (
            f"{pause.message} while looking for a breakpoint in what has run"
            if pause.cause == "limit"
            else ""
        )
    finally:
        control.end()
    if limit:
        control.used_seconds = 0.0
    return max(examined, 0), limit


def next_match(
    run: Run, breakpoint: Breakpoint, step: int, end: int | None = None, look: Look = lambda: None
) -> int | None:
    """Return the first recorded step after ``step`` and before ``end`` at which a breakpoint
    holds.
    """
    timeline = run.timeline
    end = run.steps + 1 if end is None else end
    if _names_a_moment(breakpoint):
        match_step = _step_of_exact_place(run, breakpoint, step)
        return match_step if match_step is not None and match_step < end else None
    if (
        breakpoint.kind == "address"
        and breakpoint.program is not None
        and breakpoint.position is not None
    ):
        return _next_step_at_place(
            run, timeline, breakpoint, breakpoint.program, breakpoint.position, step, end, look
        )
    for later in range(step + 1, min(end, run.steps)):
        if later % _STEPS_PER_CHECK == 0:
            look()
        moment, before = timeline.moment(later), timeline.moment(later - 1) if later else ()
        last = instruction_at(before)
        if holds(run, breakpoint, levels_of(moment), last, PastValues(run, (*before, *moment))):
            return later
    return None


def _next_step_at_place(
    run: Run,
    timeline: Timeline,
    breakpoint: Breakpoint,
    program: Program,
    position: int,
    step: int,
    end: int,
    look: Look,
) -> int | None:
    rows = timeline.executions.rows[program.index]
    frame = timeline.executions.open.get(program.index)
    if frame is not None and frame.position < position:
        rows -= 1
    lower, upper = 0, rows
    while lower < upper:
        middle = (lower + upper) // 2
        if timeline.step_at(program, middle, position) > step:
            upper = middle
        else:
            lower = middle + 1
    for row in range(lower, rows):
        if row % _STEPS_PER_CHECK == 0:
            look()
        candidate = timeline.step_at(program, row, position)
        if (
            candidate >= end
            or candidate > run.steps
            or (candidate == run.steps and run.state == "finished")
        ):
            return None
        if not _iterations_match(timeline, breakpoint, program, row):
            continue
        if breakpoint.condition is None:
            return candidate
        moment = timeline.moment(candidate)
        if condition_holds(breakpoint.condition, levels_of(moment), PastValues(run, moment)):
            return candidate
    return None


def _names_a_moment(breakpoint: Breakpoint) -> bool:
    """Return True if the breakpoint fixes the iteration of every enclosing loop."""
    return (
        breakpoint.kind == "address"
        and bool(breakpoint.iterations)
        and None not in breakpoint.iterations
    )


def _step_of_exact_place(run: Run, breakpoint: Breakpoint, step: int) -> int | None:
    """Return the step of a place with fixed iterations; None if it is not after ``step`` or not
    reached.
    """
    program, position = breakpoint.program, breakpoint.position
    assert program is not None
    assert position is not None
    row = run.timeline.executions.row(program, breakpoint.iterations)
    if row is None:
        return None
    frame = run.timeline.executions.open.get(program.index)
    if (
        frame is not None
        and row == run.timeline.executions.rows[program.index] - 1
        and frame.position < position
    ):
        return None
    place_step = run.timeline.step_at(program, row, position)
    if place_step <= step:
        return None
    moment = run.timeline.moment(place_step)
    past = PastValues(run, moment)
    return place_step if condition_holds(breakpoint.condition, levels_of(moment), past) else None


def _iterations_match(
    timeline: Timeline, breakpoint: Breakpoint, program: Program, row: int
) -> bool:
    if all(required is None for required in breakpoint.iterations):
        return True
    iterations = timeline.iterations(program, row)
    return all(
        required is None or required == iteration
        for required, iteration in zip(breakpoint.iterations, iterations, strict=False)
    )


def instruction_at(moment: Moment) -> Instruction | None:
    """Return the instruction that runs next at a moment; None at the end of a body."""
    if not moment:
        return None
    level = moment[-1]
    instructions = level.program.instructions
    return instructions[level.position] if level.position < len(instructions) else None


class PastValues:
    """Slot values at a past moment, computed on access."""

    def __init__(self, run: Run, moment: Moment) -> None:
        self._run = run
        self._rows = {
            slot: (level.program, level.row) for level in moment for slot in level.program.owned
        }

    def __getitem__(self, slot: Slot) -> Any:
        place = self._rows.get(slot)
        if place is None:
            return None
        return self._run.values.get(self._run.timeline, *place, slot)


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
