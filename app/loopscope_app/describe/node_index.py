"""Index of a model's nodes by static address, with their graph and body, and their step in a
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import loopscope
from loopscope.ir import (
    Address,
    Body,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputRef,
    PlacedGraph,
    graphs,
    labels,
)
from loopscope.object_cache import cache_by_object


@dataclass(frozen=True, slots=True, eq=False)
class IndexedNode:
    """A node with its surroundings."""

    address: str
    """Static address."""
    node: Node
    graph: ModelGraph
    graph_address: str
    labels: Mapping[LayerId, str]
    """Address segments of the graph's nodes."""
    body: Body | None
    """The body that the graph is; None for the main graph."""

    @property
    def sources(self) -> tuple[OutputRef | None, ...]:
        return self.graph.sources[self.node.id]

    def beside(self, layer: LayerId) -> str:
        """Return the static address of another node of the same graph."""
        return f"{self.graph_address}/{self.labels[layer]}"


@cache_by_object
def places(model: Model) -> Mapping[str, IndexedNode]:
    """Return every node by its static address; computed once per model."""
    return {node.address: node for place in graphs(model) for node in _nodes_of(place)}


def _nodes_of(place: PlacedGraph) -> list[IndexedNode]:
    label = labels(place.graph)
    return [
        IndexedNode(
            f"{place.address}/{label[node.id]}", node, place.graph, place.address, label, place.body
        )
        for node in place.graph.nodes
    ]


def first_loop(model: Model) -> IndexedNode | None:
    return next((entry for entry in places(model).values() if entry.node.is_loop), None)


def with_output(address: str, output: int) -> str:
    return f"{address}:{output}" if output else address


def moment_of(debugger: loopscope.Debugger, address: str) -> int:
    """Return the step at which the value at a concrete address has just been computed.

    Raise ``AddressError`` if the place does not exist.
    """
    parsed = Address.parse(address)
    program, row = debugger.rows_of(parsed)
    layer = program.layer_of_label.get(parsed.segments[-1].label)
    slot = program.slots.get((layer, parsed.output)) if layer is not None else None
    number = program.producer.get(slot, -1) if slot is not None else -1
    return debugger.timeline.step_at(program, row, number + 1)
