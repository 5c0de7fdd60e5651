"""Timeline of a run: the map from step numbers to moments, and control flow as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

from loopscope.executor.machine.machine import Frame, Machine
from loopscope.executor.plan.plan import (
    IfRegion,
    Instruction,
    LoopRegion,
    Program,
    Region,
    RegionKind,
)
from loopscope.executor.record.buffers import BranchLog
from loopscope.executor.record.recording import ENDINGS, Ending, LoopTable, StopCause
from loopscope.ir.recorded_rows import recorded_ending
from loopscope.timeline.sizes import RECORDS, STEPS, ExecutionIndex, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One open graph of a moment: its row, its iteration, and its current instruction."""

    program: Program
    row: int
    iteration: int | None
    position: int
    """Number of the current instruction; the number of instructions if only the end of the graph is
    left.
    """


Moment = tuple[Level, ...]
"""Open graphs, outermost first. The current instruction of each graph but the last is the region
that contains the next.
"""


class Timeline:
    """Order of everything that a machine has run so far. It must be created again after the machine
    has run further.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.executions = ExecutionIndex(machine)

    @cached_property
    def steps(self) -> Sizes:
        return Sizes(self.executions, STEPS)

    @cached_property
    def records(self) -> Sizes:
        return Sizes(self.executions, RECORDS)

    @cached_property
    def length(self) -> int:
        """Number of steps that have run: all steps of all rows, without the remaining steps of open
        rows.
        """
        row_sizes = [
            len(program.instructions) + (program.parent is not None)
            for program in self.machine.plan.programs
        ]
        remaining = sum(
            row_sizes[index] - self._begun(frame) for index, frame in self.executions.open.items()
        )
        return (
            sum(rows * size for rows, size in zip(self.executions.rows, row_sizes, strict=True))
            - remaining
        )

    def _begun(self, frame: Frame) -> int:
        """Return the number of instructions of an open row that have begun."""
        return frame.position + (frame is not self.machine.frames[-1])

    @cached_property
    def latest(self) -> str:
        """Address of the step that ran last; empty at the start."""
        frame = self.machine.frames[-1]
        program, row = frame.program, self.executions.rows[frame.program.index] - 1
        if frame.position:
            return self._last_of(program, row, frame.position - 1)
        if program.parent is None:
            return ""
        outer_row, iteration = self.executions.parent_row(program, row)
        if iteration:
            return self.address(program, row - 1)
        label = program.parent.instructions[program.owner].label
        return f"{self.address(program.parent, outer_row)}/{label}"

    def _last_of(self, program: Program, row: int, number: int) -> str:
        """Return the address of the last step of an instruction that has run; for a region, the end
        of its last body.
        """
        match program.instructions[number].region:
            case None:
                pass
            case LoopRegion() as region:
                first, end = self.executions.rows_of(region, row)
                if end > first:
                    return self.address(region.program, end - 1)
            case IfRegion() as region:
                return self.address(*self.executions.branch(region, row))
            case _ as region:
                return self.address(region.programs[0], row)
        return f"{self.address(program, row)}/{program.instructions[number].label}"

    def moment(self, step: int) -> Moment:
        """Return the open graphs before step number ``step`` (counted from 0) ran."""
        levels: list[Level] = []
        program, row, iteration, remaining = self.machine.plan.main, 0, None, step
        while True:
            position, inner = self._descend(program, row, remaining)
            levels.append(Level(program=program, row=row, iteration=iteration, position=position))
            if inner is None:
                return tuple(levels)
            program, row, iteration, remaining = inner

    def _descend(
        self, program: Program, row: int, remaining: int
    ) -> tuple[int, tuple[Program, int, int | None, int] | None]:
        """Return the current instruction of a row after ``remaining`` of its steps, and the row
        inside it if it is a region.
        """
        inside_before = 0
        for number in program.regions:
            if remaining <= number + inside_before:
                break
            within = remaining - number - inside_before - 1
            amount = self.steps.inside(program, number, row)
            if within < amount or (within == amount and self._is_open(program, row, number)):
                return number, self._inner(program, number, row, within)
            inside_before += amount
        return remaining - inside_before, None

    def _is_open(self, program: Program, row: int, number: int) -> bool:
        frame = self.executions.open.get(program.index)
        if frame is None or frame is self.machine.frames[-1]:
            return False
        return frame.position == number and row == self.executions.rows[program.index] - 1

    def _is_ahead(self, program: Program, row: int, position: int) -> bool:
        frame = self.executions.open.get(program.index)
        return (
            frame is not None
            and position > frame.position
            and row == self.executions.rows[program.index] - 1
        )

    def _inner(
        self, program: Program, number: int, row: int, within: int
    ) -> tuple[Program, int, int | None, int]:
        match program.instructions[number].region:
            case LoopRegion() as region:
                first, _ = self.executions.rows_of(region, row)
                sizes = self.steps.by_program[region.program.index]
                inner_row = sizes.find(sizes.before(first) + within)
                return (
                    region.program,
                    inner_row,
                    inner_row - first,
                    within - (sizes.before(inner_row) - sizes.before(first)),
                )
            case IfRegion() as region:
                inner, inner_row = self.executions.branch(region, row)
                return inner, inner_row, None, within
            case _ as region:
                assert region is not None
                return region.programs[0], row, None, within

    def step_at(self, program: Program, row: int, position: int) -> int:
        """Return the step number at which a row reaches an instruction, with all earlier regions
        done.

        Return the newest step number if the instruction is ahead in an open row.
        """
        if self._is_ahead(program, row, position):
            return self.length
        step = 0
        while True:
            step += position + sum(
                self.steps.inside(program, number, row)
                for number in program.regions
                if number < position
            )
            if program.parent is None:
                return step
            sizes = self.steps.by_program[program.index]
            outer_row, iteration = self.executions.parent_row(program, row)
            if iteration is not None:
                step += sizes.before(row) - sizes.before(row - iteration)
            step += 1
            position, program, row = program.owner, program.parent, outer_row

    # -- addresses

    def address(self, program: Program, row: int) -> str:
        """Return the address of one row of a program, such as ``main/while_3[2]/body``."""
        parts: list[str] = []
        while program.parent is not None:
            outer_row, iteration = self.executions.parent_row(program, row)
            label = program.parent.instructions[program.owner].label
            parts.append(program.branch_name)
            parts.append(label if iteration is None else f"{label}[{iteration}]")
            program, row = program.parent, outer_row
        return "/".join(["main", *reversed(parts)])

    def iterations(self, program: Program, row: int) -> tuple[int, ...]:
        """Return the iteration of each loop around a row, outermost first."""
        inner_first: list[int] = []
        while program.parent is not None:
            row, iteration = self.executions.parent_row(program, row)
            if iteration is not None:
                inner_first.append(iteration)
            program = program.parent
        return tuple(reversed(inner_first))

    def walk(self) -> Iterator[tuple[Program, int, Instruction]]:
        """Yield every execution of a region in the order of its begin: its program, its row, the
        instruction.
        """
        stack = [iter(self._regions_of(self.machine.plan.main, 0))]
        while stack:
            execution = next(stack[-1], None)
            if execution is None:
                stack.pop()
                continue
            yield execution
            _, row, instruction = execution
            stack.append(self._inside(row, instruction))

    def _regions_of(self, program: Program, row: int) -> Iterator[tuple[Program, int, Instruction]]:
        for number in program.regions:
            if row < self.executions.calls(program, number):
                yield program, row, program.instructions[number]

    def _inside(
        self, row: int, instruction: Instruction
    ) -> Iterator[tuple[Program, int, Instruction]]:
        match instruction.region:
            case LoopRegion() as region:
                if region.program.regions:
                    for inner_row in range(*self.executions.rows_of(region, row)):
                        yield from self._regions_of(region.program, inner_row)
            case IfRegion() as region:
                yield from self._regions_of(*self.executions.branch(region, row))
            case _ as region:
                assert region is not None
                yield from self._regions_of(region.programs[0], row)

    def record(self, index: int) -> tuple[Program, int, Instruction]:
        """Return the region execution with that number in the order of ``walk``."""
        program, row, remaining = self.machine.plan.main, 0, index
        while True:
            for number in program.regions:
                if row >= self.executions.calls(program, number):
                    continue
                if remaining == 0:
                    return program, row, program.instructions[number]
                remaining -= 1
                inside = self.records.inside(program, number, row)
                if remaining < inside:
                    program, row, remaining = self._record_row(program, number, row, remaining)
                    break
                remaining -= inside
            else:
                raise IndexError(index)

    def _record_row(
        self, program: Program, number: int, row: int, remaining: int
    ) -> tuple[Program, int, int]:
        match program.instructions[number].region:
            case LoopRegion() as region:
                first, _ = self.executions.rows_of(region, row)
                sizes = self.records.by_program[region.program.index]
                inner_row = sizes.find(sizes.before(first) + remaining)
                return (
                    region.program,
                    inner_row,
                    remaining - (sizes.before(inner_row) - sizes.before(first)),
                )
            case IfRegion() as region:
                inner, inner_row = self.executions.branch(region, row)
                return inner, inner_row, remaining
            case _ as region:
                assert region is not None
                return region.programs[0], row, remaining


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFlowRecord:
    """One execution of a Loop, TensorIterator or If."""

    address: str
    """Address with iterations, such as ``main/while_3[2]/body/if_2``."""
    kind: RegionKind
    iterations: int | None = None
    """Iteration count of this execution; None for If."""
    ended_by: Ending | None = None
    """``trip_count``, ``condition``, ``zero_trip_count``, ``initial_condition``,
    ``slices_exhausted``, ``limit``, ``error`` or ``stopped``; None for If and for a running loop.
    """
    branch: str | None = None
    """``then`` or ``else`` for If."""
    endless: bool = False
    """True if this loop, or an open loop inside it, is proved never to end; ``ended_by`` is then
    ``limit``.
    """
    reason: str = ""
    """Reason for the ending of a loop of a trace, as recorded; empty for other loops."""


class ControlFlow(Sequence[ControlFlowRecord]):
    """Records in pre-order (an outer loop before what ran in it), each created on access."""

    def __init__(
        self, timeline: Timeline, cause: StopCause | None, *, endless: bool = False
    ) -> None:
        self._timeline = timeline
        self._cause = cause
        self._endless = endless

    def __repr__(self) -> str:
        return f"<control flow: {len(self):,} records>"

    def __len__(self) -> int:
        return self._timeline.records.total

    @overload
    def __getitem__(self, index: int) -> ControlFlowRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ControlFlowRecord]: ...
    def __getitem__(self, index: int | slice) -> ControlFlowRecord | Sequence[ControlFlowRecord]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        return self.of(*self._timeline.record(number))

    def __iter__(self) -> Iterator[ControlFlowRecord]:
        for execution in self._timeline.walk():
            yield self.of(*execution)

    def of(self, program: Program, row: int, instruction: Instruction) -> ControlFlowRecord:
        """Return the record of an instruction with bodies in one row of its program."""
        region = instruction.region
        assert region is not None
        address = f"{self._timeline.address(program, row)}/{instruction.label}"
        record = self.record_of(region, row, address)
        ending = recorded_ending(instruction.node, row)
        if ending is None:
            return record
        left = "the program left it" if record.ended_by == "condition" else ""
        return replace(record, reason=ending.reason or left)

    def record_of(self, region: Region, row: int, address: str) -> ControlFlowRecord:
        """Return the record of the execution of a region in one row of its graph."""
        machine = self._timeline.machine
        table = machine.recording.tables[region.table]
        if isinstance(table, BranchLog):
            return ControlFlowRecord(
                address=address, kind="If", branch="then" if table.branches[row] else "else"
            )
        if not isinstance(region, LoopRegion):
            return ControlFlowRecord(address=address, kind=region.kind)
        assert isinstance(table, LoopTable)
        if row < len(table.counts):
            return ControlFlowRecord(
                address=address,
                kind=region.kind,
                iterations=table.counts[row],
                ended_by=ENDINGS[table.endings[row]],
            )
        frame = self._timeline.executions.open.get(region.program.index)
        iterations = frame.iteration if frame else 0
        return ControlFlowRecord(
            address=address,
            kind=region.kind,
            iterations=iterations,
            ended_by=self._cause,
            endless=self._endless,
        )
