"""The iteration matrix: every value of a loop's body in every iteration, or in evenly chosen
ones where there are many.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from loopscope.debug.run import Run
from loopscope.debug.suggestions import region_number, value_names
from loopscope.errors import AddressError, EngineError, NotKept
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Program
from loopscope.explain.history import History, evenly, is_finite, of_values
from loopscope.explain.verdict import execution
from loopscope.ir.address import decode
from loopscope.ops.values import NOT_KEPT, is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

Role = Literal["carried", "iteration", "slice", "condition", "branch", "value"]
MOST_COLUMNS, MOST_ROWS = 200, 40
_SECONDS = 0.6
"""After so long no further value is computed: what is left is shown as not computed."""
_MOST_ELEMENTS = 1 << 18
"""Of a tensor of which the mean is taken."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One value in one iteration."""

    number: float | None
    """The value of a single element, the mean of the finite elements of a tensor; None where
    there is none.
    """
    value: Any
    """The value itself; the branch's name in rows of branches."""
    odd: bool
    """It holds a NaN or an infinity."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """None where there is none: of a sequence, or of what a run was saved without."""
        return np.shape(self.value) if is_tensor(self.value) else None


@dataclass(frozen=True, slots=True, eq=False)
class MatrixRow:
    """One value over the iterations."""

    label: str
    """Its address below the body."""
    name: str
    role: Role
    slot: Slot
    cells: tuple[MatrixCell | None, ...]
    """One for each column; None where it did not run or was not computed."""
    first_not_finite: int | None
    first_change: int | None
    fixed_from: int | None
    is_whole: bool
    """Whether all iterations were looked at; otherwise there may be an earlier NaN than
    ``first_not_finite``.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """All rows of one execution of a loop."""

    address: str
    """Of the loop."""
    program: Program
    first_row: int
    total: int
    """Iterations that have begun."""
    iterations: tuple[int, ...]
    """Iteration of each column."""
    rows: tuple[MatrixRow, ...]
    left_out: int
    """Values of the body beyond ``MOST_ROWS``."""
    complete: bool
    """Every cell was computed."""

    def column_of(self, iteration: int) -> int:
        """The column that holds an iteration."""
        return int(np.searchsorted(self.iterations, iteration, side="right")) - 1


def iteration_matrix(
    run: Run, address: str, most_columns: int = MOST_COLUMNS, most_rows: int = MOST_ROWS
) -> Matrix:
    """The matrix of the loop execution at an address; ``EngineError`` when there is none."""
    outer, execution_row, region, instruction = execution(run, address)
    program = region.program
    first, end = run.timeline.executions.rows_of(region, execution_row)
    total = end - first
    chosen = evenly(total, most_columns)
    named = list(_named(region))
    filled = _Filler(run, program, first, end, chosen)
    values = {slot: filled.column(slot) for _, _, slot in named[:most_rows]}
    filled.compute([slot for slot, found in values.items() if found is None])
    rows = [_row(filled, label, role, slot) for label, role, slot in named[:most_rows]]
    rows += _branches(run, program, filled)
    place = f"{run.timeline.address(outer, execution_row)}/{instruction.label}"
    return Matrix(
        place,
        program,
        first,
        total,
        tuple(chosen),
        tuple(rows),
        max(0, len(named) - most_rows),
        not filled.late,
    )


def step_of_cell(run: Run, found: Matrix, row: MatrixRow, iteration: int) -> int:
    """The step before which the value of a row in an iteration has just been computed;
    ``AddressError`` for an iteration that has not begun.
    """
    if not 0 <= iteration < found.total:
        raise AddressError(
            f"{found.address} has {found.total:,} iterations, and {iteration} is none of them"
        )
    if row.role == "branch":
        at = region_number(found.program, row.label) or 0
    else:
        at = found.program.producer.get(row.slot, -1) + 1
    return run.timeline.step_at(found.program, found.first_row + iteration, at)


def _named(region: LoopRegion) -> Iterator[tuple[str, Role, Slot]]:
    """Label, role and slot of everything that may change from one iteration to the next: the
    carried values first.
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
        for slot in instruction.outputs:
            if slot in names:
                yield names[slot], "condition" if slot == region.condition_result else "value", slot


class _Filler:
    """Gets the values of the chosen iterations: whole columns where that goes, row by row
    elsewhere, within a time.
    """

    def __init__(self, run: Run, program: Program, first: int, end: int, chosen: list[int]) -> None:
        self.run, self.program = run, program
        self.first, self.end = first, end
        self.chosen = chosen
        self.columns: dict[int, np.ndarray] = {}
        self.found: dict[tuple[Slot, int], Any] = {}
        self.late = False
        self._recorded = Recorded(run.timeline)
        self._at_once: dict[int, Columns] = {}
        """By the row after the last."""

    def column(self, slot: Slot) -> np.ndarray | None:
        """The numbers of all iterations that have computed them: the last one may still be on
        its way.
        """
        end = self.end if self.run.has_run(self.program, self.end - 1, slot) else self.end - 1
        if end - self.first < 2 or not self.run.has_run(self.program, end - 1, slot):
            return None
        if end not in self._at_once:
            self._at_once[end] = Columns(self._recorded, self.program, np.arange(self.first, end))
        column = self._at_once[end].column(slot)
        if column is None or np.asarray(column.values).dtype.kind not in "biuf":
            return None
        self.columns[slot] = np.asarray(column.of(end - self.first))
        return self.columns[slot]

    def compute(self, slots: list[Slot]) -> None:
        """Iteration by iteration, last slots first: one replay of a body gives all that its
        values depend on.
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
            self.found[slot, iteration] = self.run.values.get(
                self.run.timeline, self.program, row, slot
            )
        except NotKept:
            self.found[slot, iteration] = NOT_KEPT
        except (EngineError, ValueError, TypeError):
            return

    def cells(self, slot: Slot) -> tuple[MatrixCell | None, ...]:
        column = self.columns.get(slot)
        if column is not None:
            return tuple(cell(column[one]) if one < len(column) else None for one in self.chosen)
        return tuple(
            cell(self.found[slot, one]) if (slot, one) in self.found else None
            for one in self.chosen
        )

    def history(self, slot: Slot) -> History:
        """Of all iterations, or of those that were looked at."""
        if slot in self.columns:
            return History("", self.columns[slot])
        values = [
            None if (value := self.found.get((slot, one))) is NOT_KEPT else value
            for one in self.chosen
        ]
        while values and values[-1] is None:
            values.pop()
        return of_values("", tuple(values))

    def is_whole(self, slot: Slot) -> bool:
        """Whether all iterations were looked at, but perhaps the last, which may still be on its
        way.
        """
        if slot in self.columns:
            return True
        missing = [one for one in self.chosen if (slot, one) not in self.found]
        return len(self.chosen) == self.end - self.first and missing in ([], self.chosen[-1:])


_NARROW = 2
"""``isbuiltin`` of the narrow types that numpy itself lacks."""


def cell(value: Any) -> MatrixCell:
    """One value as a cell.

    >>> cell(np.float32(2)).number, cell(np.array([1.0, np.nan, 3.0])).number, cell(np.array(["a"], object)).number
    (2.0, 2.0, None)
    >>> cell(np.void(b"abc")).number is None  # bytes are not numbers
    True
    """
    if not is_tensor(value):
        return MatrixCell(None, value, False)
    array = np.asarray(value)
    if (array.dtype.kind not in "biuf" and array.dtype.isbuiltin != _NARROW) or not array.size:
        return MatrixCell(None, value, False)
    numbers = array.reshape(-1)[:_MOST_ELEMENTS].astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    with np.errstate(all="ignore"):
        number = float(finite.mean()) if finite.size else None
    return MatrixCell(number, value, not is_finite(array))


def _row(filled: _Filler, label: str, role: Role, slot: Slot) -> MatrixRow:
    cells, over, whole = filled.cells(slot), filled.history(slot), filled.is_whole(slot)
    odd = over.first_not_finite
    if odd is not None and slot not in filled.columns:
        odd = filled.chosen[odd]
    changed, fixed = (over.first_change, over.fixed_from) if whole else (None, None)
    return MatrixRow(label, decode(label), role, slot, cells, odd, changed, fixed, whole)


def _branches(run: Run, program: Program, filled: _Filler) -> Iterator[MatrixRow]:
    """A row for each If of the body: the branch that it took."""
    for number in program.regions:
        instruction = program.instructions[number]
        if not isinstance(instruction.region, IfRegion):
            continue
        taken, _ = run.timeline.executions.branch_rows(instruction.region)
        part = taken[filled.first : filled.end]
        cells = tuple(
            _branch_cell(int(part[one])) if one < len(part) else None for one in filled.chosen
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


def _branch_cell(taken: int) -> MatrixCell:
    return MatrixCell(float(taken), "then" if taken else "else", False)
