"""The moments at which breakpoints hold in what has run already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopscope.debug.breakpoints import Breakpoint
from loopscope.debug.cursor import levels_of
from loopscope.debug.run import Run
from loopscope.debug.stop_conditions import condition_holds, holds
from loopscope.executor.machine.limits import Paused
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, Program
from loopscope.timeline.timeline import Moment, Timeline

_FIRST_CHUNK, _LONGEST_CHUNK = 1 << 10, 1 << 14
_LOOK_EVERY = 64
Look = Callable[[], None]
"""Called now and then while it is searched; what it raises ends the search."""


def next_stop(run: Run, breakpoints: Sequence[Breakpoint], step: int) -> tuple[int | None, str]:
    """The first later step at which any breakpoint holds; when the search is stopped or reaches a
    limit, the last step that it looked at.

    The text says which limit that was. After it, the search may take as long again.

    What names one moment is looked up. The others are searched for in chunks, each for all of them,
    so that none is passed over.
    """
    control = run.machine.control
    chunk, reached = _FIRST_CHUNK, step
    named = [_at_exact_place(run, one, step) for one in breakpoints if _names_a_moment(one)]
    known = min((one for one in named if one is not None), default=None)
    searched = [one for one in breakpoints if not _names_a_moment(one)]
    last = run.steps if known is None else known
    control.begin()
    try:
        while searched and reached < last:
            end = min(reached + chunk, last) + 1
            found = [
                next_match(run, one, reached, end, lambda: control.check(0)) for one in searched
            ]
            nearest = min((one for one in found if one is not None), default=None)
            if nearest is not None:
                return nearest, ""
            control.check(0)
            reached, chunk = end - 1, min(chunk * 2, _LONGEST_CHUNK)
        return known, ""
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
    return max(reached, 0), limit


def next_match(
    run: Run, breakpoint: Breakpoint, step: int, end: int | None = None, look: Look = lambda: None
) -> int | None:
    """The first step after one, and before ``end``, in what has run already, at which a
    breakpoint holds.
    """
    timeline = run.timeline
    end = run.steps + 1 if end is None else end
    if _names_a_moment(breakpoint):
        at = _at_exact_place(run, breakpoint, step)
        return at if at is not None and at < end else None
    if (
        breakpoint.kind == "address"
        and breakpoint.program is not None
        and breakpoint.position is not None
    ):
        return _next_at_place(
            run, timeline, breakpoint, breakpoint.program, breakpoint.position, step, end, look
        )
    for later in range(step + 1, min(end, run.steps)):
        if later % _LOOK_EVERY == 0:
            look()
        moment, before = timeline.moment(later), timeline.moment(later - 1) if later else ()
        last = instruction_at(before)
        if holds(run, breakpoint, levels_of(moment), last, PastValues(run, (*before, *moment))):
            return later
    return None


def _next_at_place(
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
    low, high = 0, rows
    while low < high:
        middle = (low + high) // 2
        if timeline.step_at(program, middle, position) > step:
            high = middle
        else:
            low = middle + 1
    for row in range(low, rows):
        if row % _LOOK_EVERY == 0:
            look()
        at = timeline.step_at(program, row, position)
        if at >= end or at > run.steps or (at == run.steps and run.state == "finished"):
            return None
        if not _iterations_match(timeline, breakpoint, program, row):
            continue
        if breakpoint.condition is None:
            return at
        moment = timeline.moment(at)
        if condition_holds(breakpoint.condition, levels_of(moment), PastValues(run, moment)):
            return at
    return None


def _names_a_moment(breakpoint: Breakpoint) -> bool:
    """Whether it gives the iteration of every loop that it lies in."""
    return (
        breakpoint.kind == "address"
        and bool(breakpoint.iterations)
        and None not in breakpoint.iterations
    )


def _at_exact_place(run: Run, breakpoint: Breakpoint, step: int) -> int | None:
    """The step of a place whose iterations are all given; None when it lies before ``step`` or
    has not been reached.
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
    at = run.timeline.step_at(program, row, position)
    if at <= step:
        return None
    moment = run.timeline.moment(at)
    past = PastValues(run, moment)
    return at if condition_holds(breakpoint.condition, levels_of(moment), past) else None


def _iterations_match(
    timeline: Timeline, breakpoint: Breakpoint, program: Program, row: int
) -> bool:
    if all(wanted is None for wanted in breakpoint.iterations):
        return True
    found = timeline.iterations(program, row)
    return all(
        wanted is None or wanted == one
        for wanted, one in zip(breakpoint.iterations, found, strict=False)
    )


def instruction_at(moment: Moment) -> Instruction | None:
    """What runs next at a moment; None at the end of a body."""
    if not moment:
        return None
    level = moment[-1]
    instructions = level.program.instructions
    return instructions[level.position] if level.position < len(instructions) else None


class PastValues:
    """The slots as they were at a past moment, each made when looked at."""

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
