"""Sizes of the rows of each program, so that the place of a step or record number is found without
a linear search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.executor.machine.machine import Frame, Machine
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import ProgramIndex, TableIndex
from loopscope.executor.record.buffers import BranchLog
from loopscope.executor.record.recording import LoopTable

_LOOKUPS_BEFORE_INDEX = 16
"""Number of lookups in one If after which the rows of all its executions are indexed at once."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of an instruction (the begin of a region is one) and of the end of a body
    execution.
    """

    instruction: int
    end: int
    region: int
    """Weight added for each region that began."""


STEPS = Weights(1, 1, 0)
RECORDS = Weights(0, 0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Uniform:
    """Rows of one size, except the last, which may be unfinished."""

    rows: int
    each: int
    last: int

    def before(self, row: int) -> int:
        return (
            self.each * row
            if row < self.rows
            else self.each * max(self.rows - 1, 0) + (self.last if self.rows else 0)
        )

    def find(self, amount: int) -> int:
        """Return the row in which the cumulative size reaches ``amount``."""
        return min(amount // self.each, self.rows - 1) if self.each else self.rows - 1

    def array(self) -> np.ndarray:
        sizes = np.full(self.rows, self.each, np.int64)
        if self.rows:
            sizes[-1] = self.last
        return sizes


@dataclass(frozen=True, slots=True, eq=False)
class Varied:
    """Rows of any size. ``starts`` has one entry more than there are rows."""

    starts: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    def before(self, row: int) -> int:
        return int(self.starts[row])

    def find(self, amount: int) -> int:
        return min(int(np.searchsorted(self.starts, amount, side="right")) - 1, self.rows - 1)

    def array(self) -> np.ndarray:
        return np.diff(self.starts)


def _size_of_each(rows: Uniform | Varied) -> int | None:
    """Return the size of all rows; None if they may differ."""
    return (
        rows.each
        if isinstance(rows, Uniform) and (rows.last == rows.each or not rows.rows)
        else None
    )


class ExecutionIndex:
    """Index from the executions of each region to the rows of its graphs, at one moment of a
    run.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.plan = machine.plan
        self.open: dict[ProgramIndex, Frame] = {
            frame.program.index: frame for frame in machine.frames
        }
        self._starts: dict[TableIndex, np.ndarray] = {}
        self._taken: dict[TableIndex, np.ndarray] = {}
        self._branch_rows: dict[TableIndex, tuple[np.ndarray, np.ndarray]] = {}
        self._asked: Counter[int] = Counter()
        self.rows: list[int] = [0] * len(self.plan.programs)
        """Number of rows that began, by program number."""
        self.rows[0] = 1
        for program, instruction in self.plan.regions:
            match instruction.region:
                case LoopRegion() as region:
                    body = region.program
                    started = self.loop_starts(region)[-1]
                    self.rows[body.index] = int(started) + (
                        self.open[body.index].iteration + 1 if body.index in self.open else 0
                    )
                case IfRegion() as region:
                    taken = self.taken(region)
                    self.rows[region.then.program.index] = int(np.count_nonzero(taken))
                    self.rows[region.otherwise.program.index] = (
                        len(taken) - self.rows[region.then.program.index]
                    )
                case _ as region:
                    assert region is not None
                    inner = region.programs[0].index
                    self.rows[inner] = max(
                        0, self.calls(program, instruction_number(program, region.table))
                    )

    def calls(self, program: Program, number: int) -> int:
        """Return how often a region of a program began: once in each row, except in an open row
        before the region.
        """
        rows = self.rows[program.index]
        frame = self.open.get(program.index)
        if frame is None or rows == 0:
            return rows
        has_begun = frame.position > number or (
            frame.position == number and frame is not self.machine.frames[-1]
        )
        return rows if has_begun else rows - 1

    def loop_starts(self, region: LoopRegion) -> np.ndarray:
        """Return the first row of each ended execution, and of the execution after them."""
        if region.table not in self._starts:
            table = self.machine.recording.tables[region.table]
            assert isinstance(table, LoopTable)
            self._starts[region.table] = np.concatenate(
                [[0], np.cumsum(np.array(table.counts, np.int64))]
            ).astype(np.int64)
        return self._starts[region.table]

    def taken(self, region: IfRegion) -> np.ndarray:
        """Return the branch of each execution of an If: 1 then, 0 else."""
        if region.table not in self._taken:
            table = self.machine.recording.tables[region.table]
            assert isinstance(table, BranchLog)
            self._taken[region.table] = np.frombuffer(bytes(table.branches), np.uint8)
        return self._taken[region.table]

    def branch(self, region: IfRegion, execution: int) -> tuple[Program, int]:
        """Return the branch program that ran at an execution of an If, and its row there."""
        branches = self.taken(region)
        self._asked[region.table] += 1
        if self._asked[region.table] > _LOOKUPS_BEFORE_INDEX:
            row = int(self.branch_rows(region)[1][execution])
        else:
            thens = int(np.count_nonzero(branches[:execution]))
            row = thens if branches[execution] else execution - thens
        return (region.then if branches[execution] else region.otherwise).program, row

    def branch_rows(self, region: IfRegion) -> tuple[np.ndarray, np.ndarray]:
        """Return the branch (1 then) and the row in that branch, for each execution of an If."""
        if region.table not in self._branch_rows:
            branches = self.taken(region)
            then = np.cumsum(branches, dtype=np.int64)
            rows = np.where(branches == 1, then - 1, np.arange(len(branches)) - then)
            self._branch_rows[region.table] = branches, rows
        return self._branch_rows[region.table]

    def rows_of(self, region: LoopRegion, execution: int) -> tuple[int, int]:
        """Return the first row of an execution of a loop, and the row after its last."""
        starts = self.loop_starts(region)
        first = int(starts[execution])
        end = (
            int(starts[execution + 1])
            if execution + 1 < len(starts)
            else self.rows[region.program.index]
        )
        return first, end

    def parent_row(self, program: Program, row: int) -> tuple[int, int | None]:
        """Return the row of the parent in which a row ran, and the iteration (None in a branch)."""
        assert program.parent is not None
        match program.region:
            case LoopRegion() as region:
                starts = self.loop_starts(region)
                execution = int(np.searchsorted(starts, row, side="right")) - 1
                return execution, row - int(starts[execution])
            case IfRegion() as region:
                branch_number = 1 if program is region.then.program else 0
                return int(np.flatnonzero(self.taken(region) == branch_number)[row]), None
            case _:
                return row, None

    def row(self, program: Program, iterations: Sequence[int | None]) -> int | None:
        """Return the row of a program in given iterations of all enclosing loops; None if it has
        not run there.
        """
        remaining = iter(iterations)
        row = 0
        for inner in reversed([graph for graph in program.around() if graph.parent is not None]):
            assert inner.parent is not None
            if row >= self.calls(inner.parent, inner.owner):
                return None
            region = inner.region
            if isinstance(region, LoopRegion):
                first, end = self.rows_of(region, row)
                row = first + (next(remaining) or 0)
                if row >= end:
                    return None
            elif isinstance(region, IfRegion):
                branches, rows = self.branch_rows(region)
                if (
                    region.then.program if branches[row] else region.otherwise.program
                ) is not inner:
                    return None
                row = int(rows[row])
        return row


def instruction_number(program: Program, table: TableIndex) -> int:
    """Return the number of the instruction of a program whose region has that table."""
    for number in program.regions:
        region = program.instructions[number].region
        if region is not None and region.table == table:
            return number
    raise AssertionError(table)


class Sizes:
    """Size of every row of every program under some weights, at one moment of a run."""

    def __init__(self, executions: ExecutionIndex, weights: Weights) -> None:
        self.executions = executions
        self.weights = weights
        self.by_program: dict[ProgramIndex, Uniform | Varied] = {}
        for program in reversed(executions.plan.programs):
            self.by_program[program.index] = self._sizes(program)

    @property
    def total(self) -> int:
        return self.by_program[self.executions.plan.main.index].before(1)

    def _sizes(self, program: Program) -> Uniform | Varied:
        executions, weights = self.executions, self.weights
        rows = executions.rows[program.index]
        frame = executions.open.get(program.index)
        end = weights.end if program.parent is not None else 0
        row_size = weights.instruction * len(program.instructions) + end
        last_size = row_size
        if frame is not None:
            begun = frame.position + (frame is not executions.machine.frames[-1])
            last_size = weights.instruction * begun
        if not program.regions:
            return Uniform(rows, row_size, last_size)
        same = [self._always(program, number) for number in program.regions]
        if frame is None and None not in same:
            row_size += sum(weights.region + amount for amount in same if amount is not None)
            return Uniform(rows, row_size, row_size)
        sizes = Uniform(rows, row_size, last_size).array()
        for number in program.regions:
            calls = executions.calls(program, number)
            sizes[:calls] += weights.region + self._inside(program, number, calls)
        return Varied(np.concatenate([[0], np.cumsum(sizes)]))

    def _always(self, program: Program, number: int) -> int | None:
        """Return the size of everything inside a region if it is the same in every execution, else
        None.
        """
        region = program.instructions[number].region
        if not isinstance(region, IfRegion):
            return None
        sizes = {_size_of_each(self.by_program[body.index]) for body in region.programs}
        return sizes.pop() if len(sizes) == 1 else None

    def _inside(self, program: Program, number: int, calls: int) -> np.ndarray:
        """Return the size of everything inside a region, for each of its executions."""
        match program.instructions[number].region:
            case LoopRegion() as region:
                body = self.by_program[region.program.index]
                starts = self.executions.loop_starts(region)
                edges = np.append(starts, self.executions.rows[region.program.index])[: calls + 1]
                if isinstance(body, Varied):
                    return np.diff(body.starts[edges])
                reached = np.minimum(edges, max(body.rows - 1, 0)) * body.each + np.where(
                    edges >= body.rows, body.last if body.rows else 0, 0
                )
                return np.diff(reached)
            case IfRegion() as region:
                bodies = [
                    self.by_program[branch.program.index]
                    for branch in (region.otherwise, region.then)
                ]
                body_sizes = [_size_of_each(body) for body in bodies]
                if None not in body_sizes:
                    return np.take(
                        np.array(body_sizes, np.int64), self.executions.taken(region)[:calls]
                    )
                branches, rows = self.executions.branch_rows(region)
                otherwise, then = (body.array() for body in bodies)
                sizes = np.zeros(len(branches), np.int64)
                sizes[branches == 1] = then[rows[branches == 1]]
                sizes[branches == 0] = otherwise[rows[branches == 0]]
                return sizes[:calls]
            case _ as region:
                assert region is not None
                return self.by_program[region.programs[0].index].array()[:calls]

    def inside(self, program: Program, number: int, row: int) -> int:
        """Return the size of everything inside a region in one row of its program."""
        match program.instructions[number].region:
            case LoopRegion() as region:
                first, end = self.executions.rows_of(region, row)
                sizes = self.by_program[region.program.index]
                return sizes.before(end) - sizes.before(first)
            case IfRegion() as region:
                inner, inner_row = self.executions.branch(region, row)
                sizes = self.by_program[inner.index]
                return sizes.before(inner_row + 1) - sizes.before(inner_row)
            case _ as region:
                assert region is not None
                sizes = self.by_program[region.programs[0].index]
                return sizes.before(row + 1) - sizes.before(row)
