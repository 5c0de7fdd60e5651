"""One value over all iterations of its loop: scalars as they are, larger tensors as summaries; and what stands out in them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from engine.debug.debugger import Debugger
from engine.debug.lookup import iteration_rows
from engine.errors import AddressError, EngineError
from engine.ir.address import ANY_ITERATION, Address, Segment
from engine.ops.values import as_array
from engine.run.execute import computing
from engine.run.plan import LoopRegion, Program

_MOST_COMPUTED = 20_000
"""Iterations that are computed one by one; beyond that, only bodies whose operations work on whole columns."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of a tensor in one iteration; min, max and mean are None for tensors without finite numbers."""

    shape: tuple[int, ...]
    least: float | None
    most: float | None
    mean: float | None
    not_finite: int
    """NaN and infinite elements."""
    digest: str


@dataclass(frozen=True, eq=False)
class History:
    """The values at one place over the iterations of the innermost loop around it."""

    address: str
    """With ``[*]`` for the loop."""
    scalars: np.ndarray | None
    """One number for each iteration, where every value is a scalar or has one element."""
    values: tuple[Any, ...] = ()
    """The value of each iteration where they are no scalars; None where the place did not run in that iteration."""

    def __len__(self) -> int:
        return len(self.values) if self.scalars is None else len(self.scalars)

    @cached_property
    def summaries(self) -> tuple[Summary | None, ...]:
        """One summary for each iteration."""
        items = self.values if self.scalars is None else tuple(self.scalars)
        return tuple(None if item is None else summarise(item) for item in items)

    @cached_property
    def first_not_finite(self) -> int | None:
        """The first iteration whose value holds a NaN or an infinity."""
        if self.scalars is not None:
            odd = np.flatnonzero(~np.isfinite(_numbers(self.scalars)))
            return int(odd[0]) if len(odd) else None
        return next((at for at, one in enumerate(self.summaries) if one is not None and one.not_finite), None)

    @cached_property
    def first_change(self) -> int | None:
        """The first iteration whose value differs from that of the iteration before."""
        changed = self._changes()
        return int(changed[0]) + 1 if len(changed) else None

    @cached_property
    def fixed_from(self) -> int | None:
        """The iteration from which the value stays the same to the end; None when it still changes in the last."""
        if len(self) < 2:
            return None
        changed = self._changes()
        start = int(changed[-1]) + 1 if len(changed) else 0
        return start if start < len(self) - 1 else None

    @cached_property
    def shapes(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """Runs of equal shape: first iteration, last iteration, shape."""
        if self.scalars is not None:
            return ((0, len(self) - 1, ()),) if len(self) else ()
        runs: list[tuple[int, int, tuple[int, ...]]] = []
        for at, one in enumerate(self.values):
            if one is None:
                continue
            shape = np.shape(one)
            if runs and runs[-1][2] == shape and runs[-1][1] == at - 1:
                runs[-1] = (runs[-1][0], at, shape)
            else:
                runs.append((at, at, shape))
        return tuple(runs)

    def _changes(self) -> np.ndarray:
        if self.scalars is not None:
            one, other = self.scalars[:-1], self.scalars[1:]
            same = (one == other) | ((one != one) & (other != other))
            return np.flatnonzero(~same)
        digests = [one.digest if one is not None else "" for one in self.summaries]
        return np.array([at for at in range(len(digests) - 1) if digests[at] != digests[at + 1]], np.int64)


def history(debugger: Debugger, address: str) -> History:
    """The values at an address over all recorded iterations of the innermost loop that it lies in.

    Outer iterations that are left out are those shown at the cursor. ``AddressError`` when the place is in no loop.
    """
    parsed = Address.parse(address)
    program, slot, first_row, end_row = iteration_rows(debugger, parsed)
    place = _starred(parsed)
    columns = _Columns(debugger, program, first_row, end_row)
    scalars = columns.scalars(slot)
    if scalars is not None:
        return History(place, scalars)
    if end_row - first_row > _MOST_COMPUTED:
        raise EngineError(f"{place}: {end_row - first_row:,} iterations are more than the {_MOST_COMPUTED:,} that are computed one by one")
    values = tuple(_value(debugger, program, row, slot) for row in range(first_row, end_row))
    arrays = [as_array(value) for value in values if value is not None]
    if len(arrays) == len(values) and _are_numbers_of_one_type(arrays):
        return History(place, np.concatenate([one.reshape(1) for one in arrays]))
    return History(place, None, values)


def _are_numbers_of_one_type(arrays: Sequence[np.ndarray]) -> bool:
    return bool(arrays) and all(one.size == 1 and one.dtype == arrays[0].dtype and one.dtype.kind in "biuf" for one in arrays)


def evenly(total: int, most: int) -> list[int]:
    """At most so many of the numbers from 0 to ``total`` - 1, the first and the last among them.

    >>> evenly(5, 3), evenly(2, 3), evenly(0, 3)
    ([0, 2, 4], [0, 1], [])
    """
    found: list[int] = np.unique(np.linspace(0, max(total - 1, 0), min(total, most)).round().astype(np.int64)).tolist()
    return found


def scalar_column(debugger: Debugger, program: Program, slot: int, first: int, end: int) -> np.ndarray | None:
    """The scalars of a slot of a loop's body in rows ``first`` to ``end`` (not included), all at once; None where that cannot be."""
    return _Columns(debugger, program, first, end).scalars(slot)


def summarise(value: Any) -> Summary:
    """Shape, extremes, mean, NaN count and digest of one tensor."""
    array = as_array(value)
    digest = hashlib.blake2b(
        repr(array.reshape(-1).tolist()).encode() if array.dtype == np.dtype(object) else array.tobytes(), digest_size=8
    ).hexdigest()
    if array.dtype.kind not in "biufV" or array.dtype.names:
        return Summary(array.shape, None, None, None, 0, digest)
    numbers = _numbers(array)
    finite = numbers[np.isfinite(numbers)]
    odd = int(numbers.size - finite.size)
    if not finite.size:
        return Summary(array.shape, None, None, None, odd, digest)
    return Summary(array.shape, float(finite.min()), float(finite.max()), float(finite.mean(dtype=np.float64)), odd, digest)


def _numbers(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind != "f" or array.dtype.itemsize < 4 else array


def _value(debugger: Debugger, program: Program, row: int, slot: int) -> Any:
    try:
        if not debugger.has_run(program, row, slot):
            return None
        return debugger.values.get(debugger.timeline, program, row, slot)
    except (EngineError, ValueError, TypeError):
        return None


def _starred(address: Address) -> str:
    """The address with ``[*]`` at its innermost loop."""
    segments = list(address.segments)
    for place in range(len(segments) - 2, 0, -1):
        if segments[place + 1].label == "body":
            segments[place] = Segment(segments[place].label, ANY_ITERATION)
            return str(Address(tuple(segments), address.output))
    raise AddressError(f"{address} lies in no loop")


class _Columns:
    """Whole columns of scalars: carried state as recorded, everything else computed over all iterations at once.

    Only where every operation on the way has a Python expression that is elementwise, so that whole columns give bit for bit
    what each iteration gave.
    """

    def __init__(self, debugger: Debugger, program: Program, first: int, end: int) -> None:
        self.debugger = debugger
        self.program = program
        self.first, self.end = first, end
        self.found: dict[int, np.ndarray] = {}
        self.changed: dict[int, dict[int, Any]] = {}
        machine = debugger.machine
        machine.ledger.pack()
        self.rows = machine.ledger.rows.get(program.index)

    def scalars(self, slot: int) -> np.ndarray | None:
        region = self.program.parent.instructions[self.program.owner].region if self.program.parent else None
        if not isinstance(region, LoopRegion) or self.rows is None or self.rows.stride != 1 or self.rows.begun < self.end:
            return None
        order = self._order(slot)
        if order is None or not self._bind(region, order) or not self._bind_changed():
            return None
        with computing():
            for number in order:
                instruction = self.program.instructions[number]
                call = instruction.kernel if self.changed else instruction.call
                assert call is not None
                made = call(*(self._operand(one) for one in instruction.inputs))
                self._put(instruction.outputs[0], np.broadcast_to(made, (self.end - self.first,)))
        return self.found.get(slot)

    def _order(self, slot: int) -> list[int] | None:
        """The instructions that the slot depends on; None when one of them is not elementwise."""
        needed: set[int] = set()
        waiting = [slot]
        while waiting:
            number = self.program.producer.get(waiting.pop())
            if number is None or number in needed:
                continue
            instruction = self.program.instructions[number]
            if not instruction.symbol:
                return None
            needed.add(number)
            waiting.extend(instruction.inputs)
        return sorted(needed)

    def _bind(self, region: LoopRegion, order: list[int]) -> bool:
        """Columns for the Parameters in use; False when one holds no scalars, or is another part of a tensor in each iteration."""
        used = {one for number in order for one in self.program.instructions[number].inputs} or self.program.parameter_slots
        assert self.rows is not None
        for carried in region.carried:
            column = self.rows.whole(carried.parameter)
            if column is not None and column.ndim == 1:
                self.found[carried.parameter] = column[self.first : self.end]
            elif carried.parameter in used:
                return False
        if any(sliced.parameter in used for sliced in region.sliced):
            return False
        for counter in region.counters:
            if counter.shape and counter.parameter in used:
                return False
            self.found[counter.parameter] = np.arange(self.end - self.first, dtype=counter.element_type.dtype)
        rest = used - self.found.keys() - self.program.producer.keys()
        return all(np.ndim(self._operand(one)) == 0 for one in rest)

    def _changed(self) -> dict[int, dict[int, Any]]:
        """What was set by hand in these rows: values by slot and row, counted from the first."""
        found: dict[int, dict[int, Any]] = {}
        changes, executions = self.debugger.plan.changes, self.debugger.timeline.executions
        for change in changes.by_program.get(self.program.index, ()) if changes else ():
            row = executions.row(self.program, change.iterations)
            if row is not None and self.first <= row < self.end:
                found.setdefault(change.slot, {})[row - self.first] = change.value
        return found

    def _bind_changed(self) -> bool:
        """The same for what is no operation; False where what was set is no scalar."""
        self.changed = self._changed()
        for slot, at in self.changed.items():
            if any(np.ndim(value) for value in at.values()):
                return False
            if slot not in self.program.producer:
                same = next((row for row in range(self.end - self.first) if row not in at), 0)
                value = self.debugger.values.get(self.debugger.timeline, self.program, self.first + same, slot)
                if np.ndim(value):
                    return False
                self._put(slot, self.found.get(slot, np.full(self.end - self.first, value)))
        return True

    def _put(self, slot: int, column: np.ndarray) -> None:
        """A column, with what was set by hand."""
        at = self.changed.get(slot)
        if at:
            column = np.array(column)
            for row, value in at.items():
                column[row] = value
        self.found[slot] = column

    def _operand(self, slot: int) -> Any:
        if slot in self.found:
            return self.found[slot]
        return self.debugger.values.get(self.debugger.timeline, self.program, self.first, slot)
