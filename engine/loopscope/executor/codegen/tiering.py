"""Tiering: which loops run in generated code, and the transfer of their state into the code and
back.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.executor.codegen import compile as source
from loopscope.executor.codegen.deoptimise import deoptimise
from loopscope.executor.codegen.source_map import Loop
from loopscope.executor.machine.cycle_detection import CycleDetector, first_return
from loopscope.executor.machine.execute import LARGE, cause_of, describe
from loopscope.executor.machine.limits import Endless, Paused
from loopscope.executor.machine.machine import Machine
from loopscope.executor.machine.state import Frame, undo_constants
from loopscope.executor.plan.numbers import ProgramIndex
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.executor.record.recording import can_prove_endless
from loopscope.ops.bounds import TooLarge, at_once

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
