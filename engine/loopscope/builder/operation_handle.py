"""``GraphOperation``: handle of an operation of a graph under construction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from loopscope.builder.tensor import Tensor
from loopscope.ir.model import LayerId, Node

if TYPE_CHECKING:
    from loopscope.builder.frame import GraphFrame


class GraphOperation:
    """A node of a graph: ``graph["Add"]``, or an item of ``for operation in graph``."""

    # This is not a dataclass, because dataclasses are structures of values and an operation is one
    # fetch.
    __slots__ = ("_frame", "_layer")

    def __init__(self, frame: GraphFrame, layer: LayerId) -> None:
        self._frame = frame
        self._layer = layer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphOperation) and (self._frame, self._layer) == (
            other._frame,
            other._layer,
        )

    def __hash__(self) -> int:
        return hash((self._frame, self._layer))

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r}>"

    @property
    def node(self) -> Node:
        """Node as the finished model would contain it now."""
        return self._frame.nodes[self._layer]

    @property
    def name(self) -> str:
        """Name that is unique in the graph."""
        return self.node.name

    @property
    def type(self) -> str:
        """Type of the operation in the spelling of the IR."""
        return self.node.type

    @property
    def attributes(self) -> Mapping[str, object]:
        """Attributes as text by name, as in the IR."""
        return self.node.attributes

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors that feed the operation, in input order."""
        fed = {edge.to_port: edge for edge in self._frame.edges if edge.to_layer == self._layer}
        return tuple(
            self._frame.from_port(edge.from_layer, edge.from_port)
            for _, edge in sorted(fed.items())
        )

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Tensors that the operation computes."""
        return self._frame.tensors[self._layer]
