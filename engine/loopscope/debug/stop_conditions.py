"""Stop conditions: whether breakpoints hold at the frontier of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from loopscope.debug.breakpoints import ITERATION, Breakpoint
from loopscope.debug.expression import Expression
from loopscope.debug.lookup import slot_of
from loopscope.debug.position import Levels, frontier
from loopscope.debug.run import Run
from loopscope.errors import ExpressionError, ValueUnavailable
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.plan import Instruction
from loopscope.executor.plan.slots import Slot
from loopscope.ops.values import holds_unusual, is_tensor

_STEPS_PER_MEMORY_CHECK = 1024
"""Number of steps between two checks of the recording's memory, because a check takes longer than a
step.
"""


class Slots(Protocol):
    """Values of a run by slot, at its frontier or at a past moment."""

    def __getitem__(self, slot: Slot, /) -> Any: ...


def matches(levels: Levels, breakpoint: Breakpoint) -> bool:
    """Return True if the open graphs are just before the place of a breakpoint."""
    program, _, position = levels[-1]
    if breakpoint.program is not None and (
        program is not breakpoint.program or position != breakpoint.position
    ):
        return False
    iterations = [iteration for _, iteration, _ in levels if iteration is not None]
    return all(
        required is None or required == iteration_now
        for required, iteration_now in zip(breakpoint.iterations, iterations, strict=False)
    )


def stops(run: Run, breakpoints: Sequence[Breakpoint]) -> bool:
    """Return True if any breakpoint holds at the frontier, which the last instruction has just
    reached.
    """
    machine = run.machine
    levels = frontier(machine)
    return any(
        holds(run, breakpoint, levels, machine.last, machine.values) for breakpoint in breakpoints
    )


def holds(
    run: Run, breakpoint: Breakpoint, levels: Levels, last: Instruction | None, values: Slots
) -> bool:
    if breakpoint.kind == "address":
        return matches(levels, breakpoint) and condition_holds(breakpoint.condition, levels, values)
    last = completed(levels, last)
    if last is None or not concerns(breakpoint, last):
        return False
    if breakpoint.kind != "shape":
        kind = breakpoint.kind
        unusual = any(holds_unusual(values[slot], kind) for slot in last.outputs)
        unusual = unusual and not any(holds_unusual(values[slot], kind) for slot in last.inputs)
    else:
        unusual = shape_changed(run.shapes, last, values)
    return unusual and condition_holds(breakpoint.condition, levels, values)


def completed(levels: Levels, last: Instruction | None) -> Instruction | None:
    """Return the instruction that has just returned outputs. A node with bodies counts at its end,
    not at its begin.
    """
    if last is not None and last.region is None:
        return last
    program, _, position = levels[-1]
    before = program.instructions[position - 1] if position else None
    return (
        before
        if before is not None and before.region is not None and last in (None, before)
        else None
    )


def concerns(breakpoint: Breakpoint, last: Instruction) -> bool:
    if breakpoint.program is None:
        return last.region is None
    position = breakpoint.position
    instructions = breakpoint.program.instructions
    return position is not None and position < len(instructions) and instructions[position] is last


def condition_holds(condition: Expression | None, levels: Levels, values: Slots) -> bool:
    if condition is None:
        return True
    return evaluate_condition(condition, levels, values)[0]


def evaluate_condition(condition: Expression, levels: Levels, values: Slots) -> tuple[bool, str]:
    """Return whether a condition stops a run, and the reason why it cannot be computed.

    The condition is false while a name has no value yet. A condition that cannot be computed stops
    the run, because it may be true.
    """
    try:
        return condition.is_true(lambda name: _value_of_name(levels, name, values)), ""
    except ValueUnavailable:
        return False, ""
    except ExpressionError as error:
        return True, str(error)


def _value_of_name(levels: Levels, name: str, values: Slots) -> Any:
    """Return the value of a name at the frontier: ``iteration``, or a node of the innermost graph
    that contains the name.
    """
    if name == ITERATION:
        iterations = [iteration for _, iteration, _ in levels if iteration is not None]
        if iterations:
            return np.int64(iterations[-1])
        raise ValueUnavailable("there is no iteration outside a loop")
    for program, _, position in reversed(levels):
        slot = slot_of(program, name)
        if slot is None:
            continue
        if program.producer.get(slot, -1) >= position or values[slot] is None:
            raise ValueUnavailable(f"{name!r} has not run yet")
        return values[slot]
    raise ValueUnavailable(f"there is no {name!r} here")


def shape_changed(
    shapes: dict[int, tuple[int, ...]], instruction: Instruction, values: Slots
) -> bool:
    """Return True if an instruction returned another shape than at the last check; ``shapes``
    stores the shapes.
    """
    changed = False
    for slot in instruction.outputs:
        value = values[slot]
        shape = (
            (len(value),)
            if isinstance(value, tuple)
            else np.shape(value)
            if is_tensor(value)
            else ()
        )
        changed |= shapes.get(slot, shape) != shape
        shapes[slot] = shape
    return changed


def check_limits(machine: Machine, step: int) -> None:
    """Raise ``Paused`` if a stepped run was stopped or has reached a limit. The recording's memory
    is checked at intervals.
    """
    if step % _STEPS_PER_MEMORY_CHECK:
        machine.control.check(0)
        return
    machine.recording.pack()
    machine.control.check(machine.recording.bytes)


def may_run_unwatched(machine: Machine, breakpoints: list[Breakpoint], floor: int) -> bool:
    """Return True if the top loop may run in generated code: it is deeper than ``floor`` graphs and
    contains no breakpoint.
    """
    if len(machine.frames) <= floor:
        return False
    top = machine.frames[-1].program
    return all(
        breakpoint.program is not None and top not in breakpoint.program.around()
        for breakpoint in breakpoints
    )
