"""Vectorised values: one graph in many rows at once, from recorded columns and elementwise
operations over columns.

Every operation on the way must work on each element alone, so that a column equals the values of
the rows bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.executor.machine.execute import computing_columns
from loopscope.executor.machine.regions import part_begin
from loopscope.executor.plan.body_ports import (
    CarriedValue,
    Concatenated,
    Counter,
    Invariant,
    LastValue,
    Sliced,
)
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Program,
)
from loopscope.executor.plan.slots import ProgramIndex, Slot
from loopscope.ir.model import SEQUENCE_MAP
from loopscope.ops.casting import cast
from loopscope.ops.values import NOT_KEPT, is_tensor
from loopscope.timeline.timeline import Timeline

_MAX_DEPTH = 16
"""Maximum nesting depth of graphs; deeper values are not computed in columns."""
_MAX_ROW_ELEMENTS = 4096
"""Maximum elements of a value in one row; larger values do not gain from columns."""
_MAX_COLUMN_ELEMENTS = 1 << 23
_ELEMENTWISE = frozenset(
    ("Select", "Where", "Convert", "Div", "Sqrt", "Exp", "Tanh", "Floor", "Ceil", "Relu", "Sigmoid")
)
"""Elementwise operations without a Python expression for all types."""


@dataclass(frozen=True, slots=True, eq=False)
class RowValues:
    """Values of a slot in some rows."""

    values: Any
    """Array with a row along the first axis; one value if it is the same in all rows."""
    varies: bool

    def at(self, numbers: np.ndarray) -> RowValues:
        """Return the values of some of the rows, by their index."""
        return RowValues(self.values[numbers], True) if self.varies else self

    def of(self, count: int) -> np.ndarray:
        """Return the values as an array with ``count`` rows."""
        return (
            self.values
            if self.varies
            else np.broadcast_to(self.values, (count, *np.shape(self.values)))
        )


class Recorded:
    """Recorded columns of a run, each assembled once."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        timeline.machine.recording.pack()
        self._rows = timeline.machine.recording.rows
        self._found: dict[tuple[ProgramIndex, Slot], np.ndarray | None] = {}

    def column(self, program: Program, slot: Slot) -> np.ndarray | None:
        """Return all rows of a slot; None if they are not stored as arrays of one shape and
        type.
        """
        key = program.index, slot
        if key not in self._found:
            self._found[key] = self._whole(program, slot)
        return self._found[key]

    def _whole(self, program: Program, slot: Slot) -> np.ndarray | None:
        rows = self._rows.get(program.index)
        if rows is None or rows.forget or rows.stride != 1 or slot not in rows.columns:
            return None
        if not all(isinstance(chunk, np.ndarray) for chunk in rows.columns[slot].chunks):
            return None
        array = rows.whole(slot)
        return (
            array
            if array is not None and array.dtype.names is None and array.dtype != object
            else None
        )


class Columns:
    """Columns of one graph in some of its rows, which have all ended."""

    def __init__(
        self,
        recorded: Recorded,
        program: Program,
        rows: np.ndarray,
        around: tuple[Columns, np.ndarray] | None = None,
    ) -> None:
        """Create the columns. ``around`` are existing columns of the enclosing graph, with the
        index of each row in them.
        """
        self.recorded = recorded
        self.machine, self.executions = recorded.timeline.machine, recorded.timeline.executions
        self.program, self.rows = program, rows
        self._found: dict[Slot, RowValues | None] = {}
        self._around = around

    def column(self, slot: Slot) -> RowValues | None:
        """Return the values of a slot in the rows; None if they cannot be computed in columns."""
        if slot not in self._found:
            try:
                with computing_columns():
                    self._compute(slot)
            except (ValueError, TypeError, IndexError, MemoryError):
                self._found[slot] = None
        return self._found[slot]

    def _compute(self, slot: Slot) -> None:
        """Compute everything that a slot depends on in this graph, and then the slot itself."""
        if self.program.parent is None:
            self._found[slot] = self._same(self.machine.values[slot])
            return
        for number in self._order(slot):
            instruction = self.program.instructions[number]
            for dependency in instruction.inputs:
                if dependency not in self._found and dependency not in self.program.producer:
                    self._put(dependency, self._bound(dependency))
            for dependency in instruction.outputs:
                if dependency not in self._found:
                    self._put(
                        dependency,
                        self._recorded(dependency) or self._of_instruction(instruction, dependency),
                    )
        if slot not in self._found:
            self._put(slot, self._bound(slot))

    def _order(self, slot: Slot) -> list[int]:
        """Return the required instructions in order. A recorded value does not require its
        inputs.
        """
        needed: set[int] = set()
        waiting = [slot]
        while waiting:
            dependency = waiting.pop()
            number = self.program.producer.get(dependency)
            if number is None or number in needed or dependency in self._found:
                continue
            needed.add(number)
            if self.recorded.column(self.program, dependency) is None:
                waiting.extend(self.program.instructions[number].inputs)
        return sorted(needed)

    def _put(self, slot: Slot, column: RowValues | None) -> None:
        """Store a column, with the overrides of these rows."""
        overrides = self.machine.overrides
        if column is None or slot not in self.machine.overrides.slots:
            self._found[slot] = column
            return
        values: np.ndarray | None = None
        for change in overrides.by_program.get(self.program.index, ()):
            row = (
                self.executions.row(self.program, change.iterations)
                if change.slot == slot
                else None
            )
            indices = np.flatnonzero(self.rows == row) if row is not None else ()
            if len(indices):
                values = np.array(column.of(len(self.rows))) if values is None else values
                if values.shape[1:] != np.shape(change.value):
                    self._found[slot] = None
                    return
                values[indices] = change.value
        self._found[slot] = column if values is None else RowValues(values, True)

    def _recorded(self, slot: Slot) -> RowValues | None:
        column = self.recorded.column(self.program, slot)
        if column is None or (len(self.rows) and self.rows[-1] >= len(column)):
            return None
        return RowValues(column[self.rows], True)

    # -- values at the beginning of a row

    def _bound(self, slot: Slot) -> RowValues | None:
        """Return the column of a Parameter or a Const, which no operation computes."""
        program, plan = self.program, self.machine.plan
        if slot not in program.parameter_slots or program.parent is None:
            return self._same(plan.constant.get(slot))
        if sum(1 for _ in program.around()) > _MAX_DEPTH:
            return None
        if program.loop is not None:
            return self._of_loop(program.loop, slot)
        return None if program.branch is None else self._of_branch(program.branch, slot)

    def _same(self, value: Any) -> RowValues | None:
        if (
            value is None
            or value is NOT_KEPT
            or not is_tensor(value)
            or np.asarray(value).dtype.names
            or np.asarray(value).dtype == object
        ):
            return None
        return RowValues(value, False)

    def _of_loop(self, region: LoopRegion, slot: Slot) -> RowValues | None:
        match region.binding.get(slot):
            case CarriedValue():
                return self._recorded(slot)
            case Counter() as counter:
                numbers = self._iterations(region).astype(counter.element_type.dtype)
                return (
                    RowValues(numbers.reshape(-1, *counter.shape), True)
                    if np.prod(counter.shape, initial=1) == 1
                    else None
                )
            case Sliced() as sliced:
                return self._part(region, sliced)
            case Invariant() as invariant:
                return self._invariant(region, invariant)
            case _:
                return None

    def _invariant(self, region: LoopRegion, invariant: Invariant) -> RowValues | None:
        column, declared = self._outer(invariant.source), region.declared.get(invariant.parameter)
        if column is None or declared is None or np.asarray(column.values).dtype == declared.dtype:
            return column
        return RowValues(cast(np.asarray(column.values), declared), column.varies)

    def _of_branch(self, branch: Branch, slot: Slot) -> RowValues | None:
        source = next((outer for parameter, outer in branch.bindings if parameter == slot), None)
        return None if source is None else self._outer(source)

    def _part(self, region: LoopRegion, sliced: Sliced) -> RowValues | None:
        """Return the parts of a tensor along its axis, one in each row."""
        source = self._outer(sliced.source)
        if source is None or region.kind == SEQUENCE_MAP:
            return None
        array = np.asarray(source.values) if source.varies else np.asarray(source.values)[None]
        axis = sliced.axis + array.ndim - 1 if sliced.axis < 0 else sliced.axis
        begins = np.asarray(
            part_begin(region, sliced, array.shape[axis + 1], self._iterations(region))
        )
        source_rows = (
            np.arange(len(self.rows)) if source.varies else np.zeros(len(self.rows), np.int64)
        )
        parts = np.moveaxis(array, axis + 1, 1)[
            source_rows[:, None], begins[:, None] + np.arange(sliced.part_size)
        ]
        parts = np.moveaxis(parts, 1, axis + 1)
        if not sliced.whole_parts:
            return RowValues(parts.squeeze(axis + 1), True)
        declared = region.declared.get(sliced.parameter)
        return RowValues(parts if declared is None else cast(parts, declared), True)

    def _iterations(self, region: LoopRegion) -> Any:
        """Return the iteration of each row."""
        starts = self.executions.loop_starts(region)
        return self.rows - starts[np.searchsorted(starts, self.rows, side="right") - 1]

    def _outer(self, slot: Slot) -> RowValues | None:
        """Return a value of the enclosing graph, as it was in each row."""
        if self._around is None:
            outer = self._outer_rows()
            rows, places = np.unique(outer, return_inverse=True)
            assert self.program.parent is not None
            self._around = Columns(self.recorded, self.program.parent, rows), places
        columns, places = self._around
        column = columns.column(slot)
        return (
            None
            if column is None
            else RowValues(column.values[0], False)
            if column.varies and len(columns.rows) == 1
            else column.at(places)
        )

    def _outer_rows(self) -> Any:
        executions, region = self.executions, self.program.region
        if isinstance(region, LoopRegion):
            return np.searchsorted(executions.loop_starts(region), self.rows, side="right") - 1
        if isinstance(region, IfRegion):
            branch_number = 1 if self.program is region.then.program else 0
            return np.flatnonzero(executions.taken(region) == branch_number)[self.rows]
        return self.rows

    # -- results of operations

    def _of_instruction(self, instruction: Instruction, slot: Slot) -> RowValues | None:
        match instruction.region:
            case None:
                return self._computed(instruction)
            case LoopRegion() as region:
                return self._last_value(region, slot)
            case IfRegion() as region:
                return self._chosen(region, slot)
            case CallRegion() as region:
                return self._inside(
                    region.branch.program,
                    self.rows,
                    self._all(),
                    region.branch.results[region.outputs.index(slot)],
                )

    def _computed(self, instruction: Instruction) -> RowValues | None:
        operands = [self._found.get(operand) for operand in instruction.inputs]
        known = [operand for operand in operands if operand is not None]
        if (
            len(known) < len(operands)
            or not known
            or not is_of_each_element(instruction, [operand.values for operand in known])
        ):
            return None
        assert instruction.kernel is not None
        rank = max(np.ndim(operand.values) - operand.varies for operand in known)
        shape = np.broadcast_shapes(
            *(np.shape(operand.values)[operand.varies :] for operand in known)
        )
        size = int(np.prod(shape, initial=1))
        if size > _MAX_ROW_ELEMENTS or size * len(self.rows) > _MAX_COLUMN_ELEMENTS:
            return None
        result = instruction.kernel(*(lifted(operand, rank) for operand in known))
        if not any(operand.varies for operand in known):
            return self._same(result)
        return RowValues(result, True) if np.shape(result) == (len(self.rows), *shape) else None

    def _last_value(self, region: LoopRegion, slot: Slot) -> RowValues | None:
        """Return the last value of a loop, if each of its executions had an iteration."""
        output = next(candidate for candidate in region.outputs if candidate.slot == slot)
        starts = self.executions.loop_starts(region)
        if (
            isinstance(output, Concatenated)
            or not isinstance(output, LastValue)
            or self.rows[-1] + 1 >= len(starts)
        ):
            return None
        ends = starts[self.rows + 1]
        return (
            self._inside(region.program, ends - 1, self._all(), output.result)
            if (ends > starts[self.rows]).all()
            else None
        )

    def _chosen(self, region: IfRegion, slot: Slot) -> RowValues | None:
        branches, rows = self.executions.branch_rows(region)
        number = region.outputs.index(slot)
        values_of_rows: np.ndarray | None = None
        for branch, branch_number in ((region.then, 1), (region.otherwise, 0)):
            places = np.flatnonzero(branches[self.rows] == branch_number)
            if not len(places):
                continue
            column = self._inside(
                branch.program, rows[self.rows[places]], places, branch.results[number]
            )
            if column is None:
                return None
            values = column.of(len(places))
            if values_of_rows is None:
                values_of_rows = np.empty((len(self.rows), *values.shape[1:]), values.dtype)
            if (values_of_rows.shape[1:], values_of_rows.dtype) != (values.shape[1:], values.dtype):
                return None
            values_of_rows[places] = values
        return None if values_of_rows is None else RowValues(values_of_rows, True)

    def _all(self) -> np.ndarray:
        return np.arange(len(self.rows))

    def _inside(
        self, program: Program, rows: np.ndarray, places: np.ndarray, slot: Slot
    ) -> RowValues | None:
        """Return a value of an inner graph in that graph's rows. ``places`` are the indices of the
        outer rows that they belong to.
        """
        if sum(1 for _ in program.around()) > _MAX_DEPTH:
            return None
        return Columns(self.recorded, program, np.asarray(rows), (self, places)).column(slot)


def is_of_each_element(instruction: Instruction, operands: Sequence[Any]) -> bool:
    """Return True if an operation computes each output element only from the operand elements that
    broadcast to it.
    """
    if instruction.several or instruction.state is not None or instruction.variable is not None:
        return False
    if instruction.symbol:
        return True
    dtypes = {np.asarray(operand).dtype for operand in operands}
    if instruction.float_symbol and len(dtypes) == 1 and dtypes.pop().char in "fd":
        return True
    broadcast = instruction.node.attributes.get("auto_broadcast", "numpy")
    return instruction.node.type in _ELEMENTWISE and broadcast == "numpy"


def lifted(column: RowValues, rank: int) -> Any:
    """Return a column whose rows have that rank, so that rows broadcast against rows."""
    if not column.varies:
        return column.values
    missing = rank - (column.values.ndim - 1)
    return (
        column.values.reshape(len(column.values), *[1] * missing, *column.values.shape[1:])
        if missing
        else column.values
    )
