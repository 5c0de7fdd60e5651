"""Recording of a run: counts and endings of loops, branches of Ifs, and columns of values.

The machine and the generated code append to these neutral buffers, and the timeline reads them. A
*row* of a program is one execution of its graph; rows are numbered in execution order. Every row
runs each of its regions once, so execution k of a region belongs to row k of the enclosing program.
Endings of loops and runs have the words of records, errors and exports.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from loopscope.errors import InputError
from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot, TableIndex
from loopscope.executor.record.buffers import BranchLog, RecordedRows, SlotColumn
from loopscope.ir.model import LOOP

LoopEnding = Literal[
    "trip_count", "condition", "zero_trip_count", "initial_condition", "slices_exhausted"
]
"""Reason why an execution of a loop ended."""
StopCause = Literal["limit", "error", "stopped"]
"""Reason why a run did not finish: a limit was reached, an operation failed, or the user stopped
it.
"""
Ending = LoopEnding | StopCause

ENDINGS: tuple[LoopEnding, ...] = get_args(LoopEnding)
"""Loop endings, by their number in a recording."""


@dataclass(eq=False)
class LoopTable:
    """Iteration count of each ended execution of one loop, and the number of its ending in
    ``ENDINGS``.
    """

    counts: list[int] = field(default_factory=list[int])
    endings: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Record:
    """Contents of a recording within a budget of bytes: the carried state of each loop, or
    ``everything``.

    ``everything`` includes the value of every operation, except values that are cheap to recompute.
    ``recompute=False`` includes those too, for a file without weights.
    """

    everything: bool = False
    state: bool = True
    budget_bytes: int = 256 * 2**20
    recompute: bool = True

    def __post_init__(self) -> None:
        if not self.budget_bytes >= 0:
            raise InputError(
                f"record budget: expected a number of bytes of at least 0, got {self.budget_bytes}"
            )


NOTHING = Record(state=False)


@dataclass(eq=False)
class Recording:
    """The recorded data of one run."""

    plan: Plan
    record: Record
    tables: list[LoopTable | BranchLog] = field(default_factory=list[LoopTable | BranchLog])
    rows: dict[ProgramIndex, RecordedRows] = field(default_factory=dict[ProgramIndex, RecordedRows])
    """Recorded rows by program number; programs without recorded slots are missing."""
    bytes: int = 0
    """Bytes of the columns, updated when they are packed."""
    _counted: list[int] = field(default_factory=list[int])
    _ended: list[int] = field(default_factory=list[int])
    """Number of iterations of the ended executions of each loop, by table number."""
    _loops: dict[ProgramIndex, TableIndex] = field(default_factory=dict[ProgramIndex, TableIndex])
    """Table of the loop of each body, by program number."""

    def __post_init__(self) -> None:
        for _, instruction in self.plan.regions:
            self.tables.append(
                BranchLog() if isinstance(instruction.region, IfRegion) else LoopTable()
            )
            if isinstance(instruction.region, LoopRegion):
                self._loops[instruction.region.program.index] = instruction.region.table
        self._counted = [0] * len(self.tables)
        self._ended = [0] * len(self.tables)
        for program in self.plan.programs if self.record.state or self.record.everything else ():
            slots = recorded_slots(program, self.record)
            if slots:
                self.rows[program.index] = RecordedRows.of(slots)

    def iterations(self) -> int:
        """Return the iterations of all ended loop executions. Each call counts only the new
        ones.
        """
        for number, table in enumerate(self.tables):
            if isinstance(table, LoopTable) and len(table.counts) > self._counted[number]:
                self._ended[number] += sum(table.counts[self._counted[number] :])
                self._counted[number] = len(table.counts)
        return sum(self._ended)

    def leave_out(self, region: LoopRegion, values: list[Any], scalars: Container[Slot]) -> None:
        """Stop recording the values of a loop nest that are cheap to recompute.

        ``values`` are the slot values of the first iterations.
        """
        waiting: list[Program] = [region.program] if self.record.recompute else []
        while waiting:
            program = waiting.pop()
            waiting += (
                inner
                for number in program.regions
                if (region_inside := program.instructions[number].region)
                for inner in region_inside.programs
            )
            rows = self.rows.get(program.index)
            if rows is None or rows.forget or rows.is_judged:
                continue
            rows.is_judged = True
            cheap = cheap_slots(program, values, scalars)
            rows.columns = {
                slot: column for slot, column in rows.columns.items() if slot not in cheap
            }
            if not rows.columns:
                del self.rows[program.index]

    def branch_log(self, table: TableIndex) -> BranchLog:
        """Return the branch log of an If."""
        log = self.tables[table]
        assert isinstance(log, BranchLog)
        return log

    def prove(self, scalars: Iterable[tuple[ProgramIndex, Slot, np.dtype]], *, holds: bool) -> None:
        """Set or clear the proof that the values appended to columns (program number and slot) are
        numbers of one type.
        """
        for index, slot, dtype in scalars:
            column = self.rows[index].columns[slot]
            column.scalar = (
                dtype
                if holds and all(type(value) is dtype.type for value in column.pending)
                else None
            )

    def watch(self, region: LoopRegion) -> None:
        """Examine the carried state of a loop from now on, without storing it."""
        columns = {carried.parameter: SlotColumn() for carried in region.carried}
        self.rows.setdefault(region.program.index, RecordedRows(columns, forget=True))

    def pack(self, *, all_of_it: bool = True) -> None:
        """Pack all columns except the unfinished newest row of open loops, and thin the largest if
        the budget is exceeded.

        ``all_of_it=False`` packs only columns with enough pending rows.
        """
        self.iterations()
        for index, rows in self.rows.items():
            if not all_of_it and rows.is_light:
                continue
            begun, loop = rows.begun, self._loops.get(index)
            rows.pack(begun if loop is None or begun == self._ended[loop] else begun - 1)
        for table in self.tables:
            if isinstance(table, BranchLog) and table.is_long:
                table.pack()
        self.bytes = sum(rows.bytes for rows in self.rows.values())
        while self.bytes > self.record.budget_bytes:
            largest = max(self.rows.values(), key=lambda rows: rows.bytes)
            if largest.packed < 2:
                break
            self.bytes -= largest.bytes
            largest.thin()
            self.bytes += largest.bytes


def recorded_slots(program: Program, record: Record) -> tuple[Slot, ...]:
    """Return the slots of a program that a record has a column for."""
    if program.parent is None:
        return ()
    slots: list[Slot] = []
    region = program.region
    if isinstance(region, LoopRegion) and (record.state or record.everything):
        slots += [carried.parameter for carried in region.carried]
    if record.state or record.everything:
        slots += program.hidden
    if record.everything:
        slots += [slot for instruction in program.instructions for slot in instruction.outputs]
    return tuple(dict.fromkeys(slots))


def can_prove_endless(region: LoopRegion) -> bool:
    """Return True if only the carried state feeds the next iteration, so that an equal state proves
    an endless loop.
    """
    return (
        region.kind == LOOP
        and not region.sliced
        and not any(region.program.takes(counter.parameter) for counter in region.counters)
        and not region.program.hidden
        and region.condition_result is not None
        and bool(region.carried)
    )


_CHEAP_BYTES = 1 << 14
"""Maximum bytes of an elementwise result that is recomputed; a user does not notice a thousand of
them.
"""


def cheap_slots(program: Program, values: list[Any], scalars: Container[Slot]) -> set[Slot]:
    """Return the slots of a graph that are cheaper to recompute than to record.

    ``values`` are the slot values of one row, ``scalars`` the slots that hold numbers. A wrong
    guess only costs time: the same kernels recompute the value from the same inputs. A graph with
    random states or variables is recorded, because recomputing would repeat all preceding
    operations.
    """
    if program.hidden:
        return set()
    return {
        slot
        for instruction in program.instructions
        if _is_cheap(instruction, values, scalars)
        for slot in instruction.outputs
    }


def _is_cheap(instruction: Instruction, values: list[Any], scalars: Container[Slot]) -> bool:
    if isinstance(instruction.region, IfRegion):
        return all(
            _is_cheap(inner, values, scalars)
            for program in instruction.region.programs
            for inner in program.instructions
        )
    return (
        instruction.region is None
        and bool(expression(instruction, values))
        and _is_small(instruction.outputs[0], values, scalars)
    )


def _is_small(slot: Slot, values: list[Any], scalars: Container[Slot]) -> bool:
    value = values[slot]
    return slot in scalars or (
        isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= _CHEAP_BYTES
    )
