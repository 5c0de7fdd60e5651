"""``GraphOperation``: an operation of a graph under construction, found by name or by going through the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.build.tensor import Tensor
from engine.ir.model import LayerId, Node

if TYPE_CHECKING:
    from engine.build.frame import Frame


@dataclass(frozen=True, slots=True)
class GraphOperation:
    """One node: ``graph["Add"]``, or one of ``for operation in graph``."""

    frame: Frame
    layer: LayerId

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r}>"

    @property
    def node(self) -> Node:
        """As the finished model will have it, so far."""
        return self.frame.nodes[self.layer]

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
        fed = {edge.to_port: edge for edge in self.frame.edges if edge.to_layer == self.layer}
        return tuple(self.frame.from_port(edge.from_layer, edge.from_port) for _, edge in sorted(fed.items()))

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that it makes."""
        return self.frame.tensors[self.layer]
