"""Rounding of some values of a model to a narrower type wherever they are computed or carried.

It answers how the model behaves if these values are stored in that type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from loopscope.checks.propagate import Propagated, propagate
from loopscope.errors import AddressError, InputError, shorten
from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.address_search import AddressPattern, address_patterns
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import Body, Edge, LayerId, Model, ModelGraph, Node, Port
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.dialect import catalogue_for
from loopscope.ops.quantization import NARROWER, ROUND_TO, round_to
from loopscope.transform.graph_edits import unused_name
from loopscope.transform.index_arithmetic import Value, index_arithmetic


@dataclass(frozen=True, slots=True)
class RoundedModel:
    """A model with rounded values, and the addresses of matching values that were not rounded."""

    model: Model
    unrounded: tuple[str, ...]
    """Addresses that match a pattern with ``*`` and are not rounded.

    They reach only shapes, indices, trip counts and bounds of slices.
    """


def rounded(model: Model, rounding: Mapping[str, str], catalogue: Catalogue = CATALOGUE) -> Model:
    """Return the model of ``round_model``."""
    return round_model(model, rounding, catalogue).model


def round_model(
    model: Model, rounding: Mapping[str, str], catalogue: Catalogue = CATALOGUE
) -> RoundedModel:
    """Return the model in which every float that a pattern matches is rounded to a type.

    The rounding applies in all iterations. The last matching pattern decides.

    A pattern is an address without iterations (``main/loop/body/state``, ``main/Split_4:1``;
    without an output number it selects all outputs), or a unique end of one, in any readable
    notation (``loop › state``). ``*`` matches any text, slashes included: ``main/*/state``, ``*``.
    A pattern selects the output of an operation, a Parameter of a body in each iteration (a carried
    value), or a Const.

    The rounded value takes over the address, also where several nodes share the name. The operation
    that computes it is renamed to ``... before rounding``. Inputs of the model, nodes with bodies
    and nodes with several outputs retain their names, and a node ``... rounded`` follows them. A
    pattern with ``*`` does not round values that ``index_arithmetic`` lists.

    ``InputError`` for a type other than bf16, f16, f8e4m3, f8e5m2, int8 (per row) and int4 (per
    group). ``AddressError`` for a pattern that matches no float, or without ``*`` is the end of
    several addresses.
    """
    patterns = list(_patterns(model, rounding))
    known = propagate(model, catalogue_for(model.dialect, catalogue))
    indices = index_arithmetic(model, known)
    graphs_done: dict[int, _RoundedGraph] = {}
    used_texts: set[str] = set()
    unrounded: list[str] = []
    for place in reversed(list(graphs(model))):
        graphs_done[id(place.graph)] = _Rounding(
            place, patterns, known, indices, graphs_done, used_texts, unrounded
        ).build()
    unused = next((text for text in rounding if text not in used_texts), None)
    if unused is not None:
        raise AddressError(
            f"{shorten(unused)!r} matches no float value, so nothing is rounded: expected an "
            "address without iterations such as main/loop/body/state, or the end of one; "
            "* stands for any text"
        )
    return RoundedModel(
        replace(model, graph=graphs_done[id(model.graph)].graph, file=""),
        tuple(reversed(unrounded)),
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern of addresses and the type to which the values are rounded."""

    text: str
    to: str
    pattern: AddressPattern


def _patterns(model: Model, rounding: Mapping[str, str]) -> Iterator[_Rule]:
    for (text, to), pattern in zip(
        rounding.items(), address_patterns(model, rounding), strict=True
    ):
        if to not in NARROWER:
            raise InputError(
                f"{shorten(text)!r} is to be rounded to {shorten(str(to))!r}: "
                f"expected {', '.join(NARROWER)}"
            )
        yield _Rule(text, to, pattern)


@dataclass(frozen=True, slots=True)
class _RoundedGraph:
    """A graph with rounded values, and the new ids of nodes whose ids the rounding took over."""

    graph: ModelGraph
    renumbered: Mapping[LayerId, LayerId]

    def body(self, body: Body) -> Body:
        """Return the body with the rounded graph."""
        inputs = tuple(
            replace(entry, internal=self.renumbered.get(entry.internal, entry.internal))
            for entry in body.inputs
        )
        back_edges = tuple(
            replace(entry, to_layer=self.renumbered.get(entry.to_layer, entry.to_layer))
            for entry in body.back_edges
        )
        return replace(body, graph=self.graph, inputs=inputs, back_edges=back_edges)


@dataclass(frozen=True, slots=True)
class _Rounding:
    """The rounding of one graph."""

    place: PlacedGraph
    patterns: Sequence[_Rule]
    known: Propagated
    indices: frozenset[Value]
    inside: Mapping[int, _RoundedGraph]
    used: set[str]
    unrounded: list[str]

    def build(self) -> _RoundedGraph:
        graph = self.place.graph
        nodes, edges = list[Node](), list[Edge]()
        rounded_layers: dict[tuple[LayerId, int], LayerId] = {}
        renumbered: dict[LayerId, LayerId] = {}
        names = {node.name for node in graph.nodes}
        unused_ids = map(LayerId, count(max(graph.by_id, default=-1) + 1))
        for node in graph.nodes:
            inner = replace(
                node, bodies=tuple(self.inside[id(body.graph)].body(body) for body in node.bodies)
            )
            types = dict(self._rounded_outputs(node))
            if node.constant is not None and types:
                inner = replace(
                    inner, constant=Constant.of(round_to(node.constant.array(), to=types[0]))
                )
                types = {}
            elif types and self._passes_on_its_name(node):
                renumbered[node.id] = next(unused_ids)
                inner = _rename_before_rounding(
                    inner, renumbered[node.id], unused_name(f"{node.name} before rounding", names)
                )
            nodes.append(inner)
            for output, to in types.items():
                layer = node.id if node.id in renumbered else next(unused_ids)
                name = (
                    node.name
                    if node.id in renumbered
                    else unused_name(_rounded_name(node, output), names)
                )
                nodes.append(_round_node(layer, name, node.outputs[output], to))
                rounded_layers[node.id, node.outputs[output].id] = layer
                edges.append(Edge(inner.id, node.outputs[output].id, layer, 0))
        for edge in graph.edges:
            to_layer = renumbered.get(edge.to_layer, edge.to_layer)
            rounding = rounded_layers.get((edge.from_layer, edge.from_port))
            edges.append(
                edge._replace(to_layer=to_layer)
                if rounding is None
                else Edge(rounding, 1, to_layer, edge.to_port)
            )
        return _RoundedGraph(replace(graph, nodes=tuple(nodes), edges=tuple(edges)), renumbered)

    def _rounded_outputs(self, node: Node) -> Iterator[tuple[int, str]]:
        """Yield the outputs that are rounded, each with its type."""
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
            rules = [rule for rule in self.patterns if rule.pattern.names(address, output)]
            self.used.update(rule.text for rule in rules)
            if (
                rules
                and len(rules[-1].pattern.parts) > 1
                and (self.place.address, node.id, output) in self.indices
            ):
                self.unrounded.append(f"{address}:{output}" if output else address)
            elif rules:
                yield output, rules[-1].to

    def _passes_on_its_name(self, node: Node) -> bool:
        is_input = node.type == "Parameter" and self.place.owner is None
        return not is_input and not node.bodies and len(node.outputs) == 1


def _rounded_name(node: Node, output: int) -> str:
    return f"{node.name}{f':{output}' if output else ''} rounded"


def _rename_before_rounding(node: Node, layer: LayerId, name: str) -> Node:
    """Return the operation under another name and id, without its tensor names.

    The node that rounds its output takes over name, id and tensor names, and so the address.
    """
    return replace(
        node, id=layer, name=name, outputs=tuple(replace(port, names=()) for port in node.outputs)
    )


def _round_node(layer: LayerId, name: str, port: Port, to: str) -> Node:
    inputs = (Port(0, port.element_type, port.shape),)
    outputs = (Port(1, port.element_type, port.shape, port.names),)
    return Node(layer, name, ROUND_TO.name, ROUND_TO.opset, {"to": to}, inputs, outputs)
