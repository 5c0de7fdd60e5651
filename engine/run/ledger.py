"""What a run writes down: how often each loop ran and why it ended, which branch each If took, and columns of values.

Neutral buffers: the machine and the generated code append to them, the trace reads them. A *row* of a program is one
execution of its graph; rows are numbered in the order in which they ran. Execution k of a region belongs to row k of the
program that holds it, since every row runs each of its regions once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.ir.model import LOOP
from engine.run.derived import SMALL, Derived, derived
from engine.run.plan import IfRegion, LoopRegion, Plan, Program, Region

ENDINGS = ("trip_count", "condition", "zero_trip_count", "initial_condition", "slices_exhausted", "limit", "error", "stopped")


@dataclass(eq=False)
class Column:
    """The values of one slot, one for each kept row; packed chunk by chunk."""

    pending: list[Any] = field(default_factory=list[Any])
    chunks: list[Any] = field(default_factory=list[Any])
    starts: list[int] = field(default_factory=list[int])
    packed: int = 0
    """Kept values in the chunks."""
    bytes: int = 0

    def pack(self, first: int, stride: int) -> None:
        """Moves pending values into a chunk, keeping every ``stride``-th row; ``first`` is the row of the first pending value."""
        kept = self.pending[-first % stride :: stride] if stride > 1 else list(self.pending)
        self.pending.clear()
        if kept:
            self.add(_packed(kept), len(kept))

    def add(self, chunk: Any, count: int) -> None:
        """A chunk of so many values after the others."""
        self.starts.append(self.packed)
        self.chunks.append(chunk)
        self.packed += count
        self.bytes += _bytes(chunk)

    def thin(self) -> None:
        """Drops every other kept value."""
        kept = [self[number] for number in range(0, self.packed, 2)]
        self.chunks, self.starts, self.packed, self.bytes = [], [], 0, 0
        for begin in range(0, len(kept), 1024):
            chunk = _packed(kept[begin : begin + 1024])
            self.starts.append(begin)
            self.chunks.append(chunk)
            self.bytes += _bytes(chunk)
        self.packed = len(kept)

    def __getitem__(self, number: int) -> Any:
        """Kept value by number (packed ones only)."""
        chunk = bisect_right(self.starts, number) - 1
        return self.chunks[chunk][number - self.starts[chunk]]

    def whole(self) -> np.ndarray | None:
        """All kept values as one array, when they have one shape and type."""
        if not self.chunks or not all(isinstance(chunk, np.ndarray) for chunk in self.chunks):
            return None
        first = self.chunks[0]
        if any(chunk.dtype != first.dtype or chunk.shape[1:] != first.shape[1:] for chunk in self.chunks):
            return None
        return np.concatenate(self.chunks) if len(self.chunks) > 1 else first


def _packed(values: list[Any]) -> Any:
    first = values[0]
    kind = type(first)
    if isinstance(first, np.generic):
        if list(map(type, values)).count(kind) == len(values):
            try:
                return np.frombuffer(b"".join(values), first.dtype)
            except TypeError:
                return np.array(values, first.dtype)
    elif kind is np.ndarray and first.ndim and 0 < first.nbytes <= SMALL and first.dtype != object:
        stacked = _stacked(values, first)
        return values if stacked is None else stacked
    return values


def _stacked(values: list[Any], first: np.ndarray) -> np.ndarray | None:
    """Arrays of one shape and type as one; None when they differ. Concatenating looks at all but the first lengths."""
    if list(map(type, values)).count(np.ndarray) < len(values):
        return None
    try:
        if list(map(len, values)).count(len(first)) < len(values):
            return None
        return np.concatenate(values, dtype=first.dtype, casting="no").reshape(len(values), *first.shape)
    except (TypeError, ValueError):
        return None


def _bytes(chunk: Any) -> int:
    if isinstance(chunk, np.ndarray):
        return chunk.nbytes
    return sum(64 + getattr(value, "nbytes", 64) for value in chunk)


@dataclass(eq=False)
class Rows:
    """The recorded values of a program's rows."""

    columns: Mapping[int, Column]
    """By slot."""
    stride: int = 1
    """Every so many rows one is kept."""
    packed_rows: int = 0
    forget: bool = False
    """Columns are only looked at when packed, never kept."""
    derived: Derived | None = None
    """What is computed from the other columns when they are packed, and not recorded."""

    @property
    def recorded(self) -> dict[int, Column]:
        """The columns that values are appended to."""
        skipped = self.derived.slots if self.derived else frozenset()
        return {slot: column for slot, column in self.columns.items() if slot not in skipped}

    def pack(self) -> None:
        """Packs what is pending in whole rows."""
        recorded = self.recorded
        pending = min((len(column.pending) for column in recorded.values()), default=0)
        if not pending:
            return
        for column in recorded.values():
            extra = column.pending[pending:]
            del column.pending[pending:]
            column.pack(self.packed_rows, self.stride)
            column.pending.extend(extra)
        first = self.packed_rows + -self.packed_rows % self.stride
        self.packed_rows += pending
        if self.derived and first < self.packed_rows:
            self._derive(self.derived, range(first, self.packed_rows, self.stride))

    def _derive(self, derived: Derived, rows: range) -> None:
        chunks = {slot: column.chunks[-1] for slot, column in self.recorded.items()}
        whole = {slot: chunk for slot, chunk in chunks.items() if isinstance(chunk, np.ndarray)}
        if derived.needed <= whole.keys():
            for slot, values in derived.columns(whole, rows).items():
                self.columns[slot].add(np.ascontiguousarray(values), len(rows))
            return
        single = [derived.values({slot: chunk[at] for slot, chunk in chunks.items()}, row) for at, row in enumerate(rows)]
        for slot in derived.slots:
            self.columns[slot].add(_packed([one[slot] for one in single]), len(rows))

    @property
    def bytes(self) -> int:
        return sum(column.bytes for column in self.columns.values())

    def thin(self) -> None:
        for column in self.columns.values():
            column.thin()
        self.stride *= 2

    def kept(self, row: int, slot: int) -> Any | None:
        """The recorded value of a slot at a row; None when that row or slot was not kept."""
        column = self.columns.get(slot)
        if column is None:
            return None
        if row >= self.packed_rows:
            pending = row - self.packed_rows
            return column.pending[pending] if pending < len(column.pending) else None
        return column[row // self.stride] if row % self.stride == 0 else None


@dataclass(eq=False)
class LoopTable:
    """Each execution of one loop that ended: how many iterations, and the number of its ending in ``ENDINGS``."""

    counts: list[int] = field(default_factory=list[int])
    endings: list[int] = field(default_factory=list[int])


@dataclass(eq=False)
class IfTable:
    """The branch of each execution of one If: 1 then, 0 else."""

    pending: list[int] = field(default_factory=list[int])
    """The newest; appending to a list is the fastest there is."""
    _packed: bytearray = field(default_factory=bytearray)

    @property
    def branches(self) -> bytearray:
        """One byte for each execution."""
        self.pack()
        return self._packed

    def pack(self) -> None:
        """Turns the newest into bytes, which take an eighth of the room."""
        self._packed.extend(self.pending)
        self.pending.clear()


@dataclass(frozen=True, slots=True)
class Record:
    """What a run records: for each loop its carried state, or the value of every operation; within a budget of bytes."""

    everything: bool = False
    state: bool = True
    budget_bytes: int = 256 * 2**20


NOTHING = Record(state=False)


@dataclass(eq=False)
class Ledger:
    """All that one run writes down."""

    plan: Plan
    record: Record
    tables: list[LoopTable | IfTable] = field(default_factory=list[LoopTable | IfTable])
    rows: dict[int, Rows] = field(default_factory=dict[int, Rows])
    """By program number; programs of which nothing is recorded have none."""
    _counted: list[int] = field(default_factory=list[int])
    _iterations: int = 0

    def __post_init__(self) -> None:
        for _, instruction in self.plan.regions:
            self.tables.append(IfTable() if isinstance(instruction.region, IfRegion) else LoopTable())
        self._counted = [0] * len(self.tables)
        for program in self.plan.programs:
            slots = recorded_slots(program, self.record)
            if slots:
                self.rows[program.index] = Rows({slot: Column() for slot in slots})

    def iterations(self) -> int:
        """Iterations of all loop executions that have ended; counts only what is new since it was last asked."""
        for number, table in enumerate(self.tables):
            if isinstance(table, LoopTable) and len(table.counts) > self._counted[number]:
                self._iterations += sum(table.counts[self._counted[number] :])
                self._counted[number] = len(table.counts)
        return self._iterations

    def derive(self, region: LoopRegion, values: list[Any]) -> None:
        """From now on, what follows elementwise from recorded values of a loop nest is computed in whole columns instead of recorded."""
        waiting: list[Region] = [region]
        while waiting:
            one = waiting.pop()
            for program in one.programs:
                waiting.extend(inner for number in program.regions if (inner := program.instructions[number].region))
            rows = self.rows.get(one.programs[0].index)
            if isinstance(one, LoopRegion) and rows is not None and rows.derived is None:
                rows.pack()
                rows.derived = derived(one, values, frozenset(rows.columns))

    def watch(self, region: LoopRegion) -> None:
        """Looks at the carried state of a loop from now on, without keeping it."""
        columns = {carried.parameter: Column() for carried in region.carried}
        self.rows.setdefault(region.program.index, Rows(columns, forget=True))

    def pack(self) -> None:
        """Packs all columns, and keeps fewer rows of the largest when the budget is exceeded."""
        for rows in self.rows.values():
            rows.pack()
        for table in self.tables:
            if isinstance(table, IfTable):
                table.pack()
        while self.bytes > self.record.budget_bytes:
            largest = max(self.rows.values(), key=lambda rows: rows.bytes)
            if max((column.packed for column in largest.columns.values()), default=0) < 2:
                break
            largest.thin()

    @property
    def bytes(self) -> int:
        return sum(rows.bytes for rows in self.rows.values())


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
        and not region.counters
        and not region.program.hidden
        and region.condition_result is not None
        and bool(region.carried)
    )
