"""Back from generated code to the explicit state: the locals of a function that an exception
left become slots and frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from loopscope.executor.codegen.generated_names import LEFT, LoopNames
from loopscope.executor.codegen.source_map import CodePlace, Context, Loop
from loopscope.executor.machine.execute import execute
from loopscope.executor.machine.machine import Machine
from loopscope.executor.machine.regions import concatenated, holds_loops
from loopscope.executor.machine.state import Frame
from loopscope.executor.plan.plan import Instruction, LoopRegion


def deoptimise(machine: Machine, loop: Loop, error: BaseException) -> Instruction | None:
    """Writes the locals of a generated function that was left by an exception into the machine;
    gives the instruction it stood at.
    """
    trace = _trace_of(error, loop)
    place = loop.places[trace.tb_lineno]
    found = trace.tb_frame.f_locals
    for slot, name in loop.names.items():
        if name in found:
            machine.values[slot] = found[name]
    if place is None:
        return None
    outside = len(machine.frames) - 1
    _push_frames(machine, place, found)
    _bind_counters(machine, machine.frames[outside:])
    _return_iterations(machine, place, found)
    _compute_inlined(machine, loop)
    frame = machine.frames[-1]
    if place.kind == "boundary" and place.context.region is not None:
        machine.reenter(frame, place.context.region)
    at_instruction = place.kind == "operation" and place.position < len(
        place.context.program.instructions
    )
    return place.context.program.instructions[place.position] if at_instruction else None


def _trace_of(error: BaseException, loop: Loop) -> TracebackType:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is loop.function.__code__:
            return trace
        trace = trace.tb_next
    raise AssertionError("the error did not come from generated code") from error


def _push_frames(machine: Machine, place: CodePlace, found: dict[str, Any]) -> None:
    chain: list[Context] = []
    context: Context | None = place.context
    while context is not None:
        chain.append(context)
        context = context.outer
    chain.reverse()
    frame = machine.frames[-1]
    for number, one in enumerate(chain):
        if number:
            frame.position = one.owner
            frame = machine.open_frame(one.program, one.region, one.branch)
            if one.region is not None:
                _fill_frame(frame, one.region, found)
        elif one.region is not None:
            frame.iteration = found[LoopNames(one.region.table).iteration]
    if place.kind == "join":
        # The back edges have overwritten what the last iteration began with.
        frame.iteration, frame.is_behind = frame.iteration - 1, True
    frame.position = place.position


def _bind_counters(machine: Machine, frames: Sequence[Frame]) -> None:
    """The iteration numbers that nothing reads have no local variable; those outside the
    function may be set by hand.
    """
    for frame in frames:
        for counter in frame.region.counters if frame.region else ():
            machine.values[counter.parameter] = counter.number(frame.iteration)


def _compute_inlined(machine: Machine, loop: Loop) -> None:
    """Computes the values without a local variable whose operations have run in the open graphs."""
    for frame in machine.frames:
        for number in sorted(
            frame.program.producer[slot] for slot in loop.inlined & frame.program.producer.keys()
        ):
            if number < frame.position:
                execute(frame.program.instructions[number], machine.values)


def _return_iterations(machine: Machine, place: CodePlace, found: dict[str, Any]) -> None:
    """Counts the executions of bodies that began and ended."""
    left, under_way = found[LEFT], 0
    context: Context | None = place.context
    while context is not None:
        if context.region is not None:
            if not under_way and not holds_loops(context.program):
                # Those that were to run in one go and did not begin.
                at = LoopNames(context.region.table)
                left += (
                    found[at.chunk_end]
                    - found[at.iteration]
                    - (place.kind not in ("boundary", "join"))
                )
            under_way += 1
        context = context.outer
    machine.control.leave(left, under_way - (place.kind == "boundary"))


def _fill_frame(frame: Frame, region: LoopRegion, found: dict[str, Any]) -> None:
    at = LoopNames(region.table)
    frame.iteration, frame.bound, frame.bound_ending = (
        found[at.iteration],
        found[at.bound],
        found[at.bound_ending],
    )
    frame.collected = tuple(found[at.pieces(number)] for number in range(len(concatenated(region))))
