"""The ONNX file that a model was read from: its nodes, graphs, and opset imports.

A written model or function imports the opsets of its source, and those that added nodes need.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

from loopscope.errors import WriteError, shorten
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


ONNX = "ai.onnx"


class OpsetImports:
    """The imports of the source, and those that added nodes need."""

    def __init__(self, source: Iterable[OperatorSetIdProto]) -> None:
        self.protos = list(source)
        self._versions = {item.domain or ONNX: item.version for item in self.protos}

    def require(self, node: Node) -> None:
        """Import the opset of a node.

        ``WriteError`` if another version of its domain is imported.
        """
        domain, version = domain_and_version(node)
        if version is None or (domain == ONNX and version == 1 and ONNX not in self._versions):
            return  # a file without an import of ONNX has the first opset
        imported = self._versions.setdefault(domain, version)
        if imported != version:
            raise WriteError(
                f"{shorten(node.name, 60)!r} ({node.type}) is of opset {domain} {version}, and "
                f"the model imports {domain} {imported}: an ONNX graph has one version of a domain"
            )
        if all((item.domain or ONNX) != domain for item in self.protos):
            self.protos.append(OperatorSetIdProto(domain=written_domain(domain), version=version))


def domain_and_version(node: Node) -> tuple[str, int | None]:
    """Return the domain of a node, and its version; None if the file does not import the domain."""
    domain, _, version = node.opset.rpartition(" ")
    return (domain, int(version)) if domain and version.isdecimal() else (node.opset, None)


def written_domain(domain: str) -> str:
    """Return the domain as it is written: the ONNX domain is empty."""
    return "" if domain == ONNX else domain
