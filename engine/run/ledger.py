"""What a run writes down: how often each loop ran and why it ended, which branch each If took, and columns of values.

Neutral buffers: the machine and the generated code append to them, the trace reads them. A *row* of a program is one
execution of its graph; rows are numbered in the order in which they ran. Execution k of a region belongs to row k of the
program that holds it, since every row runs each of its regions once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.errors import InputError
from engine.ir.model import LOOP
from engine.run.brief import Brief, is_brief
from engine.run.columns import Column, Rows
from engine.run.derived import derived, inputs_of, next_state
from engine.run.plan import IfRegion, LoopRegion, Plan, Program, Region
from engine.run.regions import fixed_bound
from engine.run.tapes import IfTable

ENDINGS = ("trip_count", "condition", "zero_trip_count", "initial_condition", "slices_exhausted", "limit", "error", "stopped")


@dataclass(eq=False)
class LoopTable:
    """Each execution of one loop that ended: how many iterations, and the number of its ending in ``ENDINGS``."""

    counts: list[int] = field(default_factory=list[int])
    endings: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Record:
    """What a run records: for each loop its carried state, or what that follows from; or the value of every operation; within a budget
    of bytes."""

    everything: bool = False
    state: bool = True
    budget_bytes: int = 256 * 2**20

    def __post_init__(self) -> None:
        if not self.budget_bytes >= 0:
            raise InputError(f"the budget of a recording is {self.budget_bytes} bytes: a number from 0 on is expected")


NOTHING = Record(state=False)
Scalars = Callable[[LoopRegion], Mapping[int, np.dtype]]
"""Of a nest of loops, the slots that hold numbers of one type in every row, if what enters it has the types that it has now."""


@dataclass(eq=False)
class Ledger:
    """All that one run writes down."""

    plan: Plan
    record: Record
    tables: list[LoopTable | IfTable] = field(default_factory=list[LoopTable | IfTable])
    rows: dict[int, Rows] = field(default_factory=dict[int, Rows])
    """By program number; programs of which nothing is recorded have none."""
    bytes: int = 0
    """What the columns take; they only grow when they are packed."""
    _counted: list[int] = field(default_factory=list[int])
    _ended: list[int] = field(default_factory=list[int])
    """By table number: iterations of the executions of a loop that have ended."""
    _not_brief: set[int] = field(default_factory=set[int])
    """Tables of loops of which it has turned out that what an execution begins with does not say all."""
    _loops: dict[int, int] = field(default_factory=dict[int, int])
    """Table of the loop of each body, by program number."""

    def __post_init__(self) -> None:
        for _, instruction in self.plan.regions:
            self.tables.append(IfTable() if isinstance(instruction.region, IfRegion) else LoopTable())
            if isinstance(instruction.region, LoopRegion):
                self._loops[instruction.region.program.index] = instruction.region.table
        self._counted = [0] * len(self.tables)
        self._ended = [0] * len(self.tables)
        for program in self.plan.programs:
            slots = recorded_slots(program, self.record)
            if slots:
                self.rows[program.index] = Rows.of(slots)

    def iterations(self) -> int:
        """Iterations of all loop executions that have ended; counts only what is new since it was last asked."""
        for number, table in enumerate(self.tables):
            if isinstance(table, LoopTable) and len(table.counts) > self._counted[number]:
                self._ended[number] += sum(table.counts[self._counted[number] :])
                self._counted[number] = len(table.counts)
        return sum(self._ended)

    def derive(self, region: LoopRegion, values: list[Any], scalars: Scalars, executions: int) -> None:
        """From now on, what follows elementwise from recorded values of a loop nest is computed in whole columns instead of recorded.

        ``executions`` are the iterations that the outermost loop of the nest may have.
        """
        waiting: list[Region] = [region]
        while waiting:
            one = waiting.pop()
            for program in one.programs:
                waiting.extend(inner for number in program.regions if (inner := program.instructions[number].region))
            rows = self.rows.get(one.programs[0].index)
            follows = one.programs[0].index not in self.plan.changed_nests
            if not isinstance(one, LoopRegion) or rows is None or not follows or rows.forget:
                continue
            if one is not region and rows.brief is None and self._may_be_brief(one, executions):
                rows.brief = self._brief(one, rows, values, scalars(one))
            if rows.brief is None and not rows.judged:
                self._derive(one, rows, values, scalars(region))

    def _may_be_brief(self, region: LoopRegion, executions: int) -> bool:
        if self.record.everything or region.table in self._not_brief or not region.carried or region.program.hidden:
            return False
        return is_brief(fixed_bound(self.plan, region) or 0, executions)

    def _brief(self, region: LoopRegion, rows: Rows, values: list[Any], scalars: Mapping[int, np.dtype]) -> Brief | None:
        """What is written down of a loop in another instead of its rows, none of which is under way; None where that is not enough."""
        bound, table = fixed_bound(self.plan, region), self.tables[region.table]
        step = next_state(region, values, scalars)
        if step is None or bound is None:
            self._not_brief.add(region.table)
            return None
        assert isinstance(table, LoopTable)
        used = {slot for one in step.steps for slot in inputs_of(one)} | {one.result for one in region.carried}
        needed = [one.parameter for one in region.carried] + [slot for slot, _ in region.invariants if slot in used]
        rows.pack(rows.begun)
        rows.recorded, rows.derived = {}, None
        return Brief(region, step, {slot: scalars[slot] for slot in needed}, table.counts, bound, rows.packed_rows)

    def _derive(self, region: LoopRegion, rows: Rows, values: list[Any], scalars: Mapping[int, np.dtype]) -> None:
        rows.judged = True
        inner = [region.program.instructions[number].region for number in region.program.regions]
        branches = [program.index for one in inner if isinstance(one, IfRegion) for program in one.programs]
        kept = {index: frozenset(self.rows[index].columns) for index in (region.program.index, *branches) if index in self.rows}
        found = derived(region, values, scalars, kept)
        if found is None:
            return
        within = [program.index for choice in found.choices for program in choice.region.programs]
        rows.inside = {index: self.rows[index] for index in within if index in self.rows}
        for one in (rows, *rows.inside.values()):
            one.pack(one.begun)
        rows.derived = found
        rows.recorded = {slot: column for slot, column in rows.columns.items() if slot not in found.slots}
        rows.tapes = {
            choice.region.table: table for choice in found.choices if isinstance(table := self.tables[choice.region.table], IfTable)
        }
        rows.inside = {index: self.rows[index] for index in within if index in self.rows}
        for one in rows.inside.values():
            one.recorded = {}

    def tape(self, table: int) -> IfTable:
        """What one If did."""
        found = self.tables[table]
        assert isinstance(found, IfTable)
        return found

    def follows(self, program: Program, table: int) -> bool:
        """Whether the branches of an If need not be written down: they follow from what is recorded of the graph that it lies in."""
        rows = self.rows.get(program.index)
        return rows is not None and table in rows.tapes

    def prove(self, scalars: Iterable[tuple[int, int, np.dtype]], *, holds: bool) -> None:
        """What is appended to columns (program number and slot) is, from now on or no longer, known to be numbers of a type."""
        for index, slot, dtype in scalars:
            column = self.rows[index].columns[slot]
            column.scalar = dtype if holds and all(type(value) is dtype.type for value in column.pending) else None

    def catch_up(self, begun: Mapping[int, int], values: list[Any]) -> None:
        """Generated code was left: the branches that it did not write down are found. ``begun`` has, of each open graph by program
        number, how many of its instructions have begun; ``values`` are those of all slots."""
        self.pack()
        for index, rows in self.rows.items():
            if rows.derived is None or rows.packed_rows == rows.begun:
                continue
            newest = {slot: column.pending[0] for slot, column in rows.recorded.items() if column.pending}
            taken = rows.derived.values(newest, rows.packed_rows)[1] if len(newest) == len(rows.recorded) else {}
            for choice in rows.derived.choices:
                table = choice.region.table
                if begun.get(index, 0) > choice.number and len(rows.tapes[table].branches) == rows.packed_rows:
                    rows.tapes[table].pending.append(taken.get(table, bool(values[choice.region.condition])))

    def watch(self, region: LoopRegion) -> None:
        """Looks at the carried state of a loop from now on, without keeping it."""
        columns = {carried.parameter: Column() for carried in region.carried}
        self.rows.setdefault(region.program.index, Rows(columns, forget=True))

    def pack(self, *, all_of_it: bool = True) -> None:
        """Packs all columns, but for the newest row of a loop that has not ended: it may be unfinished; or only (not ``all_of_it``)
        where that is worth while. Keeps fewer rows of the largest when the budget is exceeded."""
        self.iterations()
        for index, rows in self.rows.items():
            if not all_of_it and rows.is_light:
                continue
            begun, loop = rows.begun, self._loops.get(index)
            rows.pack(begun if loop is None or begun == self._ended[loop] else begun - 1)
        for table in self.tables:
            if isinstance(table, IfTable) and table.is_long:
                table.pack()
        self.bytes = sum(rows.bytes for rows in self.rows.values())
        while self.bytes > self.record.budget_bytes:
            largest = max(self.rows.values(), key=lambda rows: rows.bytes)
            if largest.packed < 2:
                break
            self.bytes -= largest.bytes
            largest.thin()
            self.bytes += largest.bytes


def recorded_slots(program: Program, record: Record) -> tuple[int, ...]:
    """The slots of a program that a record keeps a column for."""
    if program.parent is None:
        return ()
    slots: list[int] = []
    region = program.parent.instructions[program.owner].region
    if isinstance(region, LoopRegion) and (record.state or record.everything):
        slots += [carried.parameter for carried in region.carried]
    if record.state or record.everything:
        slots += program.hidden
    if record.everything:
        slots += [slot for instruction in program.instructions for slot in instruction.outputs]
    return tuple(dict.fromkeys(slots))


def can_prove_endless(region: LoopRegion) -> bool:
    """Whether nothing but the carried state feeds the next iteration, so that an equal state means a loop without end."""
    return (
        region.kind == LOOP
        and not region.sliced
        and not any(region.program.takes(counter.parameter) for counter in region.counters)
        and not region.program.hidden
        and region.condition_result is not None
        and bool(region.carried)
    )
