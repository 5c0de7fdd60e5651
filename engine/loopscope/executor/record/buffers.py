"""Buffers of a recording: columns of values, and the branch of each execution of an If.

Values are appended one by one, packed into chunks, and thinned when they exceed the budget.
Generated code logs only the rarer branch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.executor.plan.slots import Slot

SMALL = 512
"""Maximum bytes of arrays that are packed together; larger arrays are stored by reference."""
_MIN_PACKED_ROWS = 1024
"""Number of pending rows of numbers below which packing is not worthwhile."""


@dataclass(eq=False)
class SlotColumn:
    """Values of one slot, one for each stored row, packed in chunks."""

    pending: list[Any] = field(default_factory=list[Any])
    chunks: list[Any] = field(default_factory=list[Any])
    starts: list[int] = field(default_factory=list[int])
    packed: int = 0
    """Number of stored values in the chunks."""
    bytes: int = 0
    scalar: np.dtype | None = None
    """Type of all pending values if they are proved to be numbers of one type, else None."""

    def take(self, count: int, first: int, stride: int) -> Any:
        """Return the first ``count`` pending values as a chunk, one value per ``stride`` rows.

        ``first`` is the row of the first pending value.
        """
        later = self.pending[count:]
        del self.pending[count:]
        chunk = _packed(
            self.pending[-first % stride :: stride] if stride > 1 else self.pending, self.scalar
        )
        if chunk is self.pending:
            chunk = list(chunk)
        self.pending[:] = later
        return chunk

    def add(self, chunk: Any) -> None:
        """Append a chunk."""
        if len(chunk):
            self.starts.append(self.packed)
            self.chunks.append(chunk)
            self.packed += len(chunk)
            self.bytes += _bytes(chunk)

    def thin(self) -> None:
        """Drop every second stored value."""
        values = [_detached(self[number]) for number in range(0, self.packed, 2)]
        self.chunks, self.starts, self.packed, self.bytes = [], [], 0, 0
        for begin in range(0, len(values), 1024):
            self.add(_packed(values[begin : begin + 1024], None))

    def __getitem__(self, number: int) -> Any:
        """Return a packed value by its number among the stored values."""
        chunk = bisect_right(self.starts, number) - 1
        return self.chunks[chunk][number - self.starts[chunk]]


def _detached(value: Any) -> Any:
    """Return a copy of a view, so that the value does not retain the memory of other values."""
    return (
        value.copy()
        if isinstance(value, np.ndarray) and value.base is not None and value.nbytes > SMALL
        else value
    )


def _packed(values: list[Any], scalar: np.dtype | None) -> Any:
    if not values:
        return values
    first = values[0]
    kind = type(first)
    if isinstance(first, np.generic):
        if scalar is not None or list(map(type, values)).count(kind) == len(values):
            if first.dtype.kind == "f":
                return np.fromiter(values, first.dtype, len(values))
            try:
                return np.frombuffer(b"".join(values), first.dtype)
            except TypeError:
                return np.array(values, first.dtype)
    elif kind is np.ndarray and first.ndim and 0 < first.nbytes <= SMALL and first.dtype != object:
        stacked = _stacked(values, first)
        return values if stacked is None else stacked
    return values


def _stacked(values: list[Any], first: np.ndarray) -> np.ndarray | None:
    """Return arrays of one shape and type as one array; None if they differ. Concatenating checks
    all lengths but the first.
    """
    if list(map(type, values)).count(np.ndarray) < len(values):
        return None
    try:
        if list(map(len, values)).count(len(first)) < len(values):
            return None
        return np.concatenate(values, dtype=first.dtype, casting="no").reshape(
            len(values), *first.shape
        )
    except (TypeError, ValueError):
        return None


def _bytes(chunk: Any) -> int:
    if isinstance(chunk, np.ndarray):
        return chunk.nbytes
    return sum(64 + getattr(value, "nbytes", 64) for value in chunk)


@dataclass(eq=False)
class RecordedRows:
    """Recorded values of a program's rows."""

    columns: Mapping[Slot, SlotColumn]
    """Columns by slot."""
    stride: int = 1
    """Number of rows per stored row."""
    packed_rows: int = 0
    forget: bool = False
    """True if columns are only examined when packed, not stored."""
    is_judged: bool = False
    """True if slots that are cheap to recompute have been left out."""

    @staticmethod
    def of(slots: Iterable[Slot]) -> RecordedRows:
        """Return empty rows with a column for each slot."""
        return RecordedRows({slot: SlotColumn() for slot in slots})

    @property
    def begun(self) -> int:
        """Number of rows so far, including pending ones."""
        return self.packed_rows + max(
            (len(column.pending) for column in self.columns.values()), default=0
        )

    @property
    def is_light(self) -> bool:
        """True if only a few numbers are pending."""
        return all(
            column.scalar is not None and len(column.pending) < _MIN_PACKED_ROWS
            for column in self.columns.values()
        )

    def pack(self, complete: int) -> None:
        """Pack the pending values of the first ``complete`` rows."""
        pending = min((len(column.pending) for column in self.columns.values()), default=0)
        rows = range(self.packed_rows, min(self.packed_rows + pending, complete))
        if not rows:
            return
        self.packed_rows = rows.stop
        for column in self.columns.values():
            column.add(column.take(len(rows), rows.start, self.stride))

    @property
    def bytes(self) -> int:
        return sum(column.bytes for column in self.columns.values())

    @property
    def packed(self) -> int:
        """Number of stored rows."""
        return max((column.packed for column in self.columns.values()), default=0)

    def thin(self) -> None:
        """Drop every second stored row."""
        for column in self.columns.values():
            column.thin()
        self.stride *= 2

    def whole(self, slot: Slot) -> np.ndarray | None:
        """Return all stored values of a slot as one array; None if their shapes or types differ."""
        column = self.columns[slot]
        pending = (
            [_packed(list(column.pending), None)] if self.stride == 1 and column.pending else []
        )
        stacked = [
            _stacked(chunk, chunk[0]) if isinstance(chunk, list) else chunk
            for chunk in (*column.chunks, *pending)
        ]
        chunks = [chunk for chunk in stacked if isinstance(chunk, np.ndarray)]
        if not chunks or len(chunks) < len(stacked):
            return None
        first = chunks[0]
        if any(
            chunk.dtype != first.dtype or chunk.shape[1:] != first.shape[1:] for chunk in chunks
        ):
            return None
        return np.concatenate(chunks) if len(chunks) > 1 else first

    def has_kept(self, row: int, slot: Slot) -> bool:
        """Return True if the value of a slot in a row is stored. The value may be None: a variable
        before its first Assign.
        """
        column = self.columns.get(slot)
        if column is None:
            return False
        if row < self.packed_rows:
            return row % self.stride == 0
        return row - self.packed_rows < len(column.pending)

    def kept(self, row: int, slot: Slot) -> Any | None:
        """Return the recorded value of a slot in a row; None if it is not stored."""
        column = self.columns.get(slot)
        if column is None:
            return None
        if row < self.packed_rows:
            return column[row // self.stride] if row % self.stride == 0 else None
        pending = row - self.packed_rows
        return column.pending[pending] if pending < len(column.pending) else None


_MAX_UNPACKED = 1 << 14
_RECENT_EXECUTIONS = 1024


@dataclass(eq=False)
class BranchLog:
    """Branch of each execution of one If: 1 then, 0 else.

    Generated code appends the branch of each execution to ``pending``. An If that runs once in each
    iteration of a loop is logged in ``iterations``, with only the iterations of the rarer branch.
    """

    pending: list[int] = field(default_factory=list[int])
    """Newest branches, in a list because appending to a list is fastest."""
    iterations: list[int] = field(default_factory=list[int])
    """Newest iterations in which the ``logged`` branch ran. The negative iteration count ends each
    execution of the loop.
    """
    logged: int = 0
    _caught_up: int = 0
    """Number of packed iterations of the loop execution that the first of ``iterations`` belongs
    to.
    """
    _packed: bytearray = field(default_factory=bytearray)

    @staticmethod
    def of(branches: bytes) -> BranchLog:
        """Return the log of packed executions, one byte for each."""
        log = BranchLog()
        log._packed += branches
        return log

    @property
    def branches(self) -> bytearray:
        """One byte for each execution, without those of a loop that generated code is running."""
        self.pack()
        return self._packed

    @property
    def rarer(self) -> int:
        """The branch that was taken less often in recent executions."""
        latest = self.branches[-_RECENT_EXECUTIONS:]
        return int(2 * sum(latest) < len(latest))

    def pack(self) -> None:
        """Pack the newest entries into bytes, an eighth of their size."""
        self._packed += bytearray(self.pending)
        self.pending.clear()
        complete = len(self.iterations)
        while complete and self.iterations[complete - 1] >= 0:
            complete -= 1
        if complete:
            self._packed += self._unfolded(np.array(self.iterations[:complete], np.int64))
            del self.iterations[:complete]
            self._caught_up = 0

    def begin(self, branch: int, iteration: int) -> None:
        """Begin logging one branch in generated code, at an iteration of the loop."""
        self.pack()
        self.logged, self._caught_up = branch, iteration

    def end(self, count: int) -> None:
        """End an execution of the loop after ``count`` iterations."""
        self.iterations.append(-count)

    def catch_up(self, executions: int) -> None:
        """Set the number of executions of the If in the current execution of the loop."""
        self.pack()
        if executions > self._caught_up:
            self.end(executions)
            self.pack()
        self._caught_up = executions

    @property
    def is_long(self) -> bool:
        """True if enough entries are pending to pack them."""
        return len(self.pending) + len(self.iterations) > _MAX_UNPACKED

    def _unfolded(self, iterations: np.ndarray) -> bytes:
        """Return a byte for each execution that ``iterations`` encodes. Its last entry is a
        negative count.
        """
        is_count = iterations < 0
        starts = np.concatenate([[0], np.cumsum(-iterations[is_count])]) - self._caught_up
        branches = np.full(int(starts[-1]), 1 - self.logged, np.uint8)
        executions = np.cumsum(is_count)[~is_count]
        branches[starts[executions] + iterations[~is_count]] = self.logged
        return branches.tobytes()
