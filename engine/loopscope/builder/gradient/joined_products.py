"""Gradients that are a matrix product in every iteration: the factors are concatenated over all
iterations and multiplied once after the loop.

The sum of A_t @ B_t over t is [A_1 .. A_n] @ [B_1; ..; B_n]: one product instead of adding to a
large matrix in every iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.backward_ports import Joined
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import Edge, LayerId


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
        shared = _length(left, left_axis)
        rows = _length(left, 1 - left_axis)
        columns = _length(right, 1 - right_axis)
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


def _length(matrix: Tensor, axis: int) -> int | None:
    """Return the length of a matrix along an axis, or None if it is unknown or the tensor is not a
    matrix.
    """
    dimensions = matrix.shape.dimensions
    if dimensions is None or len(dimensions) != 2 or not dimensions[axis].is_static:
        return None
    return dimensions[axis].length
