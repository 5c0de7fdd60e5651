"""A model in which some values are rounded to a narrower type wherever they are computed or handed on: what if they were kept in it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.check.propagate import Propagated, propagate
from engine.errors import AddressError, InputError, shorten
from engine.ir.address_pattern import AddressPattern, address_patterns
from engine.ir.constant import Constant
from engine.ir.element_type import REAL_FLOATS
from engine.ir.model import Edge, Graph, LayerId, Model, Node, Port
from engine.ir.walk import PlacedGraph, graphs
from engine.ops.catalogue import CATALOGUE, Catalogue
from engine.ops.dialect import catalogue_for
from engine.ops.narrowing import NARROWER, ROUND_TO, round_to


def rounded(model: Model, rounding: Mapping[str, str], catalogue: Catalogue = CATALOGUE) -> Model:
    """The model in which every float that a pattern names is rounded to a type, in all iterations; the last pattern that names it counts.

    A pattern is an address without iterations (``main/loop/body/state``, ``main/Split_4:1``; without a number every output is meant), or
    an end of one that no other node has, in any form that people read (``loop › state``). ``*`` stands for any text, slashes too:
    ``main/*/state``, ``*``. It names what an operation gives, what a Parameter of a body receives in each iteration (a carried state), or
    a Const. What is rounded keeps its address, and the operation that gives it is called ``... before rounding``; inputs of the model,
    nodes with bodies and those with several outputs keep theirs, and ``... rounded`` follows them.

    ``InputError`` for a type other than bf16, f16, f8e4m3, f8e5m2, int8 (per row) and int4 (per group), ``AddressError`` for a pattern
    that names no float, or without ``*`` is the end of several addresses.
    """
    patterns = list(_patterns(model, rounding))
    known = propagate(model, catalogue_for(model.dialect, catalogue))
    made: dict[int, Graph] = {}
    used: set[str] = set()
    for place in reversed(list(graphs(model))):
        made[id(place.graph)] = _Rounding(place, patterns, known, made, used).graph()
    unused = next((text for text in rounding if text not in used), None)
    if unused is not None:
        raise AddressError(
            f"nothing is rounded by {shorten(unused)!r}: it names no value of floats. An address without iterations is expected, such as "
            f"main/loop/body/state, or an end of one; * stands for any text"
        )
    return replace(model, graph=made[id(model.graph)], file="")


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which values are rounded, and to what."""

    text: str
    to: str
    pattern: AddressPattern


def _patterns(model: Model, rounding: Mapping[str, str]) -> Iterator[_Asked]:
    for (text, to), pattern in zip(rounding.items(), address_patterns(model, rounding), strict=True):
        if to not in NARROWER:
            raise InputError(f"{shorten(text)!r} is to be rounded to {shorten(str(to))!r}: expected {', '.join(NARROWER)}")
        yield _Asked(text, to, pattern)


@dataclass(frozen=True, slots=True)
class _Rounding:
    """One graph, and what is rounded in it."""

    place: PlacedGraph
    patterns: Sequence[_Asked]
    known: Propagated
    made: Mapping[int, Graph]
    used: set[str]

    def graph(self) -> Graph:
        graph = self.place.graph
        nodes, moved = list[Node](), dict[tuple[LayerId, int], LayerId]()
        edges: list[Edge] = []
        free = max(graph.by_id, default=-1) + 1
        for node in graph.nodes:
            inner = replace(node, bodies=tuple(replace(body, graph=self.made[id(body.graph)]) for body in node.bodies))
            asked = dict(self._asked(node))
            if not asked:
                nodes.append(inner)
            elif node.constant is not None:
                nodes.append(replace(inner, constant=Constant.of(round_to(node.constant.array(), to=asked[0]))))
            else:
                nodes.append(_renamed(inner) if self._hands_over_its_name(node) else inner)
                for output, to in asked.items():
                    layer, free = LayerId(free), free + 1
                    nodes.append(_round_node(layer, self._name(node, output), node.outputs[output], to))
                    moved[node.id, node.outputs[output].id] = layer
                    edges.append(Edge(node.id, node.outputs[output].id, layer, 0))
        for edge in graph.edges:
            after = moved.get((edge.from_layer, edge.from_port))
            edges.append(edge if after is None else Edge(after, 1, edge.to_layer, edge.to_port))
        return replace(graph, nodes=tuple(nodes), edges=tuple(edges))

    def _asked(self, node: Node) -> Iterator[tuple[int, str]]:
        """The outputs that are rounded, each with its type."""
        if node.type == "Result":
            return
        address = f"{self.place.address}/{self.place.labels[node.id]}"
        for output, port in enumerate(node.outputs):
            element_type = self.known.output(self.place.address, node.id, output).element_type or port.element_type
            if port.form != "tensor" or (element_type is not None and element_type not in REAL_FLOATS):
                continue
            naming = [one for one in self.patterns if one.pattern.names(address, output)]
            self.used.update(one.text for one in naming)
            if naming:
                yield output, naming[-1].to

    def _hands_over_its_name(self, node: Node) -> bool:
        is_input = node.type == "Parameter" and self.place.owner is None
        return not is_input and not node.bodies and len(node.outputs) == 1

    def _name(self, node: Node, output: int) -> str:
        if self._hands_over_its_name(node):
            return node.name
        return f"{node.name}{f':{output}' if output else ''} rounded"


def _renamed(node: Node) -> Node:
    """The operation that gives what is rounded; its tensor names go to what comes out."""
    return replace(node, name=f"{node.name} before rounding", outputs=tuple(replace(port, names=()) for port in node.outputs))


def _round_node(layer: LayerId, name: str, port: Port, to: str) -> Node:
    inputs = (Port(0, port.element_type, port.shape),)
    outputs = (Port(1, port.element_type, port.shape, port.names),)
    return Node(layer, name, ROUND_TO.name, ROUND_TO.opset, {"to": to}, inputs, outputs)
