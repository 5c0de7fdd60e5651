"""Deoptimisation: the local variables of a generated function become slots and frames after an
exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from loopscope.executor.codegen.source_map import LEFT, CodePlace, Context, Loop, LoopNames
from loopscope.executor.machine.execute import execute
from loopscope.executor.machine.machine import Machine
from loopscope.executor.machine.regions import concatenated, holds_loops
from loopscope.executor.machine.state import Frame
from loopscope.executor.plan.plan import Instruction, LoopRegion


def deoptimise(machine: Machine, loop: Loop, error: BaseException) -> Instruction | None:
    """Write the local variables of a generated function that raised into the machine.

    Return the instruction that was running, or None between instructions.
    """
    place, variables = write_variables(machine, loop, error)
    if place is None:
        return None
    restore_frames(machine, loop, place, variables)
    _return_iterations(machine, place, variables)
    frame = machine.frames[-1]
    if place.kind == "boundary" and place.context.region is not None:
        machine.reenter(frame, place.context.region)
    at_instruction = place.kind == "operation" and place.position < len(
        place.context.program.instructions
    )
    return place.context.program.instructions[place.position] if at_instruction else None


def write_variables(
    machine: Machine, loop: Loop, error: BaseException
) -> tuple[CodePlace | None, dict[str, Any]]:
    """Write the values of a generated function that raised into their slots. Return the place where
    it raised, and its local variables.
    """
    trace = _trace_of(error, loop)
    variables, constants = trace.tb_frame.f_locals, loop.function.__globals__
    for slot, name in loop.names.items():
        if name in variables:
            machine.values[slot] = variables[name]
        elif name in constants:
            machine.values[slot] = constants[name]
    return loop.places[trace.tb_lineno], variables


def restore_frames(
    machine: Machine, loop: Loop, place: CodePlace, variables: dict[str, Any]
) -> None:
    """Open the graphs around a place, and compute the values that have no variable."""
    outside = len(machine.frames) - 1
    _push_frames(machine, place, variables)
    _bind_counters(machine, machine.frames[outside:])
    _compute_inlined(machine, loop)


def _trace_of(error: BaseException, loop: Loop) -> TracebackType:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is loop.function.__code__:
            return trace
        trace = trace.tb_next
    raise AssertionError("the error did not come from generated code") from error


def _push_frames(machine: Machine, place: CodePlace, variables: dict[str, Any]) -> None:
    chain: list[Context] = []
    context: Context | None = place.context
    while context is not None:
        chain.append(context)
        context = context.outer
    chain.reverse()
    frame = machine.frames[-1]
    for number, entry in enumerate(chain):
        if number:
            frame.position = entry.owner
            frame = machine.open_frame(entry.program, entry.region, entry.branch)
            if entry.region is not None:
                _fill_frame(frame, entry.region, variables)
        elif entry.region is not None:
            frame.iteration = variables[LoopNames(entry.region.table).iteration]
    if place.kind == "join":
        # The back edges have overwritten the values that the last iteration began with.
        frame.iteration, frame.is_behind = frame.iteration - 1, True
    frame.position = place.position


def _bind_counters(machine: Machine, frames: Sequence[Frame]) -> None:
    """Set the iteration numbers of the open loops: an unread one does not have a local variable."""
    for frame in frames:
        for counter in frame.region.counters if frame.region else ():
            machine.values[counter.parameter] = counter.number(frame.iteration)


def _compute_inlined(machine: Machine, loop: Loop) -> None:
    """Compute the inlined values whose operations have run in the open graphs."""
    for frame in machine.frames:
        for number in sorted(
            frame.program.producer[slot] for slot in loop.inlined & frame.program.producer.keys()
        ):
            if number < frame.position:
                execute(frame.program.instructions[number], machine.values)


def _return_iterations(machine: Machine, place: CodePlace, variables: dict[str, Any]) -> None:
    """Count the body executions that began and ended."""
    remaining, under_way = variables[LEFT], 0
    context: Context | None = place.context
    while context is not None:
        if context.region is not None:
            if not under_way and not holds_loops(context.program):
                # Subtract the iterations of the current chunk that did not begin.
                names = LoopNames(context.region.table)
                remaining += (
                    variables[names.chunk_end]
                    - variables[names.iteration]
                    - (place.kind not in ("boundary", "join"))
                )
            under_way += 1
        context = context.outer
    machine.control.leave(remaining, under_way - (place.kind == "boundary"))


def _fill_frame(frame: Frame, region: LoopRegion, variables: dict[str, Any]) -> None:
    names = LoopNames(region.table)
    frame.iteration = variables[names.iteration]
    frame.bound = variables[names.bound]
    frame.bound_ending = variables[names.bound_ending]
    frame.collected = tuple(
        variables[names.pieces(number)] for number in range(len(concatenated(region)))
    )
