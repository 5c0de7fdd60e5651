"""Sources of values in provenance that are not operands: slices of loops, and variables.

These are the slice that an iteration reads, the iterations that made a part of an output, and the
last Assign that ran before a ReadValue.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine.regions import part_begin
from loopscope.executor.plan.body_ports import Concatenated, Sliced
from loopscope.executor.plan.plan import LoopRegion, Plan, Program
from loopscope.explain.index_provenance import TensorPart, block, lengths
from loopscope.explain.pattern import layer_of
from loopscope.ir.model import SEQUENCE_MAP

_MAX_MEASURED = 10_000
"""Maximum number of iterations whose pieces are measured one by one if the model does not declare
their length.
"""


def read_part(
    region: LoopRegion, sliced: Sliced, source: object, iteration: int, part: TensorPart | None
) -> TensorPart | None:
    """Return the part of a sliced input that an iteration reads for a part of its Parameter.

    Return None for the whole input.
    """
    shape = lengths(source)
    if isinstance(source, tuple):
        return block(shape, {0: (iteration, iteration + 1)})
    if region.kind == SEQUENCE_MAP:
        return part
    axis = sliced.axis % len(shape)
    begin = int(part_begin(region, sliced, shape[axis], iteration))
    if part is None:
        return block(shape, {axis: (begin, begin + sliced.part_size)})
    ranges = list(part.ranges)
    if sliced.whole_parts:
        ranges[axis] = (begin + ranges[axis][0], begin + ranges[axis][1])
    else:
        ranges.insert(axis, (begin, begin + 1))
    return block(shape, dict(enumerate(ranges)))


@dataclass(frozen=True, slots=True)
class Pieces:
    """Iterations that made a part of a joined loop output."""

    rows: range
    """Rows of the body in execution order."""
    starts: np.ndarray | None
    """Begin of each row's piece along the axis, then the end of the last, in output order.

    None if only whole pieces are known.
    """
    output: Concatenated
    part: TensorPart | None
    first: int
    """First row of the loop's execution."""

    def part_at(self, row: int) -> TensorPart | None:
        """Return the part of the piece that a row made; None for the whole piece."""
        if self.part is None or self.starts is None or self.output.into_sequence:
            return None
        ranges, count = list(self.part.ranges), len(self.starts) - 1
        axis = self.output.axis % len(ranges)
        begin, end = ranges.pop(axis)
        shape = [length for dimension, length in enumerate(self.part.shape) if dimension != axis]
        if not self.output.stacked:
            number = _piece_index(self.output, row - self.first, count)
            start, stop = int(self.starts[number]), int(self.starts[number + 1])
            if not shape and self.starts[-1] == count:
                return None  # scalars, or vectors of one element, are joined
            ranges.insert(axis, (max(begin, start) - start, min(end, stop) - start))
            shape.insert(axis, stop - start)
        return block(tuple(shape), dict(enumerate(ranges)))


def pieces(
    run: Run, region: LoopRegion, output: Concatenated, rows: range, part: TensorPart | None
) -> Pieces:
    """Return the rows of a loop's execution that made a part of an output; None for the whole
    output.
    """
    if part is None:
        return Pieces(rows, None, output, None, rows.start)
    starts = _piece_starts(run, region, output, rows, part)
    if starts is None:
        return Pieces(rows, None, output, part, rows.start)
    begin, end = part.ranges[output.axis % len(part.ranges)]
    first = int(np.searchsorted(starts, begin, side="right")) - 1
    last = int(np.searchsorted(starts, end, side="left"))
    if output.reverse:
        first, last = len(rows) - last, len(rows) - first
    return Pieces(rows[first:last], starts, output, part, rows.start)


def _piece_index(output: Concatenated, iteration: int, count: int) -> int:
    """Return the index of an iteration's piece in output order."""
    return count - 1 - iteration if output.reverse else iteration


def _piece_starts(
    run: Run, region: LoopRegion, output: Concatenated, rows: range, part: TensorPart
) -> np.ndarray | None:
    total = part.shape[output.axis % len(part.shape)]
    if output.stacked or output.into_sequence:
        return np.arange(len(rows) + 1)
    length = _declared_length(run, region.program, output)
    if length is not None and length * len(rows) == total:
        return np.arange(len(rows) + 1) * length
    if len(rows) > _MAX_MEASURED:
        return None
    ordered = reversed(rows) if output.reverse else rows
    return np.cumsum([0, *_measure_lengths(run, region.program, output, list(ordered))])


def _declared_length(run: Run, program: Program, output: Concatenated) -> int | None:
    """Return the length of each piece along the axis, if inference knows it."""
    layer, number = layer_of(program, output.result)
    shape = run.plan.propagated.output(program.address, layer, number).shape
    if shape.dimensions is None or output.result in run.overrides.slots:
        return None
    if not shape.dimensions:
        return 1
    dimension = shape.dimensions[output.axis]
    return dimension.length if dimension.is_static else None


def _measure_lengths(
    run: Run, program: Program, output: Concatenated, rows: Sequence[int]
) -> list[int]:
    result: list[int] = []
    for row in rows:
        shape = np.shape(run.values.get(run.timeline, program, row, output.result))
        result.append(shape[output.axis] if shape else 1)
    return result


Writer = tuple[Program, int, int]
"""Program, row and number of an instruction."""


class Writers:
    """Assigns of a model, by variable."""

    def __init__(self, run: Run) -> None:
        self._timeline = run.timeline
        self._assigns: defaultdict[int, list[tuple[Program, int]]] = defaultdict(list)
        for program, number, variable in _assigns(run.plan):
            self._assigns[variable].append((program, number))

    def before(self, program: Program, row: int, number: int) -> Writer | None:
        """Return the last Assign of the variable that ran before a ReadValue.

        Return None if there was none, so that the ReadValue returned its initial value.
        """
        variable = program.instructions[number].variable
        step = self._timeline.step_at(program, row, number)
        candidates = [
            (self._step_of(writer[0], writer[2], writer[1]), writer)
            for writer in self._last_before(step, self._assigns.get(variable or 0, ()))
        ]
        return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None

    def _last_before(self, step: int, assigns: Sequence[tuple[Program, int]]) -> Iterator[Writer]:
        """Yield the last execution of each Assign before a step."""
        for program, number in assigns:
            rows = range(self._timeline.executions.rows[program.index])
            row = bisect_left(rows, step, key=partial(self._step_of, program, number)) - 1
            if row >= 0:
                yield program, row, number

    def _step_of(self, program: Program, number: int, row: int) -> int:
        return self._timeline.step_at(program, row, number)


def _assigns(plan: Plan) -> Iterator[tuple[Program, int, int]]:
    for program in plan.programs:
        for number, instruction in enumerate(program.instructions):
            if instruction.variable is not None and writes(program, number):
                yield program, number, instruction.variable


def writes(program: Program, number: int) -> bool:
    """Return True if an instruction is an Assign."""
    instruction = program.instructions[number]
    return instruction.assigns
