"""Gradients that are a matrix product in every iteration: their factors are joined over all
iterations, and multiplied once after the loop.

The sum of A_t @ B_t over t is [A_1 .. A_n] @ [B_1; ..; B_n]: one product instead of a large matrix
that is added to in every iteration.
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
    """Attributes of the MatMul."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The products of one backward loop; a factor of several is joined once."""

    frame: GraphFrame
    joined: dict[tuple[LayerId, int, int], Joined] = field(
        default_factory=dict[tuple[LayerId, int, int], Joined]
    )

    def of(self, adjoint: Tensor) -> Product | None:
        """The product that an adjoint is in each iteration, where its factors together are
        smaller than what they give; else None.
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
        # The axis of each that the product sums over, and the other one.
        of_left, of_right = int(not transposes["transpose_a"]), int(transposes["transpose_b"])
        shared, rows, columns = (
            _length(left, of_left),
            _length(left, 1 - of_left),
            _length(right, 1 - of_right),
        )
        if (
            shared is None
            or rows is None
            or columns is None
            or shared * (rows + columns) >= rows * columns
        ):
            return None
        return Product(
            self._joined(left, of_left, shared), self._joined(right, of_right, shared), transposes
        )

    def _factor(self, edge: Edge) -> Tensor:
        ports = [port.id for port in self.frame.nodes[edge.from_layer].outputs]
        return self.frame.tensors[edge.from_layer][ports.index(edge.from_port)]

    def _joined(self, factor: Tensor, axis: int, length: int) -> Joined:
        return self.joined.setdefault(
            (factor.source.layer, factor.source.output, axis), Joined(factor, axis, length)
        )


def _length(matrix: Tensor, axis: int) -> int | None:
    """The length of a matrix along an axis; None where it is not known, or is no matrix."""
    dimensions = matrix.shape.dimensions
    if dimensions is None or len(dimensions) != 2 or not dimensions[axis].is_static:
        return None
    return dimensions[axis].length
