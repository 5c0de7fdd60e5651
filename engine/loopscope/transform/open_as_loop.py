"""Replacement of operators that are loops over time by these loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from loopscope.builder.graph_builder import Graph
from loopscope.builder.tensor import Tensor
from loopscope.checks.propagate import Propagated, propagate
from loopscope.errors import AddressError, BuildError, shorten
from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.address_search import AddressPattern, address_patterns
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef, expect_model
from loopscope.ir.replace import replace
from loopscope.ir.rt_info import opened_from
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import AttributeProblem, Known, typed
from loopscope.ops.dialect import catalogue_for, to_build_beside
from loopscope.transform.graph_edits import unused_name
from loopscope.transform.recurrences.opening import Opening, span_all_steps
from loopscope.transform.recurrences.table import Recurrence, recurrence_of

ALL = "all"
"""Word that selects every operator that is a loop."""


def open_as_loop(
    model: Model, address: str | Sequence[str] = ALL, catalogue: Catalogue = CATALOGUE
) -> Model:
    """Return the model in which operators such as LSTM are Loops of the same name.

    ``address``: ``main/decoder/LSTM``, a unique end of an address, a pattern with ``*``, several of
    these, or ``all``. The Loop has the operator's outputs in their order and their tensor names.
    Its body has named gates (``main/LSTM[7]/body/forget_gate``) and carried values (``hidden``,
    ``cell``). It computes the same up to the rounding of sums in another order.

    ``AddressError`` if no such operator exists at an address. ``BuildError`` if an operator cannot
    be opened, such as one with an input of unknown type; ``all`` lists those in the model's
    ``notes`` instead.
    """
    expect_model(model, "loopscope.open_as_loop")
    texts = [address] if isinstance(address, str) else list(address)
    selection = _Selection.of(model, texts)
    known = propagate(model, catalogue_for(model.dialect, catalogue))
    opened: dict[int, ModelGraph] = {}
    for place in reversed(list(graphs(model))):
        opened[id(place.graph)] = _OpenedGraph(
            model, place, known, selection, opened, catalogue
        ).build()
    selection.check_used()
    notes = (*model.notes, *reversed(selection.problems))
    return replace(
        model,
        graph=opened[id(model.graph)],
        notes=notes,
        file="",
        unopened=model.unopened or model,
    )


def openable(model: Model) -> Iterator[str]:
    """Yield the address of each operator that can be opened as a loop."""
    for place in graphs(model):
        for node in place.graph.nodes:
            if recurrence_of(node, model.dialect) is not None:
                yield f"{place.address}/{place.labels[node.id]}"


@dataclass(slots=True)
class _Selection:
    """Operators that the caller named."""

    texts: Sequence[str]
    patterns: Sequence[AddressPattern]
    includes_all: bool
    used: set[int] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    @staticmethod
    def of(model: Model, texts: Sequence[str]) -> _Selection:
        named = [text for text in texts if text != ALL]
        patterns = list(address_patterns(model, named))
        return _Selection(named, patterns, ALL in texts)

    def names(self, address: str) -> bool:
        """Return True if the caller named the operator at an address; mark its text as used."""
        matches = {
            number for number, pattern in enumerate(self.patterns) if pattern.names(address, 0)
        }
        self.used |= matches
        return bool(matches)

    def check_used(self) -> None:
        """Raise ``AddressError`` for a text that named no operator that is a loop."""
        for number, text in enumerate(self.texts):
            if number not in self.used:
                raise AddressError(
                    f"{shorten(text)!r} is not an operator that is a loop, "
                    "expected the address of an LSTM, GRU, LinearAttention, CumSum or another one"
                )


@dataclass(frozen=True, slots=True)
class _OpenedGraph:
    """A graph whose selected operators are replaced by loops."""

    model: Model
    place: PlacedGraph
    known: Propagated
    selection: _Selection
    inside: dict[int, ModelGraph]
    """Opened graphs of bodies, by the identity of the original graph."""
    catalogue: Catalogue

    def build(self) -> ModelGraph:
        """Return the graph; the original one if nothing in it is opened."""
        graph = self.place.graph
        nodes: list[Node] = []
        edges = list(graph.edges)
        names = {node.name for node in graph.nodes}
        for node in graph.nodes:
            loop = self._loop_of(node)
            if loop is None:
                nodes.append(self._with_opened_bodies(node))
                continue
            first = LayerId(max((other.id for other in (*graph.nodes, *nodes)), default=-1) + 1)
            replacement = _Splice(graph, node, loop, first, names)
            edges = [*replacement.rewired(edges), *replacement.edges]
            nodes += replacement.nodes
        unchanged = all(new is old for new, old in zip(nodes, graph.nodes, strict=False))
        if unchanged and len(nodes) == len(graph.nodes):
            return graph
        return replace(graph, nodes=tuple(nodes), edges=tuple(edges))

    def _with_opened_bodies(self, node: Node) -> Node:
        if all(self.inside[id(body.graph)] is body.graph for body in node.bodies):
            return node
        bodies = tuple(replace(body, graph=self.inside[id(body.graph)]) for body in node.bodies)
        return replace(node, bodies=bodies)

    def _loop_of(self, node: Node) -> _Fragment | None:
        """Return the loop of an operator; None if it is not selected or cannot be opened."""
        recurrence = recurrence_of(node, self.model.dialect)
        if recurrence is None:
            return None
        address = f"{self.place.address}/{self.place.labels[node.id]}"
        is_named = self.selection.names(address)
        if not is_named and not self.selection.includes_all:
            return None
        try:
            return self._fragment(node, recurrence)
        except BuildError as problem:
            message = f"{address}: {node.type} is not opened as a loop: {problem}"
            if is_named:
                raise BuildError(message) from None
            self.selection.problems.append(message)
            return None

    def _fragment(self, node: Node, recurrence: Recurrence) -> _Fragment:
        operation = catalogue_for(self.model.dialect, self.catalogue).find(node.type, node.opset)
        if operation is None:
            raise BuildError(f"{node.type} ({node.opset}) is unknown")
        try:
            attributes = typed(operation, node.attributes)
        except AttributeProblem as problem:
            raise BuildError(str(problem)) from None
        graph = Graph("operator", catalogue=to_build_beside(self.model.dialect, self.catalogue))
        sources = {
            role: source
            for role, source in zip(
                recurrence.inputs, self.place.graph.sources[node.id], strict=False
            )
            if source is not None
        }
        axis = 1 if attributes.get("layout") else recurrence.time_axis
        lengths = sources.get("lengths")
        if (
            lengths is not None
            and axis is not None
            and span_all_steps(
                self.place.graph, lengths, sources[recurrence.data], axis, self._known
            )
        ):
            del sources["lengths"]
        inputs = {
            role: graph.frame.parameter(role, self._known(source))
            for role, source in sources.items()
        }
        info = opened_from(node.type, node.opset)
        with graph:
            outputs = recurrence.build(Opening(graph, LOOP_NAME, inputs, attributes, info))
        self._check_outputs(node, len(outputs))
        return _Fragment(recurrence, graph, inputs, outputs)

    def _check_outputs(self, node: Node, count: int) -> None:
        """Raise ``BuildError`` if something reads an output that the loop does not compute."""
        for source in self.place.graph.consumers:
            if source.layer == node.id and source.output >= count:
                raise BuildError(f"output {source.output} is read, and the loop computes {count}")

    def _known(self, source: OutputRef) -> Known:
        known = self.known.output(self.place.address, source.layer, source.output)
        if known.element_type is None:
            port = self.place.graph.tensor(source)
            known = Known(port.element_type, known.shape, known.value, known.partial)
        return known


LOOP_NAME = "loop"
"""Name of the Loop while it is built; it becomes that of the operator."""


@dataclass(frozen=True, slots=True)
class _Fragment:
    """The graph of an opened operator, before it takes the operator's place."""

    recurrence: Recurrence
    graph: Graph
    inputs: dict[str, Tensor]
    outputs: tuple[Tensor, ...]


class _Splice:
    """The nodes and edges that replace an operator.

    The Loop takes over its id and name. Other nodes are named ``<operator>/<name>``.
    """

    def __init__(
        self,
        graph: ModelGraph,
        operator: Node,
        fragment: _Fragment,
        first: LayerId,
        names: set[str],
    ) -> None:
        self._graph, self._operator, self._fragment = graph, operator, fragment
        self._ids: dict[LayerId, LayerId] = {}
        frame = fragment.graph.frame
        parameters = {tensor.source.layer for tensor in fragment.inputs.values()}
        own = [node for node in frame.nodes if node.id not in parameters]
        loop = next(node.id for node in own if node.bodies)
        for number, node in enumerate(node for node in own if node.id != loop):
            self._ids[node.id] = LayerId(first + number)
        self._ids[loop] = operator.id
        tensor_names = dict(self._tensor_names())
        self.nodes = [
            replace(
                node,
                id=self._ids[node.id],
                name=operator.name
                if node.id == loop
                else unused_name(f"{operator.name}/{node.name}", names),
                line=operator.line,
                outputs=tuple(
                    replace(port, names=tensor_names.get((node.id, port.id), ()))
                    for port in node.outputs
                ),
            )
            for node in own
        ]
        self.edges = [self._edge(edge) for edge in frame.edges]

    def _tensor_names(self) -> Iterator[tuple[tuple[LayerId, int], tuple[str, ...]]]:
        """Yield the tensor names of the operator's outputs, by node and port of the fragment."""
        for port, tensor in zip(self._operator.outputs, self._fragment.outputs, strict=False):
            yield self._port(tensor), port.names

    def _port(self, tensor: Tensor) -> tuple[LayerId, int]:
        layer, output = tensor.source.layer, tensor.source.output
        return layer, self._fragment.graph.frame.nodes[layer].outputs[output].id

    def _edge(self, edge: Edge) -> Edge:
        """Return an edge of the fragment in the graph of the operator."""
        to_layer = self._ids[edge.to_layer]
        if edge.from_layer in self._ids:
            return edge._replace(from_layer=self._ids[edge.from_layer], to_layer=to_layer)
        roles = list(self._fragment.recurrence.inputs)
        role = next(
            role
            for role, tensor in self._fragment.inputs.items()
            if tensor.source.layer == edge.from_layer
        )
        source = self._graph.sources[self._operator.id][roles.index(role)]
        assert source is not None, "a role without an input has no Parameter"
        port = self._graph.tensor(source)
        return Edge(source.layer, port.id, to_layer, edge.to_port)

    def rewired(self, edges: Sequence[Edge]) -> Iterator[Edge]:
        """Yield the edges of the graph without those into the operator, and with those out of it
        from the nodes that replace it.
        """
        outputs = {
            port.id: self._port(tensor)
            for port, tensor in zip(self._operator.outputs, self._fragment.outputs, strict=False)
        }
        for edge in edges:
            if edge.to_layer == self._operator.id:
                continue
            if edge.from_layer == self._operator.id and edge.from_port in outputs:
                layer, port = outputs[edge.from_port]
                yield edge._replace(from_layer=self._ids[layer], from_port=port)
            else:
                yield edge
