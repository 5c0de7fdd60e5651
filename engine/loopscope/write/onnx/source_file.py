"""Nodes and graphs of the ONNX file that a model was read from."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from loopscope.ir.model import Body, Node, OnnxSource


class SourceFile:
    """The file of a model, parsed on first use; empty for a model that was not read from ONNX."""

    def __init__(self, source: OnnxSource | None) -> None:
        self._source = source
        self._firsts = [place.first for place in source.places] if source else []

    @cached_property
    def model(self) -> ModelProto:
        return ModelProto.FromString(self._source.outline) if self._source else ModelProto()

    def graph(self, number: int) -> GraphProto | FunctionProto | None:
        """Return the graph with this number, or None for 0."""
        if self._source is None or not 0 < number <= len(self._source.places):
            return None
        place = self._source.places[number - 1]
        graph: GraphProto | FunctionProto = (
            self.model.graph if place.function is None else self.model.functions[place.function]
        )
        for index, attribute in place.path:
            graph = next(
                item.g for item in reversed(graph.node[index].attribute) if item.name == attribute
            )
        return graph

    def node(self, node: Node) -> NodeProto | None:
        """Return the node of the file that a node of the model was read from, or None."""
        number = bisect_right(self._firsts, node.source)
        graph = self.graph(number) if node.source else None
        if graph is None:
            return None
        index = node.source - self._firsts[number - 1]
        proto = graph.node[index] if index < len(graph.node) else None
        return proto if proto is not None and proto.op_type == node.type else None

    def is_call(self, node: Node) -> bool:
        """Return True if the node was read as a function call or a rewritten operation."""
        return self._source is not None and node.source in self._source.calls

    def is_unchanged_call(self, node: Node) -> bool:
        """Return True if such a node has exactly the bodies that the reader made for it."""
        return self.is_call(node) and _same(self._bodies(node), node.bodies)

    def _bodies(self, node: Node) -> tuple[Body, ...]:
        return self._source.calls[node.source] if self._source else ()


def _same(left: tuple[Body, ...], right: tuple[Body, ...]) -> bool:
    """Return True if two nodes have the same objects as nodes and edges of their bodies."""
    return len(left) == len(right) and all(
        body.graph.nodes is other.graph.nodes and body.graph.edges is other.graph.edges
        for body, other in zip(left, right, strict=True)
    )
