"""Every moment of a run by its step number: the way from a number to a place, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from loopscope.executor.machine.machine import Frame, Machine
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Program
from loopscope.timeline.sizes import RECORDS, STEPS, ExecutionIndex, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One open graph of a moment: its row, its iteration, and its current instruction."""

    program: Program
    row: int
    iteration: int | None
    position: int
    """Equal to the number of instructions when the graph is done and only its end is left."""


Moment = tuple[Level, ...]
"""Open graphs, outermost first; the current instruction of each but the last is the region that
holds the next.
"""


class Timeline:
    """The order of all that a machine has run so far; made anew when the machine has gone on."""

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
        """Steps that have run: those of whole rows, but for what the open ones have left."""
        whole = [
            len(program.instructions) + (program.parent is not None)
            for program in self.machine.plan.programs
        ]
        left = sum(
            whole[index] - self._begun(frame) for index, frame in self.executions.open.items()
        )
        return (
            sum(rows * each for rows, each in zip(self.executions.rows, whole, strict=True)) - left
        )

    def _begun(self, frame: Frame) -> int:
        """Instructions of an open row that have begun."""
        return frame.position + (frame is not self.machine.frames[-1])

    @cached_property
    def latest(self) -> str:
        """The address of what ran last; empty at the start."""
        frame = self.machine.frames[-1]
        program, row = frame.program, self.executions.rows[frame.program.index] - 1
        if frame.position:
            return self._last_of(program, row, frame.position - 1)
        if program.parent is None:
            return ""
        outer_row, iteration = self.executions.parent_row(program, row)
        if iteration:
            return self.address(program, row - 1)
        return f"{self.address(program.parent, outer_row)}/{program.parent.instructions[program.owner].label}"

    def _last_of(self, program: Program, row: int, number: int) -> str:
        """The address of the last step of an instruction that has run: of a region, the end of
        its last body.
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
        """What stood where before step number ``step`` (0-based) ran."""
        levels: list[Level] = []
        program, row, iteration, left = self.machine.plan.main, 0, None, step
        while True:
            position, inner = self._descend(program, row, left)
            levels.append(Level(program=program, row=row, iteration=iteration, position=position))
            if inner is None:
                return tuple(levels)
            program, row, iteration, left = inner

    def _descend(
        self, program: Program, row: int, left: int
    ) -> tuple[int, tuple[Program, int, int | None, int] | None]:
        """The current instruction of a row after ``left`` of its steps, and the row inside it
        when that instruction is a region.
        """
        inside_before = 0
        for number in program.regions:
            if left <= number + inside_before:
                break
            within = left - number - inside_before - 1
            amount = self.steps.inside(program, number, row)
            if within < amount or (within == amount and self._is_open(program, row, number)):
                return number, self._inner(program, number, row, within)
            inside_before += amount
        return left - inside_before, None

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
                at = sizes.find(sizes.before(first) + within)
                return (
                    region.program,
                    at,
                    at - first,
                    within - (sizes.before(at) - sizes.before(first)),
                )
            case IfRegion() as region:
                inner, at = self.executions.branch(region, row)
                return inner, at, None, within
            case _ as region:
                assert region is not None
                return region.programs[0], row, None, within

    def step_at(self, program: Program, row: int, position: int) -> int:
        """The step number at which a row reaches an instruction, when all regions before it are
        done.

        The newest one where the row was under way when the run stopped, and has not come so far.
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
    # ------------------------------------------------------------------------------------------------

    def address(self, program: Program, row: int) -> str:
        """The address of one row of a program, such as ``main/while_3[2]/body``."""
        parts: list[str] = []
        while program.parent is not None:
            outer_row, iteration = self.executions.parent_row(program, row)
            label = program.parent.instructions[program.owner].label
            parts.append(program.branch_name)
            parts.append(label if iteration is None else f"{label}[{iteration}]")
            program, row = program.parent, outer_row
        return "/".join(["main", *reversed(parts)])

    def iterations(self, program: Program, row: int) -> tuple[int, ...]:
        """The iteration of each loop around a row, outermost first."""
        found: list[int] = []
        while program.parent is not None:
            row, iteration = self.executions.parent_row(program, row)
            if iteration is not None:
                found.append(iteration)
            program = program.parent
        return tuple(reversed(found))

    def walk(self) -> Iterator[tuple[Program, int, Instruction]]:
        """Every execution of a region in the order in which it began: the program that holds it,
        its row, the instruction.
        """
        stack = [iter(self._regions_of(self.machine.plan.main, 0))]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
                continue
            yield found
            _, row, instruction = found
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
                    for at in range(*self.executions.rows_of(region, row)):
                        yield from self._regions_of(region.program, at)
            case IfRegion() as region:
                yield from self._regions_of(*self.executions.branch(region, row))
            case _ as region:
                assert region is not None
                yield from self._regions_of(region.programs[0], row)

    def record(self, index: int) -> tuple[Program, int, Instruction]:
        """The region execution of that number in the order of ``walk``."""
        program, row, left = self.machine.plan.main, 0, index
        while True:
            for number in program.regions:
                if row >= self.executions.calls(program, number):
                    continue
                if left == 0:
                    return program, row, program.instructions[number]
                left -= 1
                inside = self.records.inside(program, number, row)
                if left < inside:
                    program, row, left = self._record_row(program, number, row, left)
                    break
                left -= inside
            else:
                raise IndexError(index)

    def _record_row(
        self, program: Program, number: int, row: int, left: int
    ) -> tuple[Program, int, int]:
        match program.instructions[number].region:
            case LoopRegion() as region:
                first, _ = self.executions.rows_of(region, row)
                sizes = self.records.by_program[region.program.index]
                at = sizes.find(sizes.before(first) + left)
                return region.program, at, left - (sizes.before(at) - sizes.before(first))
            case IfRegion() as region:
                inner, at = self.executions.branch(region, row)
                return inner, at, left
            case _ as region:
                assert region is not None
                return region.programs[0], row, left
