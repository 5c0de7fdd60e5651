"""Stepping machine: executes a run one instruction at a time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from loopscope.executor.machine import regions, state
from loopscope.executor.machine.execute import (
    LARGE,
    cause_of,
    check_held,
    describe,
    execute,
    expect_room,
    first_of,
    held_bytes,
    returned,
    steps,
)
from loopscope.executor.machine.limits import Limits, Paused, RunControl
from loopscope.executor.machine.state import NO_BOUND, Failure, Frame, RunState
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Program,
)
from loopscope.executor.plan.slots import Slot, settle
from loopscope.executor.plan.uncomputed_values import Defaults, Overrides
from loopscope.executor.record.recording import (
    ENDINGS,
    NOTHING,
    LoopEnding,
    LoopTable,
    Record,
    Recording,
)
from loopscope.ops.kernel_checks import TooLarge, at_once

__all__ = ["Failure", "Frame", "Machine"]

_ELEMENT_BYTES = 4
"""Estimated bytes of an element before its array exists."""
_NUMBER_OVERHEAD, _ARRAY_OVERHEAD = 40, 240
"""Bytes of a value in addition to its data, including its place in a list. An array is often a
view of another.
"""
_MAX_COUNTED_VALUES = 1 << 10
"""Number of unpacked values of a column whose bytes are counted one by one."""
SECONDS_BETWEEN_CHECKS = 0.002
"""Minimum seconds between two checks of the limits and of the stop request."""


class Machine(RunState):
    """A run that can be stepped."""

    @staticmethod
    def start(
        overrides: Overrides,
        inputs: Mapping[Slot, Any],
        *,
        limits: Limits,
        record: Record = NOTHING,
        entropy: int = 0,
        variables: Mapping[Slot, Any] | None = None,
        keeps: bool = True,
    ) -> Machine:
        """Return a machine before its first instruction. ``inputs`` and ``variables`` are values by
        slot.
        """
        plan = overrides.plan
        values = plan.fresh_values(entropy)
        for slot, value in {**inputs, **(variables or {})}.items():
            values[slot] = settle(value)
        machine = Machine(
            plan,
            values,
            Recording(plan, record),
            RunControl(limits),
            Defaults(plan),
            overrides,
            keeps=keeps,
        )
        machine.begun_with = {slot: values[slot] for slot in plan.main.hidden}
        machine.frames.append(Frame(plan.main))
        machine._begin_row(plan.main)
        if not plan.main.instructions:
            machine._finish_main()
        return machine

    # -- stepping

    def step(self) -> None:
        """Run one instruction, begin one region, or end one body execution.

        ``Failure`` leaves the machine at the failed instruction.
        """
        frame = self.frames[-1]
        if frame.position == len(frame.program.instructions):
            self.last = None
            self._end_body(frame)
        else:
            self.last = frame.program.instructions[frame.position]
            self._run(frame, self.last)

    def run_straight(self, *, outside: int = 0) -> bool:
        """Run to the next loop or to the end of the graph or iteration, through branches. Return
        True if anything ran.

        Stop when only the ``outside`` outermost graphs are open.
        """
        progressed = False
        while self.state == "paused" and len(self.frames) > outside:
            frame = self.frames[-1]
            progressed |= self._run_operations(frame)
            if frame.position < len(frame.program.instructions):
                instruction = frame.program.instructions[frame.position]
                if isinstance(instruction.region, LoopRegion):
                    break
                self.last = instruction
                self._run(frame, instruction)
            elif frame.branch is not None:
                self.last = None
                self._end_body(frame)
            else:
                break
            progressed = True
        return progressed

    def _run_operations(self, frame: Frame) -> bool:
        """Run the operations up to the next region or the end of the graph. Return True if any
        ran.
        """
        program, begun = frame.program, frame.position
        values, control, recording = self.values, self.control, self.recording
        most_bytes, releases = control.limits.memory_bytes, not self.keeps
        overrides = self.overrides.by_program.get(program.index)
        next_check = 0.0
        for step in islice(steps(program), begun, None):
            if step is None:
                break
            if perf_counter() > next_check:
                control.check(recording.bytes)
                next_check = perf_counter() + SECONDS_BETWEEN_CHECKS
            self.last, call, returns_tuple, arguments_of, output, unused = step
            try:
                if call is None:
                    self._execute(self.last, anew=overrides is not None)
                    is_small = False
                else:
                    try:
                        result = call(*arguments_of(values))
                    except TooLarge as large:
                        self._expect_room(large)
                        with at_once(None):
                            result = call(*arguments_of(values))
                    if returns_tuple:
                        result = first_of(result)
                    is_array = type(result) is np.ndarray
                    is_small = is_array and result.nbytes < LARGE
                    values[output] = (
                        result if is_array and result.ndim else returned(self.last, result)
                    )
                if most_bytes is not None and not is_small:
                    result = None
                    check_held(
                        self.last,
                        values,
                        self.plan.constant_numbers,
                        most_bytes,
                        self.recorded_bytes,
                    )
                if overrides is not None:
                    state.put(self.overrides, program, self.iterations, self.last.outputs, values)
            except Exception as error:
                raise self.failed(describe(self.last, values, error), error) from error
            if releases:
                for slot in unused:
                    values[slot] = None
            frame.position += 1
        if program.parent is None and frame.position == len(program.instructions):
            self._finish_main()
        return frame.position > begun

    def _execute(self, instruction: Instruction, *, anew: bool) -> None:
        try:
            execute(instruction, self.values, anew=anew)
        except TooLarge as large:
            self._expect_room(large)
            with at_once(None):
                execute(instruction, self.values, anew=anew)

    def _expect_room(self, large: TooLarge) -> None:
        """Raise ``ValueError`` before an operation whose output would raise the total of all values
        over the limit.
        """
        limit = self.control.limits.memory_bytes
        if limit is not None:
            current_bytes = (
                held_bytes(self.values, self.plan.constant_numbers) + self.recorded_bytes()
            )
            expect_room(current_bytes + _ELEMENT_BYTES * large.elements, limit)

    def _run(self, frame: Frame, instruction: Instruction) -> None:
        try:
            if instruction.region is None:
                self._execute(instruction, anew=frame.program.index in self.overrides.by_program)
                if self.control.limits.memory_bytes is not None:
                    limit = self.control.limits.memory_bytes
                    check_held(
                        instruction,
                        self.values,
                        self.plan.constant_numbers,
                        limit,
                        self.recorded_bytes,
                    )
                self._go_on(frame)
            else:
                self._enter(frame, instruction)
        except Paused:
            raise
        except Exception as error:
            raise self.failed(describe(instruction, self.values, error), error) from error

    def _finish_main(self) -> None:
        self.state = "finished"

    # -- regions

    def _enter(self, frame: Frame, instruction: Instruction) -> None:
        match instruction.region:
            case LoopRegion() as region:
                self._enter_loop(frame, region)
            case IfRegion() as region:
                taken = regions.then_is_taken(region, self.values[region.condition])
                branch = region.then if taken else region.otherwise
                regions.bind_branch(branch, self.values, self.defaults)
                # Log the branch only after binding: a branch that could not be bound was not
                # entered.
                self.recording.branch_log(region.table).branches.append(taken)
                self._begin_branch(branch)
            case CallRegion() as region:
                regions.bind_branch(region.branch, self.values, self.defaults)
                self._begin_branch(region.branch)
            case None:
                raise AssertionError(instruction.label)

    def _begin_branch(self, branch: Branch) -> None:
        self.frames.append(Frame(branch.program, branch=branch))
        self._begin_row(branch.program)

    def _enter_loop(self, outer: Frame, region: LoopRegion) -> None:
        bound, ending = regions.first_bound(region, self.values)
        if bound == 0:
            outputs = self.outputs_of_none(region)
            self._leave_loop(outer, region, 0, ending, outputs)
            return
        regions.bind_entry(region, self.values, self.defaults)
        collected: tuple[list[Any], ...] = tuple([] for _ in regions.concatenated(region))
        bound = NO_BOUND if bound == regions.UNLIMITED else bound
        self.frames.append(
            Frame(
                region.program, region=region, bound=bound, bound_ending=ending, collected=collected
            )
        )
        self._begin_iteration(self.frames[-1], region)
        self._check_iterations()

    def _begin_iteration(self, frame: Frame, region: LoopRegion) -> None:
        regions.bind_iteration(region, frame.iteration, self.values)
        self._begin_row(region.program)

    def _check_iterations(self) -> None:
        """Raise ``Paused`` at the beginning of an iteration if the allowed number of body
        executions has begun before it.
        """
        if self.control.left(len(self.frames)) == 0:
            self.control.check_left(
                self.control.left(sum(frame.region is not None for frame in self.frames) - 1)
            )

    def _begin_row(self, program: Program) -> None:
        """Apply the overrides to the values that a row begins with, and record those values."""
        if self.overrides.items:
            state.begin(self.overrides, self.defaults, program, self.iterations, self.values)
        rows = self.recording.rows.get(program.index)
        if rows is not None:
            for slot in rows.columns.keys() - program.producer.keys():
                rows.columns[slot].pending.append(self.values[slot])

    def recorded_bytes(self) -> int:
        """Return the bytes that loops have collected and that were recorded.

        The newest row does not count, because its values are in slots.
        """
        columns = (
            column for rows in self.recording.rows.values() for column in rows.columns.values()
        )
        pending = sum(
            getattr(value, "nbytes", 0)
            for column in columns
            for value in column.pending[-_MAX_COUNTED_VALUES:-1]
        )
        return self.collected_bytes() + self.recording.bytes + pending

    def collected_bytes(self) -> int:
        """Return the approximate bytes that the open loops have collected. The larger of the first
        and last part stands for every part.
        """
        return sum(
            _collected_bytes(parts) for frame in tuple(self.frames) for parts in frame.collected
        )

    def _end_body(self, frame: Frame) -> None:
        """End a body. A branch returns its results; a loop begins its next iteration or returns its
        outputs.
        """
        rows = self.recording.rows.get(frame.program.index)
        if rows is not None:
            for slot in rows.columns.keys() & frame.program.producer.keys():
                rows.columns[slot].pending.append(self.values[slot])
        if frame.branch is not None:
            self._leave_branch(frame.branch)
        elif frame.region is not None:
            self._end_iteration(frame, frame.region)

    def _leave_branch(self, branch: Branch) -> None:
        self.frames.pop()
        outer = self.frames[-1]
        region = outer.program.instructions[outer.position].region
        assert isinstance(region, (IfRegion, CallRegion))
        regions.leave_branch(region, branch, self.values)
        self._go_on(outer)

    def _end_iteration(self, frame: Frame, region: LoopRegion) -> None:
        try:
            for output, collected in zip(
                regions.concatenated(region), frame.collected, strict=True
            ):
                collected.append(self.values[output.result])
            goes_on = regions.goes_on(region, self.values)
            self.control.iterations += 1
            if goes_on and frame.iteration + 1 < frame.bound:
                regions.carry(region, self.values)
                frame.iteration += 1
                frame.position = 0
                self._begin_iteration(frame, region)
                self._check_iterations()
            else:
                self.finish_loop(
                    frame, frame.iteration + 1, frame.bound_ending if goes_on else "condition"
                )
        except Paused:
            raise
        except Exception as error:
            raise self.failed(cause_of(error), error) from error

    def finish_loop(self, frame: Frame, count: int, ending: LoopEnding) -> None:
        """End a loop after ``count`` iterations: compute its outputs and remove its frame."""
        assert frame.region is not None
        outputs = regions.outputs(frame.region, self.values, frame.collected)
        self.frames.pop()
        self._leave_loop(self.frames[-1], frame.region, count, ending, outputs)

    def _leave_loop(
        self, outer: Frame, region: LoopRegion, count: int, ending: LoopEnding, outputs: list[Any]
    ) -> None:
        table = self.recording.tables[region.table]
        assert isinstance(table, LoopTable)
        table.counts.append(count)
        table.endings.append(ENDINGS.index(ending))
        for output, value in zip(region.outputs, outputs, strict=True):
            self.values[output.slot] = value
        self._go_on(outer)

    def _go_on(self, frame: Frame) -> None:
        """Move a frame past its current instruction."""
        if self.overrides.items:
            outputs = frame.program.instructions[frame.position].outputs
            state.put(self.overrides, frame.program, self.iterations, outputs, self.values)
        if frame.program.parent is None:
            if not self.keeps:
                for slot in frame.program.done_with[frame.position]:
                    self.values[slot] = None
            if frame.position + 1 == len(frame.program.instructions):
                self._finish_main()
        frame.position += 1

    def reenter(self, frame: Frame, region: LoopRegion) -> None:
        """Put a loop that generated code left between two iterations at the beginning of the next
        iteration.
        """
        frame.position = 0
        self._begin_iteration(frame, region)


def _collected_bytes(parts: list[Any]) -> int:
    """Return the estimated bytes of the parts that a loop has collected."""
    ends = (*parts[:1], *parts[-1:])
    return len(parts) * max(
        (
            getattr(part, "nbytes", 0)
            + (_ARRAY_OVERHEAD if getattr(part, "ndim", 0) else _NUMBER_OVERHEAD)
            for part in ends
        ),
        default=0,
    )
