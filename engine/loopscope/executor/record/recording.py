"""What a run writes down: how often each loop ran and why it ended, which branch each If took, and
columns of values.

Neutral buffers: the machine and the generated code append to them, the trace reads them. A *row* of
a program is one execution of its graph; rows are numbered in the order in which they ran. Execution
k of a region belongs to row k of the program that holds it, since every row runs each of its
regions once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.errors import InputError
from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program
from loopscope.executor.record.branch_log import BranchLog
from loopscope.executor.record.columns import RecordedRows, SlotColumn
from loopscope.executor.record.recomputed import cheap_slots
from loopscope.ir.model import LOOP


@dataclass(eq=False)
class LoopTable:
    """Each execution of one loop that ended: how many iterations, and the number of its ending
    in ``ENDINGS``.
    """

    counts: list[int] = field(default_factory=list[int])
    endings: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Record:
    """What a run records, within a budget of bytes: the carried state of each loop, or
    ``everything``, which is the value of every operation but those that are cheap to compute again;
    with ``recompute=False`` those too, for a file without weights.
    """

    everything: bool = False
    state: bool = True
    budget_bytes: int = 256 * 2**20
    recompute: bool = True

    def __post_init__(self) -> None:
        if not self.budget_bytes >= 0:
            raise InputError(
                f"the budget of a recording is {self.budget_bytes} bytes: a number from 0 on is expected"
            )


NOTHING = Record(state=False)


@dataclass(eq=False)
class Recording:
    """What one run writes down."""

    plan: Plan
    record: Record
    tables: list[LoopTable | BranchLog] = field(default_factory=list[LoopTable | BranchLog])
    rows: dict[ProgramIndex, RecordedRows] = field(default_factory=dict[ProgramIndex, RecordedRows])
    """By program number; programs of which nothing is recorded have none."""
    bytes: int = 0
    """What the columns take; they only grow when they are packed."""
    _counted: list[int] = field(default_factory=list[int])
    _ended: list[int] = field(default_factory=list[int])
    """By table number: iterations of the executions of a loop that have ended."""
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
        """Iterations of all loop executions that have ended. Each call counts only those that
        are new.
        """
        for number, table in enumerate(self.tables):
            if isinstance(table, LoopTable) and len(table.counts) > self._counted[number]:
                self._ended[number] += sum(table.counts[self._counted[number] :])
                self._counted[number] = len(table.counts)
        return sum(self._ended)

    def leave_out(self, region: LoopRegion, values: list[Any], scalars: Container[Slot]) -> None:
        """From now on, what is cheap to compute again is not recorded in a nest of loops;
        ``values`` are those of its first iterations.
        """
        waiting: list[Program] = [region.program] if self.record.recompute else []
        while waiting:
            program = waiting.pop()
            waiting += (
                inner
                for number in program.regions
                if (one := program.instructions[number].region)
                for inner in one.programs
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
        """The branch log of an If."""
        found = self.tables[table]
        assert isinstance(found, BranchLog)
        return found

    def prove(self, scalars: Iterable[tuple[ProgramIndex, Slot, np.dtype]], *, holds: bool) -> None:
        """What is appended to columns (program number and slot) is, from now on or no longer,
        known to be numbers of a type.
        """
        for index, slot, dtype in scalars:
            column = self.rows[index].columns[slot]
            column.scalar = (
                dtype
                if holds and all(type(value) is dtype.type for value in column.pending)
                else None
            )

    def watch(self, region: LoopRegion) -> None:
        """Looks at the carried state of a loop from now on, without keeping it."""
        columns = {carried.parameter: SlotColumn() for carried in region.carried}
        self.rows.setdefault(region.program.index, RecordedRows(columns, forget=True))

    def pack(self, *, all_of_it: bool = True) -> None:
        """Packs all columns, but for the newest row of a loop that has not ended: it may be
        unfinished; or only (not ``all_of_it``) where that is worth while. Keeps fewer rows of the
        largest when the budget is exceeded.
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
    """The slots of a program that a record keeps a column for."""
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
    """Whether nothing but the carried state feeds the next iteration, so that an equal state
    means a loop without end.
    """
    return (
        region.kind == LOOP
        and not region.sliced
        and not any(region.program.takes(counter.parameter) for counter in region.counters)
        and not region.program.hidden
        and region.condition_result is not None
        and bool(region.carried)
    )
