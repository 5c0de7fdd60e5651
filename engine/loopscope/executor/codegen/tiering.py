"""Tiering: which loops run in generated code, and the transfer of their state there and back.

On the way back, which is deoptimisation, the local variables of a generated function become slots
and frames after an exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from loopscope.executor.codegen import compile as source
from loopscope.executor.codegen.source_map import LEFT, CodePlace, Context, Loop, LoopNames
from loopscope.executor.machine.execute import LARGE, cause_of, describe, execute
from loopscope.executor.machine.limits import Endless, Paused
from loopscope.executor.machine.machine import Machine
from loopscope.executor.machine.regions import concatenated, holds_loops
from loopscope.executor.machine.state import CycleDetector, Frame, first_return, undo_constants
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Program
from loopscope.executor.plan.slots import ProgramIndex
from loopscope.executor.record.recording import can_prove_endless
from loopscope.ops.kernel_checks import TooLarge, at_once

STEPPED_FIRST = 16
"""Number of stepped iterations, over all executions and runs of a plan, before a loop gets
generated code.

Generating code for an operation takes about as long as stepping it 16 times. Stepped iterations of
inner loops count too, because the outer loop's function includes them.
"""
_WATCH_AFTER = 1 << 16
"""Number of iterations after which the state of an unlimited loop is watched for a cycle."""


class HandedOver(Exception):
    """Signal from generated code, between two iterations, that stepping must continue the loop."""


_SHARE_OF_CARRIED = 16
"""Loops whose carried values exceed this share (1/16) of the memory limit are stepped."""


def is_worth_generating(machine: Machine, frame: Frame) -> bool:
    """Return True at the beginning of an iteration of a loop that was stepped often enough.

    The first iteration is stepped, because its values guide which code is worthwhile, unless a
    function for the same types exists.
    """
    region = frame.region
    if region is None or frame.position or _may_exceed_memory(machine, region):
        return False
    if not frame.iteration:
        return (
            not machine.recording.rows
            and source.ready_loop(machine.overrides, region, machine.values) is not None
        )
    return source.stepped_again(machine.overrides, region) >= STEPPED_FIRST and source.can_generate(
        region
    )


def _may_exceed_memory(machine: Machine, region: LoopRegion) -> bool:
    """Return True if the carried values may approach the memory limit, which only steps check."""
    limit = machine.control.limits.memory_bytes
    carried = (machine.values[port.parameter] for port in region.carried)
    return limit is not None and sum(getattr(port, "nbytes", 0) for port in carried) > max(
        LARGE, limit // _SHARE_OF_CARRIED
    )


def run(machine: Machine, frame: Frame, region: LoopRegion) -> None:
    """Run the loop of the top frame from the beginning of an iteration to the loop's end.

    ``Paused`` and ``Failure`` leave the machine at the instruction where they occur.
    """
    machine.last = None
    recording, control = machine.recording, machine.control
    undo_constants(machine.overrides, region.program, machine.values)
    _unrecord_row(machine, region.program)
    if recording.rows:
        recording.leave_out(
            region, machine.values, source.scalars(machine.overrides, region, machine.values)
        )
    ready = (
        None if frame.iteration else source.ready_loop(machine.overrides, region, machine.values)
    )
    loop = ready or source.loop(
        machine.overrides, region, recording, machine.values, machine.defaults, safepoint
    )
    recording.prove(loop.scalars, holds=True)
    for logged in loop.logged:
        recording.branch_log(logged.table).begin(
            logged.branch, frame.iteration if logged.program == region.program.index else 0
        )
    control.enter(sum(open_frame.region is not None for open_frame in machine.frames) - 1)
    try:
        is_too_large = _call(machine, frame, loop)
    finally:
        recording.prove(loop.scalars, holds=False)
        begun_counts = {
            open_frame.program.index: open_frame.position + (open_frame is not machine.frames[-1])
            for open_frame in machine.frames
        }
        _close_logs(machine, frame, loop, begun_counts)
        recording.pack()
    if is_too_large:
        # A step repeats the operation within the whole memory limit. At the beginning of an
        # iteration, generated code would otherwise take over again and meet the same operation.
        machine.step()


def _close_logs(
    machine: Machine, frame: Frame, loop: Loop, begun_counts: Mapping[ProgramIndex, int]
) -> None:
    """Complete the branch logs after generated code was left: set how often each logged If ran."""
    iterations = {open_frame.program.index: open_frame.iteration for open_frame in machine.frames}
    for logged in loop.logged:
        log = machine.recording.branch_log(logged.table)
        if logged.program in begun_counts:
            log.catch_up(
                iterations[logged.program] + (begun_counts[logged.program] > logged.position)
            )
        elif logged.program == frame.program.index:
            log.end(frame.iteration + 1)


def _call(machine: Machine, frame: Frame, loop: Loop) -> bool:
    """Call the generated function. Return True if it left at an operation whose output is large."""
    try:
        with at_once(machine.control.elements_at_once):
            count, ending, left = loop(machine, frame)
    except HandedOver as over:
        deoptimise(machine, loop, over)
        return False
    except Paused as pause:
        deoptimise(machine, loop, pause)
        raise
    except Exception as error:
        instruction = deoptimise(machine, loop, error)
        if instruction is not None and isinstance(error, TooLarge):
            return True
        if instruction is None:
            raise machine.failed(cause_of(error), error) from error
        raise machine.failed(describe(instruction, machine.values, error), error) from error
    machine.control.leave(left, 0)
    frame.iteration, frame.position, frame.is_behind = (
        count - 1,
        len(frame.program.instructions),
        True,
    )
    try:
        machine.finish_loop(frame, count, ending)
    except Exception as error:
        raise machine.failed(cause_of(error), error) from error
    return False


def _unrecord_row(machine: Machine, program: Program) -> None:
    """Remove the started row from the recording, because the generated code begins the iteration
    again.
    """
    rows = machine.recording.rows.get(program.index)
    if rows is not None:
        for slot in rows.columns.keys() - program.producer.keys():
            rows.columns[slot].pending.pop()


def safepoint(
    machine: Machine,
    frame: Frame | None,
    region: LoopRegion,
    done: int,
    iteration: int,
    unlimited: bool,
    left: int,
) -> int:
    """Check limits and pack recorded rows between two chunks of generated code; return the length
    of the next chunk.

    ``left`` is the number of body executions that may still begin. ``frame`` is the frame of the
    outermost loop, None for an inner loop.
    """
    recording, control = machine.recording, machine.control
    change = machine.next_stop(iteration) if frame is not None else None
    if change == iteration:
        raise HandedOver
    rows = recording.rows.get(region.program.index)
    watched = rows is not None and rows.forget
    if watched or (unlimited and iteration >= _WATCH_AFTER and can_prove_endless(region)):
        if rows is None:
            recording.watch(region)
            raise HandedOver
        _look_for_repetition(machine, frame, region, iteration)
    for number in region.program.regions:
        inner = region.program.instructions[number].region
        if isinstance(inner, IfRegion) and (log := recording.branch_log(inner.table)).is_long:
            log.catch_up(iteration)
    recording.pack(all_of_it=False)
    control.check(recording.bytes + machine.collected_bytes())
    control.look(left)
    chunk = control.next_chunk(max(done, 1))
    return chunk if change is None else min(chunk, change - iteration)


def _look_for_repetition(
    machine: Machine, frame: Frame | None, region: LoopRegion, iteration: int
) -> None:
    rows = machine.recording.rows[region.program.index]
    rows.pack(rows.begun)
    if frame is None or not can_prove_endless(region):
        return
    newest = max(
        (len(column.chunks[-1]) for column in rows.columns.values() if column.chunks), default=0
    )
    repetition = None
    # An override feeds an iteration too.
    if frame.cycles is not None or machine.last_override() < iteration - newest * rows.stride:
        frame.cycles = frame.cycles or CycleDetector()
        first = iteration - newest - frame.cycles.seen
        repetition = frame.cycles.look(rows, first)
        if repetition is not None and rows.stride == 1 and not rows.forget:
            repetition = first_return(
                rows, rows.packed_rows - iteration, machine.last_override() + 1, *repetition
            )
    if rows.forget:
        for column in rows.columns.values():
            column.chunks, column.starts, column.packed, column.bytes = [], [], 0, 0
    if repetition is not None:
        earlier, later = repetition
        # If only some rows are stored, the iteration numbers are not known.
        proof = (
            f"of iterations {earlier:,} and {later:,} is equal"
            if rows.stride == 1
            else "comes back"
        )
        raise Endless(f"the carried state {proof}, and nothing else feeds the next iteration")


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
