"""Range of an axis that the iterations of a loop read, and the adjoint of the whole tensor from
that of the range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.builder.graph_builder import Graph
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import TENSOR_ITERATOR, InputMap

Number = int | Tensor
"""An int if it is known before a run, or an i64 vector of one element."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range from ``begin`` to ``end`` (exclusive) along an axis of ``length`` elements."""

    axis: int
    begin: Number
    end: Number
    length: Number

    @staticmethod
    def of(graph: Graph, kind: str, entry: InputMap, whole: Tensor, count: Number) -> Span:
        """Return the range that ``count`` iterations of a sliced input read."""
        rank = whole.rank
        if rank is None or entry.axis is None:
            raise ValueError(
                f"the rank of the sliced tensor {whole!r} is not known: declare the ranks of the "
                "model's inputs"
            )
        axis = entry.axis % rank
        length = _length(graph, whole, axis)
        covered = (
            count * entry.part_size if isinstance(count, Tensor) and entry.part_size != 1 else count
        )
        covered = covered * entry.part_size if isinstance(covered, int) else covered
        if kind != TENSOR_ITERATOR:
            return (
                Span(axis, 0, covered, length)
                if entry.stride > 0
                else Span(axis, length - covered, length, length)
            )
        first = entry.start if entry.start >= 0 else length + entry.start
        return (
            Span(axis, first, first + covered, length)
            if entry.stride > 0
            else Span(axis, first + 1 - covered, first + 1, length)
        )

    @property
    def is_all(self) -> bool:
        """True if the range is known to be the whole axis."""
        return isinstance(self.begin, int) and self.begin == 0 and self._to_the_end

    @property
    def _to_the_end(self) -> bool:
        return self.end is self.length or (
            isinstance(self.end, int) and isinstance(self.length, int) and self.end == self.length
        )

    def cut(self, graph: Graph, whole: Tensor) -> Tensor:
        """Return this range of a tensor."""
        if self.is_all:
            return whole
        begin, end = _vector(graph, self.begin), _vector(graph, self.end)
        return graph.apply("Slice", (whole, begin, end, np.array([1]), np.array([self.axis])), {})[
            0
        ]

    def padded(self, graph: Graph, stretch: Tensor, rank: int) -> Tensor:
        """Return a tensor over the whole axis with the given values in this range, and zeros
        elsewhere.
        """
        if self.is_all:
            return stretch
        before = _at_axis(graph, self.begin, self.axis, rank)
        after = _at_axis(graph, self.length - self.end, self.axis, rank)
        zero = np.zeros((), stretch.element_type.dtype if stretch.element_type else np.float32)
        return graph.apply("Pad", (stretch, before, after, zero), {"pad_mode": "constant"})[0]


def _length(graph: Graph, whole: Tensor, axis: int) -> Number:
    known = whole.shape.at(axis)
    if known.is_static:
        return known.length
    lengths = graph.apply("ShapeOf", (whole,), {})[0]
    return graph.apply("Gather", (lengths, np.array([axis]), np.array(0)), {})[0]


def _vector(graph: Graph, number: Number) -> Tensor:
    return graph.constant(np.array([number])) if isinstance(number, int) else number


def _at_axis(graph: Graph, number: Number, axis: int, rank: int) -> Tensor:
    """Return a vector with the number at one axis, and zeros at the others."""
    if isinstance(number, int):
        return graph.constant(np.array([number if index == axis else 0 for index in range(rank)]))
    zeros = [np.zeros(count, np.int64) for count in (axis, rank - axis - 1)]
    parts = [*([zeros[0]] if axis else []), number, *([zeros[1]] if rank - axis - 1 else [])]
    return graph.apply("Concat", parts, {"axis": 0})[0] if len(parts) > 1 else number
