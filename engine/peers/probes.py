"""Which values of a run another runtime can be asked for: those of the outermost graph, of loops and branches, over all iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.debug.run import Run
from engine.ir.model import LOOP, SCAN, TENSOR_ITERATOR, LayerId
from engine.ops.values import is_tensor
from engine.run.plan.numbers import Slot
from engine.run.plan.plan import IfRegion, LoopRegion, Program
from engine.run.record.recording import LoopTable
from engine.trace.vectorised import Columns, Recorded

_LOOPS = (LOOP, TENSOR_ITERATOR, SCAN)
_MOST_BYTES = 256 * 2**20
"""Of all values together that another runtime is asked for."""
_MOST_OF_ONE = 64 * 2**20
_MORE = 16
_MOST_COMPUTED = 5_000
"""Iterations whose values are computed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """One value of a graph, in all of its rows."""

    program: Program
    layer: LayerId
    output: int
    slot: Slot
    position: int
    """Number of the instruction that computes it; -1 for a Parameter."""
    expected: np.ndarray
    """With a row along the first axis."""
    lengths: tuple[int, ...]
    """How often each loop around it runs, outermost first: the first axes of what the other runtime gives."""
    places: np.ndarray
    """For each row, its number among all iterations of those loops: it skips those in which another branch ran."""


@dataclass(frozen=True, slots=True)
class Probes:
    """What is asked for, and how many values are not, by the reason in words."""

    asked: tuple[Probe, ...]
    left_out: dict[str, int]


def probes(run: Run) -> Probes:
    """The values of a finished run that can be compared, in the order of their graphs."""
    return _Choosing(run).probes()


def owner(program: Program) -> LoopRegion | IfRegion | None:
    """The loop or If that a graph belongs to; None for the outermost graph and for a function."""
    region = program.region
    if isinstance(region, IfRegion) or (isinstance(region, LoopRegion) and region.kind in _LOOPS):
        return region
    return None


def times(run: Run, loop: LoopRegion) -> int:
    """How many iterations a loop runs, at most."""
    return max(_counts(run, loop), default=0)


def enough(run: Run, program: Program) -> int | None:
    """A trip count that a loop did not come near, where its own allows far more: runtimes take memory for all that may run."""
    region = owner(program)
    if not isinstance(region, LoopRegion) or region.kind != LOOP or region.trip_count is None or program.parent is None:
        return None
    most = times(run, region) + _MORE
    rows = run.timeline.executions.rows[program.parent.index]
    trips = [int(np.asarray(run.values.get(run.timeline, program.parent, row, region.trip_count)).item()) for row in range(rows)]
    return most if min(trips, default=0) > most else None


def _counts(run: Run, loop: LoopRegion) -> list[int]:
    table = run.machine.recording.tables[loop.table]
    assert isinstance(table, LoopTable)
    return table.counts


class _Choosing:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.recorded = Recorded(run.timeline)
        self.left = _MOST_BYTES
        self.left_out: dict[str, int] = {}

    def probes(self) -> Probes:
        asked: list[Probe] = []
        for program in self.run.plan.programs:
            reason = self._reason(program)
            if reason:
                self._leave_out(reason, sum(1 for _ in _values_of(program)))
            else:
                asked += self._of(program)
        return Probes(tuple(asked), self.left_out)

    def _leave_out(self, reason: str, count: int = 1) -> None:
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count

    def _reason(self, program: Program) -> str:
        """Why a graph as a whole is left out; empty where it is not."""
        around = [one for one in program.around() if one.parent is not None]
        if None in map(owner, around):
            return "in a function"
        if not self.run.timeline.executions.rows[program.index]:
            return "never ran"
        if any(len(set(_counts(self.run, loop))) > 1 for one in around if isinstance(loop := owner(one), LoopRegion)):
            return "in a loop whose number of iterations varies"
        return ""

    def _places(self, program: Program) -> np.ndarray:
        if program.parent is None:
            return np.zeros(1, np.int64)
        around, region = self._places(program.parent), owner(program)
        if isinstance(region, LoopRegion):
            count = times(self.run, region)
            return (around[:, None] * count + np.arange(count)).reshape(-1)
        assert region is not None
        taken = self.run.timeline.executions.taken(region).astype(bool)
        return np.asarray(around[taken if program is region.then.program else ~taken])

    def _of(self, program: Program) -> Iterator[Probe]:
        rows = self.run.timeline.executions.rows[program.index]
        columns = Columns(self.recorded, program, np.arange(rows))
        loops = [loop for one in program.around() if isinstance(loop := owner(one), LoopRegion)]
        lengths, places = tuple(times(self.run, loop) for loop in reversed(loops)), self._places(program)
        for layer, output, slot, position in _values_of(program):
            if self._is_nameless(program, position, output):
                continue
            first = self._value(program, 0, slot)
            if not is_tensor(first):
                self._leave_out("that is not a tensor")
            elif np.asarray(first).dtype.kind not in "biuf":
                self._leave_out("of text" if np.asarray(first).dtype == object else "of a type that numpy does not have")
            elif np.asarray(first).nbytes * rows > min(self.left, _MOST_OF_ONE):
                self._leave_out("too large")
            elif (expected := self._whole(columns, program, rows, slot)) is not None:
                self.left -= expected.nbytes
                yield Probe(program, layer, output, slot, position, expected, lengths, places)

    def _is_nameless(self, program: Program, position: int, output: int) -> bool:
        """An output that an ONNX file leaves out."""
        if self.run.model.dialect != "onnx" or position < 0:
            return False
        return not any(program.instructions[position].node.outputs[output].names)

    def _whole(self, columns: Columns, program: Program, rows: int, slot: Slot) -> np.ndarray | None:
        column = columns.column(slot) if program.parent is not None else None
        if column is not None:
            return np.asarray(column.of(rows))
        if rows > _MOST_COMPUTED:
            self._leave_out(f"in loops of more than {_MOST_COMPUTED:,} iterations")
            return None
        values = [np.asarray(self._value(program, row, slot)) for row in range(rows)]
        if len({(value.shape, value.dtype) for value in values}) > 1:
            self._leave_out("of a shape that changes")
            return None
        return np.stack(values)

    def _value(self, program: Program, row: int, slot: Slot) -> Any:
        return self.run.values.get(self.run.timeline, program, row, slot)


def _values_of(program: Program) -> Iterator[tuple[LayerId, int, Slot, int]]:
    """Layer, output number, slot and instruction number of what a graph computes; in bodies the carried Parameters too."""
    region = owner(program)
    if isinstance(region, LoopRegion):
        carried = {one.parameter for one in region.carried}
        yield from ((layer, 0, slot, -1) for layer, slot in program.parameters.items() if slot in carried)
    for number, instruction in enumerate(program.instructions):
        yield from ((instruction.node.id, output, slot, number) for output, slot in enumerate(instruction.outputs))
