"""How parts of tensors go into loops and come out of them: which part an iteration reads, and
which iterations made a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.machine.regions import part_begin
from loopscope.executor.plan.body_ports import Concatenated, Sliced
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.explain.index_provenance import TensorPart, block, lengths
from loopscope.explain.pattern import layer_of
from loopscope.ir.model import SEQUENCE_MAP

_MOST_MEASURED = 10_000
"""Iterations whose pieces are measured one by one, where the model does not say how long they
are.
"""


def read_part(
    region: LoopRegion, sliced: Sliced, source: object, iteration: int, part: TensorPart | None
) -> TensorPart | None:
    """The part of a sliced input that an iteration reads for a part of its Parameter; None for
    all of it.
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
    """The iterations that made a part of what a loop has joined."""

    rows: range
    """Of the body, in the order in which they ran."""
    starts: np.ndarray | None
    """Along the axis, where the piece of each row of the loop's execution begins, and where the
    last has ended, in the order of the output; None where only whole pieces are known.
    """
    output: Concatenated
    part: TensorPart | None
    first: int
    """First row of the loop's execution."""

    def part_at(self, row: int) -> TensorPart | None:
        """The part of the piece that a row made; None for all of it."""
        if self.part is None or self.starts is None or self.output.into_sequence:
            return None
        ranges, count = list(self.part.ranges), len(self.starts) - 1
        axis = self.output.axis % len(ranges)
        begin, end = ranges.pop(axis)
        shape = [length for one, length in enumerate(self.part.shape) if one != axis]
        if not self.output.stacked:
            number = _in_order(self.output, row - self.first, count)
            start, stop = int(self.starts[number]), int(self.starts[number + 1])
            if not shape and self.starts[-1] == count:
                return None  # numbers of rank 0 are joined, or vectors of one element
            ranges.insert(axis, (max(begin, start) - start, min(end, stop) - start))
            shape.insert(axis, stop - start)
        return block(tuple(shape), dict(enumerate(ranges)))


def pieces(
    run: Run, region: LoopRegion, output: Concatenated, rows: range, part: TensorPart | None
) -> Pieces:
    """Which of the rows of a loop's execution made a part of an output; ``part`` is None for all
    of it.
    """
    if part is None:
        return Pieces(rows, None, output, None, rows.start)
    starts = _starts(run, region, output, rows, part)
    if starts is None:
        return Pieces(rows, None, output, part, rows.start)
    begin, end = part.ranges[output.axis % len(part.ranges)]
    first, last = (
        int(np.searchsorted(starts, begin, side="right")) - 1,
        int(np.searchsorted(starts, end, side="left")),
    )
    if output.reverse:
        first, last = len(rows) - last, len(rows) - first
    return Pieces(rows[first:last], starts, output, part, rows.start)


def _in_order(output: Concatenated, iteration: int, count: int) -> int:
    """The place of an iteration's piece among all."""
    return count - 1 - iteration if output.reverse else iteration


def _starts(
    run: Run, region: LoopRegion, output: Concatenated, rows: range, part: TensorPart
) -> np.ndarray | None:
    total = part.shape[output.axis % len(part.shape)]
    if output.stacked or output.into_sequence:
        return np.arange(len(rows) + 1)
    each = _declared_length(run, region.program, output)
    if each is not None and each * len(rows) == total:
        return np.arange(len(rows) + 1) * each
    if len(rows) > _MOST_MEASURED:
        return None
    ordered = reversed(rows) if output.reverse else rows
    return np.cumsum([0, *_measured(run, region.program, output, list(ordered))])


def _declared_length(run: Run, program: Program, output: Concatenated) -> int | None:
    """How long each piece is along the axis, where inference knows."""
    layer, number = layer_of(program, output.result)
    shape = run.plan.propagated.output(program.address, layer, number).shape
    if shape.dimensions is None or output.result in run.overrides.slots:
        return None
    if not shape.dimensions:
        return 1
    dimension = shape.dimensions[output.axis]
    return dimension.length if dimension.is_static else None


def _measured(run: Run, program: Program, output: Concatenated, rows: Sequence[int]) -> list[int]:
    found: list[int] = []
    for row in rows:
        shape = np.shape(run.values.get(run.timeline, program, row, output.result))
        found.append(shape[output.axis] if shape else 1)
    return found
