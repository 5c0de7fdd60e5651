"""Iteration matrix: every value of a loop's body in every iteration, or in evenly chosen iterations
of long loops.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from loopscope.debug.lookup import region_number, value_names
from loopscope.debug.run import Run
from loopscope.errors import AddressError, EngineError, NotKept
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.history import History, evenly, is_finite, of_values
from loopscope.explain.verdict import execution
from loopscope.ir.address import decode
from loopscope.ir.recorded_rows import is_control
from loopscope.ops.values import NOT_KEPT, is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

Role = Literal["carried", "iteration", "slice", "condition", "branch", "value"]
MOST_COLUMNS, MOST_ROWS = 200, 40
_SECONDS = 0.6
"""Seconds after which no further value is computed; the remaining cells are shown as not
computed.
"""
_MAX_ELEMENTS = 1 << 18
"""Maximum elements of a tensor from which its mean is computed."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One value in one iteration."""

    number: float | None
    """Value of a single element, or mean of a tensor's finite elements; None if there is none."""
    value: Any
    """The value itself; the branch name in rows of Ifs."""
    odd: bool
    """True if the value contains a NaN or an infinity."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape; None for a sequence or a value that the run was saved without."""
        return np.shape(self.value) if is_tensor(self.value) else None


@dataclass(frozen=True, slots=True, eq=False)
class MatrixRow:
    """One value over the iterations."""

    label: str
    """Address of the value below the body."""
    name: str
    role: Role
    slot: Slot
    cells: tuple[MatrixCell | None, ...]
    """One cell per column; None if the value did not run or was not computed."""
    first_not_finite: int | None
    first_change: int | None
    fixed_from: int | None
    is_whole: bool
    """True if all iterations were checked; otherwise a NaN before ``first_not_finite`` is
    possible.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """All rows of one execution of a loop."""

    address: str
    """Address of the loop."""
    program: Program
    first_row: int
    total: int
    """Number of iterations that have begun."""
    iterations: tuple[int, ...]
    """Iteration of each column."""
    rows: tuple[MatrixRow, ...]
    left_out: int
    """Number of body values beyond ``MOST_ROWS``."""
    complete: bool
    """True if every cell was computed."""

    def column_of(self, iteration: int) -> int:
        """Return the column that contains an iteration."""
        return int(np.searchsorted(self.iterations, iteration, side="right")) - 1


def iteration_matrix(
    run: Run, address: str, most_columns: int = MOST_COLUMNS, most_rows: int = MOST_ROWS
) -> Matrix:
    """Return the matrix of the loop execution at an address; raise ``EngineError`` if there is
    none.
    """
    outer, execution_row, region, instruction = execution(run, address)
    program = region.program
    first, end = run.timeline.executions.rows_of(region, execution_row)
    total = end - first
    chosen = evenly(total, most_columns)
    varying = list(_varying_slots(region))
    filled = _Filler(run, program, first, end, chosen)
    values = {slot: filled.column(slot) for _, _, slot in varying[:most_rows]}
    filled.compute([slot for slot, column in values.items() if column is None])
    rows = [_row(filled, label, role, slot) for label, role, slot in varying[:most_rows]]
    rows += _branches(run, program, filled)
    place = f"{run.timeline.address(outer, execution_row)}/{instruction.label}"
    return Matrix(
        place,
        program,
        first,
        total,
        tuple(chosen),
        tuple(rows),
        max(0, len(varying) - most_rows),
        not filled.late,
    )


def step_of_cell(run: Run, matrix: Matrix, row: MatrixRow, iteration: int) -> int:
    """Return the step before which the value of a row in an iteration was computed.

    Raise ``AddressError`` for an iteration that did not begin.
    """
    if not 0 <= iteration < matrix.total:
        raise AddressError(
            f"{matrix.address} has {matrix.total:,} iterations: expected 0 to "
            f"{matrix.total - 1:,}, got {iteration}"
        )
    if row.role == "branch":
        position = region_number(matrix.program, row.label) or 0
    else:
        position = matrix.program.producer.get(row.slot, -1) + 1
    return run.timeline.step_at(matrix.program, matrix.first_row + iteration, position)


def _varying_slots(region: LoopRegion) -> Iterator[tuple[str, Role, Slot]]:
    """Yield label, role and slot of every value that may change between iterations, carried values
    first.
    """
    program = region.program
    names = value_names(program)
    for carried in region.carried:
        yield names[carried.parameter], "carried", carried.parameter
    for counter in region.counters:
        yield names[counter.parameter], "iteration", counter.parameter
    for sliced in region.sliced:
        yield names[sliced.parameter], "slice", sliced.parameter
    for instruction in program.instructions:
        if is_control(instruction.node):  # of a trace: only what the program recorded
            continue
        for slot in instruction.outputs:
            if slot in names:
                yield names[slot], "condition" if slot == region.condition_result else "value", slot


class _Filler:
    """Collects the values of the chosen iterations: in whole columns if possible, else row by row
    with a time limit.
    """

    def __init__(self, run: Run, program: Program, first: int, end: int, chosen: list[int]) -> None:
        self.run, self.program = run, program
        self.first, self.end = first, end
        self.chosen = chosen
        self.columns: dict[int, np.ndarray] = {}
        self.values: dict[tuple[Slot, int], Any] = {}
        self.late = False
        self._recorded = Recorded(run.timeline)
        self._columns_by_end: dict[int, Columns] = {}
        """Columns by end row."""

    def column(self, slot: Slot) -> np.ndarray | None:
        """Return the numbers of all iterations that computed the slot; the last iteration may still
        be running.
        """
        end = self.end if self.run.has_run(self.program, self.end - 1, slot) else self.end - 1
        if end - self.first < 2 or not self.run.has_run(self.program, end - 1, slot):
            return None
        if end not in self._columns_by_end:
            self._columns_by_end[end] = Columns(
                self._recorded, self.program, np.arange(self.first, end)
            )
        column = self._columns_by_end[end].column(slot)
        if column is None or np.asarray(column.values).dtype.kind not in "biuf":
            return None
        self.columns[slot] = np.asarray(column.of(end - self.first))
        return self.columns[slot]

    def compute(self, slots: list[Slot]) -> None:
        """Replay the slots of each chosen iteration, last slots first.

        One replay of a body computes all values that a slot depends on.
        """
        deadline = time.monotonic() + _SECONDS
        for iteration in self.chosen:
            for slot in reversed(slots):
                if time.monotonic() > deadline:
                    self.late = True
                    return
                self._compute_one(slot, iteration)

    def _compute_one(self, slot: Slot, iteration: int) -> None:
        row = self.first + iteration
        if not self.run.has_run(self.program, row, slot):
            return
        try:
            self.values[slot, iteration] = self.run.values.get(
                self.run.timeline, self.program, row, slot
            )
        except NotKept:
            self.values[slot, iteration] = NOT_KEPT
        except (EngineError, ValueError, TypeError):
            return

    def cells(self, slot: Slot) -> tuple[MatrixCell | None, ...]:
        column = self.columns.get(slot)
        if column is not None:
            return tuple(
                cell(column[iteration]) if iteration < len(column) else None
                for iteration in self.chosen
            )
        return tuple(
            cell(self.values[slot, iteration]) if (slot, iteration) in self.values else None
            for iteration in self.chosen
        )

    def history(self, slot: Slot) -> History:
        """Return the history over all iterations, or over the chosen ones."""
        if slot in self.columns:
            return History("", self.columns[slot])
        values = [
            None if (value := self.values.get((slot, iteration))) is NOT_KEPT else value
            for iteration in self.chosen
        ]
        while values and values[-1] is None:
            values.pop()
        return of_values("", tuple(values))

    def is_whole(self, slot: Slot) -> bool:
        """Return True if all iterations were computed, except possibly the last, which may still be
        running.
        """
        if slot in self.columns:
            return True
        missing = [iteration for iteration in self.chosen if (slot, iteration) not in self.values]
        return len(self.chosen) == self.end - self.first and missing in ([], self.chosen[-1:])


_USER_DTYPE = 2
"""``dtype.isbuiltin`` of the narrow types that numpy does not define."""


def cell(value: Any) -> MatrixCell:
    """Return a value as a cell.

    >>> cell(np.float32(2)).number, cell(np.array([1.0, np.nan, 3.0])).number
    (2.0, 2.0)
    >>> cell(np.array(["a"], object)).number is None
    True
    >>> cell(np.void(b"abc")).number is None  # bytes are not numbers
    True
    """
    if not is_tensor(value):
        return MatrixCell(None, value, False)
    array = np.asarray(value)
    if (array.dtype.kind not in "biuf" and array.dtype.isbuiltin != _USER_DTYPE) or not array.size:
        return MatrixCell(None, value, False)
    numbers = array.reshape(-1)[:_MAX_ELEMENTS].astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    with np.errstate(all="ignore"):
        number = float(finite.mean()) if finite.size else None
    return MatrixCell(number, value, not is_finite(array))


def _row(filled: _Filler, label: str, role: Role, slot: Slot) -> MatrixRow:
    cells, history, is_whole = filled.cells(slot), filled.history(slot), filled.is_whole(slot)
    first_unusual = history.first_not_finite
    if first_unusual is not None and slot not in filled.columns:
        first_unusual = filled.chosen[first_unusual]
    first_change, fixed_from = (
        (history.first_change, history.fixed_from) if is_whole else (None, None)
    )
    return MatrixRow(
        label, decode(label), role, slot, cells, first_unusual, first_change, fixed_from, is_whole
    )


def _branches(run: Run, program: Program, filled: _Filler) -> Iterator[MatrixRow]:
    """Yield a row for each If of the body with the branches that it took."""
    for number in program.regions:
        instruction = program.instructions[number]
        if not isinstance(instruction.region, IfRegion):
            continue
        all_branches, _ = run.timeline.executions.branch_rows(instruction.region)
        part = all_branches[filled.first : filled.end]
        cells = tuple(
            _branch_cell(int(part[iteration])) if iteration < len(part) else None
            for iteration in filled.chosen
        )
        history = History("", part)
        label = instruction.label
        yield MatrixRow(
            label,
            decode(label),
            "branch",
            instruction.region.condition,
            cells,
            None,
            history.first_change,
            None,
            True,
        )


def _branch_cell(is_then: int) -> MatrixCell:
    return MatrixCell(float(is_then), "then" if is_then else "else", False)
