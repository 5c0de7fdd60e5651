"""``GraphOperation``: an operation of a graph under construction, found by name or by going
through the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from loopscope.builder.tensor import Tensor
from loopscope.ir.model import LayerId, Node

if TYPE_CHECKING:
    from loopscope.builder.frame import GraphFrame


class GraphOperation:
    """One node: ``graph["Add"]``, or one of ``for operation in graph``."""

    # No dataclass: those are structures of values, and this is one thing that can be fetched.
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
        """As the finished model will have it, so far."""
        return self._frame.nodes[self._layer]

    @property
    def name(self) -> str:
        """Unique in its graph."""
        return self.node.name

    @property
    def type(self) -> str:
        """The operation as the IR spells it."""
        return self.node.type

    @property
    def attributes(self) -> Mapping[str, object]:
        """As the IR keeps them: text by name."""
        return self.node.attributes

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What feeds it, in the order of its inputs."""
        fed = {edge.to_port: edge for edge in self._frame.edges if edge.to_layer == self._layer}
        return tuple(
            self._frame.from_port(edge.from_layer, edge.from_port)
            for _, edge in sorted(fed.items())
        )

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that it makes."""
        return self._frame.tensors[self._layer]
