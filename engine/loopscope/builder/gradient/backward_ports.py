"""Inputs and outputs of the body of a backward loop; most are resolved after the body is built.

An input that is sliced along an axis has a span: the range that the iterations read. Gradients that
are a matrix product in every iteration are joined: the factors are concatenated over all iterations
and multiplied once after the loop. The sum of A_t @ B_t over t is [A_1 .. A_n] @ [B_1; ..; B_n]:
one product instead of adding to a large matrix in every iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import Graph
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import TENSOR_ITERATOR, Edge, InputMap, LayerId
from loopscope.ops.declare import Known

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
    return known.length if known.is_static else length_of(graph, whole, axis)


def length_of(graph: Graph, tensor: Tensor, axis: int) -> Tensor:
    """Return the length of an axis as an i64 vector of one element."""
    lengths = graph.apply("ShapeOf", (tensor,), {})[0]
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


Form = Literal["whole", "flat", "shape", "count", "last"]
"""Form of a record: the value under a new first axis; its elements in one axis; its shape; one
element per iteration, to count them; or the last value of a Result.
"""


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """A value to record: of a Parameter, the last value of a Result, or the count of iterations
    (without a layer).
    """

    form: Form
    layer: LayerId | None
    known: Known
    """Knowledge about the value over all iterations."""


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """Tensors outside of the backward loop from which its inputs are computed."""

    count: Number
    """Trip count of the forward loop."""
    recorded: Mapping[RecordRequest, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Fed:
    """A Parameter that receives an outer tensor, or a slice of one in each iteration."""

    parameter: Tensor
    outer: Callable[[Outside], Tensor]
    axis: int | None = None
    stride: int = 1
    """Length of a slice, with the sign of the direction."""
    records: tuple[RecordRequest, ...] = ()
    """Records that the outer tensor is computed from."""


@dataclass(frozen=True, slots=True, eq=False)
class BackwardCarried:
    """A Parameter that receives a value of the previous iteration."""

    parameter: Tensor
    initial: Callable[[Outside], Tensor]
    after: Tensor
    records: tuple[RecordRequest, ...] = ()
    """Records that the initial value is computed from."""


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """A tensor per iteration, concatenated along an axis."""

    part: Tensor
    axis: int
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """The sum over all iterations of the product of two matrices."""

    left: Joined
    right: Joined
    transposes: Mapping[str, bool]
    """Transposition attributes of the MatMul."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The products of one backward loop; a factor of several products is concatenated once."""

    frame: GraphFrame
    joined: dict[tuple[LayerId, int, int], Joined] = field(
        default_factory=dict[tuple[LayerId, int, int], Joined]
    )

    def of(self, adjoint: Tensor) -> Product | None:
        """Return the product that computes an adjoint in each iteration, or None.

        A product is only used if its factors together are smaller than its result.
        """
        node = self.frame.nodes[adjoint.source.layer]
        if node.type != "MatMul":
            return None
        edges = sorted(
            (edge for edge in self.frame.edges if edge.to_layer == node.id),
            key=lambda edge: edge.to_port,
        )
        left, right = map(self._factor, edges)
        transposes = {
            name: node.attributes.get(name, False) in (True, "true")
            for name in ("transpose_a", "transpose_b")
        }
        # The axis of each factor that the product sums over; the second axis is its rows or
        # columns.
        left_axis, right_axis = int(not transposes["transpose_a"]), int(transposes["transpose_b"])
        shared = _joined_length(left, left_axis)
        rows = _joined_length(left, 1 - left_axis)
        columns = _joined_length(right, 1 - right_axis)
        if (
            shared is None
            or rows is None
            or columns is None
            or shared * (rows + columns) >= rows * columns
        ):
            return None
        return Product(
            self._joined(left, left_axis, shared),
            self._joined(right, right_axis, shared),
            transposes,
        )

    def _factor(self, edge: Edge) -> Tensor:
        ports = [port.id for port in self.frame.nodes[edge.from_layer].outputs]
        return self.frame.tensors[edge.from_layer][ports.index(edge.from_port)]

    def _joined(self, factor: Tensor, axis: int, length: int) -> Joined:
        return self.joined.setdefault(
            (factor.source.layer, factor.source.output, axis), Joined(factor, axis, length)
        )


def _joined_length(matrix: Tensor, axis: int) -> int | None:
    """Return the length of a matrix along an axis, or None if it is unknown or the tensor is not a
    matrix.
    """
    dimensions = matrix.shape.dimensions
    if dimensions is None or len(dimensions) != 2 or not dimensions[axis].is_static:
        return None
    return dimensions[axis].length
