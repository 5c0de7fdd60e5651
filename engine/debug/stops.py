"""The moments at which breakpoints hold: at the frontier of a run, and in what has run already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.debug.breakpoints import Breakpoint
from engine.debug.cursor import Levels
from engine.debug.expression import Expression
from engine.errors import ExpressionError
from engine.run.machine import Machine
from engine.run.plan import ABSENT, IfRegion, Instruction, LoopRegion, Program
from engine.trace.timeline import Moment, Timeline

if TYPE_CHECKING:
    from engine.debug.debugger import Debugger


def matches(levels: Levels, breakpoint: Breakpoint) -> bool:
    """Whether open graphs stand before the place of a breakpoint."""
    program, _, position = levels[-1]
    if breakpoint.program is not None and (program is not breakpoint.program or position != breakpoint.position):
        return False
    iterations = [iteration for _, iteration, _ in levels if iteration is not None]
    return all(wanted is None or wanted == found for wanted, found in zip(breakpoint.iterations, iterations, strict=False))


def stops(debugger: Debugger, breakpoints: list[Breakpoint]) -> bool:
    """Whether any breakpoint holds at the frontier, which an instruction has just reached."""
    machine = debugger.machine
    levels: Levels = [(frame.program, frame.iteration if frame.region else None, frame.position) for frame in machine.frames]
    return any(_holds(debugger, one, levels, machine.last, machine.values) for one in breakpoints)


def _holds(debugger: Debugger, breakpoint: Breakpoint, levels: Levels, last: Instruction | None, values: list[Any]) -> bool:
    if breakpoint.kind == "address":
        return matches(levels, breakpoint) and _condition_holds(debugger, breakpoint.condition, levels, values)
    last = _completed(levels, last)
    if last is None or not _concerns(breakpoint, levels, last):
        return False
    if breakpoint.kind == "nan":
        return any(_is_odd(values[slot]) for slot in last.outputs) and not any(_is_odd(values[slot]) for slot in last.inputs)
    return debugger.watches.shape_changed(last, values)


def _completed(levels: Levels, last: Instruction | None) -> Instruction | None:
    """What has just given its outputs; a node with bodies when it is done, not when it begins."""
    if last is not None and last.region is None:
        return last
    program, _, position = levels[-1]
    before = program.instructions[position - 1] if position else None
    return before if before is not None and before.region is not None and last in (None, before) else None


def _concerns(breakpoint: Breakpoint, levels: Levels, last: Instruction) -> bool:
    if breakpoint.program is None:
        return last.region is None
    position = breakpoint.position
    instructions = breakpoint.program.instructions
    return position is not None and position < len(instructions) and instructions[position] is last


def _condition_holds(debugger: Debugger, condition: Expression | None, levels: Levels, values: list[Any]) -> bool:
    if condition is None:
        return True
    _program, _, position = levels[-1]
    try:
        return condition.is_true(lambda name: _named(levels, name, lambda number: number < position, values))
    except ExpressionError:
        return False


def _named(levels: Levels, name: str, has_run: Any, values: list[Any]) -> Any:
    """The value of a name at the frontier: ``iteration``, or a node of the innermost graph that has it."""
    if name == "iteration":
        found = [iteration for _, iteration, _ in levels if iteration is not None]
        if found:
            return np.int64(found[-1])
        raise ExpressionError("there is no iteration outside a loop")
    for program, _, position in reversed(levels):
        layer = program.layer_of_label.get(name)
        if layer is None:
            continue
        slot = program.slots.get((layer, 0), ABSENT)
        if program.producer.get(slot, -1) >= position or values[slot] is None:
            raise ExpressionError(f"{name!r} has not run yet")
        return values[slot]
    raise ExpressionError(f"there is no {name!r} here")


def _is_odd(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "f":
        return not bool(np.isfinite(value).all())
    if kind == "V" and value.dtype.names is None:
        return not bool(np.isfinite(np.asarray(value).astype(np.float32)).all())
    return False


def next_match(debugger: Debugger, breakpoint: Breakpoint, step: int) -> int | None:
    """The first step after one, in what has run already, at which a breakpoint holds."""
    timeline = debugger.timeline
    if breakpoint.kind == "address" and breakpoint.iterations and None not in breakpoint.iterations:
        return _at_exact_place(debugger, breakpoint, step)
    if breakpoint.kind == "address" and breakpoint.program is not None and breakpoint.position is not None:
        return _next_at_place(debugger, timeline, breakpoint, breakpoint.program, breakpoint.position, step)
    for later in range(step + 1, debugger.steps):
        moment, before = timeline.moment(later), timeline.moment(later - 1) if later else ()
        last = _instruction_at(before)
        if _holds(debugger, breakpoint, _levels(moment), last, _PastValues(debugger, (*before, *moment)).slots()):
            return later
    return None


def _next_at_place(
    debugger: Debugger, timeline: Timeline, breakpoint: Breakpoint, program: Program, position: int, step: int
) -> int | None:
    rows = timeline.executions.rows[program.index]
    low, high = 0, rows
    while low < high:
        middle = (low + high) // 2
        if timeline.step_at(program, middle, position) > step:
            high = middle
        else:
            low = middle + 1
    frame = timeline.executions.open.get(program.index)
    for row in range(low, rows):
        if frame is not None and row == rows - 1 and frame.position < position:
            return None
        at = timeline.step_at(program, row, position)
        if at > debugger.steps or (at == debugger.steps and debugger.state == "finished"):
            return None
        if not _iterations_match(timeline, breakpoint, program, row):
            continue
        if breakpoint.condition is None:
            return at
        moment = timeline.moment(at)
        if _condition_holds(debugger, breakpoint.condition, _levels(moment), _PastValues(debugger, moment).slots()):
            return at
    return None


def _at_exact_place(debugger: Debugger, breakpoint: Breakpoint, step: int) -> int | None:
    """The step of a place whose iterations are all given; None when it lies before ``step`` or has not been reached."""
    program, position = breakpoint.program, breakpoint.position
    assert program is not None
    assert position is not None
    row = _exact_row(debugger, program, breakpoint.iterations)
    if row is None:
        return None
    frame = debugger.timeline.executions.open.get(program.index)
    if frame is not None and row == debugger.timeline.executions.rows[program.index] - 1 and frame.position < position:
        return None
    at = debugger.timeline.step_at(program, row, position)
    if at <= step:
        return None
    moment = debugger.timeline.moment(at)
    holds = _condition_holds(debugger, breakpoint.condition, _levels(moment), _PastValues(debugger, moment).slots())
    return at if holds else None


def _exact_row(debugger: Debugger, program: Program, iterations: tuple[int | None, ...]) -> int | None:
    """The row of a program in given iterations of all loops around it; None when it has not run there."""
    executions = debugger.timeline.executions
    chain: list[Program] = []
    one: Program | None = program
    while one is not None and one.parent is not None:
        chain.append(one)
        one = one.parent
    wanted = iter(iterations)
    row = 0
    for inner in reversed(chain):
        assert inner.parent is not None
        if row >= executions.calls(inner.parent, inner.owner):
            return None
        region = inner.parent.instructions[inner.owner].region
        if isinstance(region, LoopRegion):
            first, end = executions.rows_of(region, row)
            row = first + (next(wanted) or 0)
            if row >= end:
                return None
        elif isinstance(region, IfRegion):
            taken, rows = executions.branch_rows(region)
            if (region.then.program if taken[row] else region.otherwise.program) is not inner:
                return None
            row = int(rows[row])
    return row


def _iterations_match(timeline: Timeline, breakpoint: Breakpoint, program: Program, row: int) -> bool:
    if all(wanted is None for wanted in breakpoint.iterations):
        return True
    found: list[int] = []
    while program.parent is not None:
        row, iteration = timeline.executions.parent_row(program, row)
        if iteration is not None:
            found.append(iteration)
        program = program.parent
    return all(wanted is None or wanted == one for wanted, one in zip(breakpoint.iterations, reversed(found), strict=False))


def _levels(moment: Moment) -> Levels:
    return [(level.program, level.iteration, level.position) for level in moment]


def _instruction_at(moment: Moment) -> Instruction | None:
    if not moment:
        return None
    level = moment[-1]
    instructions = level.program.instructions
    return instructions[level.position] if level.position < len(instructions) else None


class _PastValues(list[Any]):
    """The slots as they were at a past moment, each made when looked at."""

    def __init__(self, debugger: Debugger, moment: Moment) -> None:
        super().__init__()
        self._debugger = debugger
        self._rows = {slot: (level.program, level.row) for level in moment for slot in level.program.owned}

    def slots(self) -> list[Any]:
        return self

    def __getitem__(self, slot: Any) -> Any:
        place = self._rows.get(slot)
        if place is None:
            return None
        return self._debugger.values.get(self._debugger.timeline, *place, slot)


def may_run_unwatched(machine: Machine, breakpoints: list[Breakpoint], floor: int) -> bool:
    """Whether the loop on top may run through generated code: it lies deeper than ``floor`` graphs and holds no breakpoint."""
    if len(machine.frames) <= floor:
        return False
    top = machine.frames[-1].program
    return all(one.program is not None and not _is_inside(one.program, top) for one in breakpoints)


def _is_inside(program: Program | None, outer: Program) -> bool:
    while program is not None:
        if program is outer:
            return True
        program = program.parent
    return False
