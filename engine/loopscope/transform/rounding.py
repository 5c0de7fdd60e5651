"""A model in which some values are rounded to a narrower type wherever they are computed or
handed on: what if they were kept in it?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from loopscope.checks.propagate import Propagated, propagate
from loopscope.errors import AddressError, InputError, shorten
from loopscope.ir.address_pattern import AddressPattern, address_patterns
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import Body, Edge, LayerId, Model, ModelGraph, Node, Port
from loopscope.ir.replace import replace
from loopscope.ir.walk import PlacedGraph, graphs
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.dialect import catalogue_for
from loopscope.ops.narrowing import NARROWER, ROUND_TO, round_to
from loopscope.transform.index_arithmetic import Value, index_arithmetic


@dataclass(frozen=True, slots=True)
class RoundedModel:
    """A model with values rounded, and those that stay as they are."""

    model: Model
    unrounded: tuple[str, ...]
    """Addresses that a pattern with ``*`` names and that are not rounded: they reach only shapes,
    indices, trip counts and bounds of slices, which rounding is not meant for.
    """


def rounded(model: Model, rounding: Mapping[str, str], catalogue: Catalogue = CATALOGUE) -> Model:
    """Return the model of ``round_model``."""
    return round_model(model, rounding, catalogue).model


def round_model(
    model: Model, rounding: Mapping[str, str], catalogue: Catalogue = CATALOGUE
) -> RoundedModel:
    """The model in which every float that a pattern names is rounded to a type, in all iterations;
    the last pattern that names it counts.

    A pattern is an address without iterations (``main/loop/body/state``, ``main/Split_4:1``;
    without a number every output is meant), or an end of one that no other node has, in any form
    that people read (``loop › state``). ``*`` stands for any text, slashes too: ``main/*/state``,
    ``*``. It names what an operation gives, what a Parameter of a body receives in each iteration
    (a carried state), or a Const. What is rounded keeps its address, also where several nodes have
    its name, and the operation that gives it is called ``... before rounding``; inputs of the
    model, nodes with bodies and those with several outputs keep theirs, and ``... rounded`` follows
    them. What a pattern with ``*`` names and ``index_arithmetic`` lists is not rounded.

    ``InputError`` for a type other than bf16, f16, f8e4m3, f8e5m2, int8 (per row) and int4 (per
    group), ``AddressError`` for a pattern that names no float, or without ``*`` is the end of
    several addresses.
    """
    patterns = list(_patterns(model, rounding))
    known = propagate(model, catalogue_for(model.dialect, catalogue))
    indices = index_arithmetic(model, known)
    made: dict[int, _Made] = {}
    used: set[str] = set()
    unrounded: list[str] = []
    for place in reversed(list(graphs(model))):
        made[id(place.graph)] = _Rounding(
            place, patterns, known, indices, made, used, unrounded
        ).made()
    unused = next((text for text in rounding if text not in used), None)
    if unused is not None:
        raise AddressError(
            f"nothing is rounded by {shorten(unused)!r}: it names no value of floats. An address without iterations is expected, such as "
            f"main/loop/body/state, or an end of one; * stands for any text"
        )
    return RoundedModel(
        replace(model, graph=made[id(model.graph)].graph, file=""), tuple(reversed(unrounded))
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which values are rounded, and to what."""

    text: str
    to: str
    pattern: AddressPattern


def _patterns(model: Model, rounding: Mapping[str, str]) -> Iterator[_Asked]:
    for (text, to), pattern in zip(
        rounding.items(), address_patterns(model, rounding), strict=True
    ):
        if to not in NARROWER:
            raise InputError(
                f"{shorten(text)!r} is to be rounded to {shorten(str(to))!r}: expected {', '.join(NARROWER)}"
            )
        yield _Asked(text, to, pattern)


@dataclass(frozen=True, slots=True)
class _Made:
    """A graph with values rounded, and the new numbers of nodes that have handed over theirs."""

    graph: ModelGraph
    renumbered: Mapping[LayerId, LayerId]

    def body(self, body: Body) -> Body:
        """The body whose graph this was made of."""
        inputs = tuple(
            replace(one, internal=self.renumbered.get(one.internal, one.internal))
            for one in body.inputs
        )
        back = tuple(
            replace(one, to_layer=self.renumbered.get(one.to_layer, one.to_layer))
            for one in body.back_edges
        )
        return replace(body, graph=self.graph, inputs=inputs, back_edges=back)


@dataclass(frozen=True, slots=True)
class _Rounding:
    """One graph, and what is rounded in it."""

    place: PlacedGraph
    patterns: Sequence[_Asked]
    known: Propagated
    indices: frozenset[Value]
    inside: Mapping[int, _Made]
    used: set[str]
    unrounded: list[str]

    def made(self) -> _Made:
        graph = self.place.graph
        nodes, edges = list[Node](), list[Edge]()
        after: dict[tuple[LayerId, int], LayerId] = {}
        renumbered: dict[LayerId, LayerId] = {}
        taken = {node.name for node in graph.nodes}
        free = map(LayerId, count(max(graph.by_id, default=-1) + 1))
        for node in graph.nodes:
            inner = replace(
                node, bodies=tuple(self.inside[id(body.graph)].body(body) for body in node.bodies)
            )
            asked = dict(self._asked(node))
            if node.constant is not None and asked:
                inner, asked = (
                    replace(
                        inner, constant=Constant.of(round_to(node.constant.array(), to=asked[0]))
                    ),
                    {},
                )
            elif asked and self._hands_over_its_name(node):
                renumbered[node.id] = next(free)
                inner = _renamed(
                    inner, renumbered[node.id], _free_name(f"{node.name} before rounding", taken)
                )
            nodes.append(inner)
            for output, to in asked.items():
                layer = node.id if node.id in renumbered else next(free)
                name = (
                    node.name
                    if node.id in renumbered
                    else _free_name(_rounded_name(node, output), taken)
                )
                nodes.append(_round_node(layer, name, node.outputs[output], to))
                after[node.id, node.outputs[output].id] = layer
                edges.append(Edge(inner.id, node.outputs[output].id, layer, 0))
        for edge in graph.edges:
            to_layer = renumbered.get(edge.to_layer, edge.to_layer)
            rounding = after.get((edge.from_layer, edge.from_port))
            edges.append(
                edge._replace(to_layer=to_layer)
                if rounding is None
                else Edge(rounding, 1, to_layer, edge.to_port)
            )
        return _Made(replace(graph, nodes=tuple(nodes), edges=tuple(edges)), renumbered)

    def _asked(self, node: Node) -> Iterator[tuple[int, str]]:
        """The outputs that are rounded, each with its type."""
        if node.type == "Result":
            return
        address = f"{self.place.address}/{self.place.labels[node.id]}"
        for output, port in enumerate(node.outputs):
            element_type = (
                self.known.output(self.place.address, node.id, output).element_type
                or port.element_type
            )
            if port.form != "tensor" or (
                element_type is not None and element_type not in REAL_FLOATS
            ):
                continue
            naming = [one for one in self.patterns if one.pattern.names(address, output)]
            self.used.update(one.text for one in naming)
            if (
                naming
                and len(naming[-1].pattern.parts) > 1
                and (self.place.address, node.id, output) in self.indices
            ):
                self.unrounded.append(f"{address}:{output}" if output else address)
            elif naming:
                yield output, naming[-1].to

    def _hands_over_its_name(self, node: Node) -> bool:
        is_input = node.type == "Parameter" and self.place.owner is None
        return not is_input and not node.bodies and len(node.outputs) == 1


def _rounded_name(node: Node, output: int) -> str:
    return f"{node.name}{f':{output}' if output else ''} rounded"


def _free_name(name: str, taken: set[str]) -> str:
    """A name that no node of the graph has, so that the addresses of those that are there stay
    what they are.
    """
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _renamed(node: Node, layer: LayerId, name: str) -> Node:
    """The operation that gives what is rounded; its name, number and tensor names go to what
    comes out, and so its address.
    """
    return replace(
        node, id=layer, name=name, outputs=tuple(replace(port, names=()) for port in node.outputs)
    )


def _round_node(layer: LayerId, name: str, port: Port, to: str) -> Node:
    inputs = (Port(0, port.element_type, port.shape),)
    outputs = (Port(1, port.element_type, port.shape, port.names),)
    return Node(layer, name, ROUND_TO.name, ROUND_TO.opset, {"to": to}, inputs, outputs)
