"""What is known of every tensor of a model before it runs: element types, shapes, and the values
of small constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.checks import known as knowledge
from loopscope.checks import region
from loopscope.checks.order import order
from loopscope.ir.address import ROOT, labels
from loopscope.ir.model import IF, Body, LayerId, Model, ModelGraph, Node, OutputRef, Port
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import NOTHING_KNOWN, AttributeProblem, Known, Operation, Role, typed
from loopscope.ops.mixed_types import input_groups

GraphAddress = str
_ROUNDS = 8
"""Rounds until a carried value's shape is given up; twice as many until everything that enters
the body is.
"""
_RULE_FAULTS = (TypeError, LookupError, ArithmeticError, AttributeError)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A node whose inputs contradict its operation's rule for shapes and types."""

    graph: GraphAddress
    layer: LayerId
    message: str
    of_types: bool = False
    """Whether the element types alone contradict it, whatever the shapes and values."""


@dataclass(frozen=True, slots=True, eq=False)
class Propagated:
    """What is known of every output of every node (of a Result: of its input)."""

    known: Mapping[tuple[GraphAddress, LayerId], tuple[Known, ...]]
    contradictions: tuple[Contradiction, ...] = ()
    mixed: Mapping[tuple[GraphAddress, LayerId], Sequence[Known]] = field(default_factory=dict)
    """Inputs of the nodes whose operands have several element types where the operation's
    specification has one.
    """

    def output(self, graph: GraphAddress, layer: LayerId, output: int = 0) -> Known:
        """What is known of one output; ``NOTHING_KNOWN`` where there is no such node or output."""
        outputs = self.known.get((graph, layer), ())
        return outputs[output] if output < len(outputs) else NOTHING_KNOWN

    def inputs(self, graph: GraphAddress, sources: Sequence[OutputRef | None]) -> list[Known]:
        """What is known of what feeds a node of that graph."""
        return [
            NOTHING_KNOWN if source is None else self.output(graph, source.layer, source.output)
            for source in sources
        ]


def propagate(
    model: Model, catalogue: Catalogue, inputs: Mapping[LayerId, Known] | None = None
) -> Propagated:
    """What is known of every tensor; ``inputs`` replaces what the file declares of the model's
    Parameters.

    Never raises for what a model says: an operation that is unknown gives outputs of which nothing
    is known. Bodies are gone through until nothing new is learnt of what enters them, which takes a
    bounded number of rounds.
    """
    walk = _Walk(model, catalogue)
    parameters = {
        node.id: (inputs or {}).get(node.id) or knowledge.declared(node)
        for node in model.graph.parameters
    }
    with np.errstate(all="ignore"):
        walk.run(parameters)
    return Propagated(walk.known, tuple(walk.contradictions.values()), walk.mixed)


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A node, ready to be asked again in every round."""

    node: Node
    sources: tuple[OutputRef | None, ...]
    operation: Operation | None
    attributes: Mapping[str, Any] | None

    @property
    def is_region(self) -> bool:
        """Whether the node is control flow; bodies of any other operation are checked without
        binding anything to them.
        """
        return bool(self.node.bodies) and (
            self.operation is None or self.operation.role is Role.REGION
        )


@dataclass(slots=True, eq=False)
class _Frame:
    """A graph that is being gone through."""

    address: GraphAddress
    rows: Sequence[_Row]
    parameters: region.Bindings
    position: int = 0


@dataclass(slots=True, eq=False)
class _BodyState:
    """What is known of one body after all rounds: of its iterations and of those of the loops
    around it.
    """

    parameters: region.Bindings
    rounds: int = 0


@dataclass(slots=True, eq=False)
class _Walk:
    model: Model
    catalogue: Catalogue
    known: dict[tuple[GraphAddress, LayerId], tuple[Known, ...]] = field(default_factory=dict)
    contradictions: dict[tuple[GraphAddress, LayerId], Contradiction] = field(default_factory=dict)
    rows: dict[GraphAddress, Sequence[_Row]] = field(default_factory=dict)
    graphs: dict[GraphAddress, ModelGraph] = field(default_factory=dict)
    labels: dict[GraphAddress, Mapping[LayerId, str]] = field(default_factory=dict)
    bodies: dict[GraphAddress, _BodyState] = field(default_factory=dict)
    operations: dict[tuple[str, str], Operation | None] = field(default_factory=dict)
    mixed: dict[tuple[GraphAddress, LayerId], list[Known]] = field(default_factory=dict)
    """Operands of several types where one is specified. They stay when less is known in later
    rounds: they hold for the first iteration.
    """

    def run(self, parameters: region.Bindings) -> None:
        """Go through the outermost graph and, on a stack of our own, through the bodies where
        their nodes come.
        """
        stack = [_Frame(ROOT, self._rows(ROOT, self.model.graph), parameters)]
        while stack:
            frame = stack[-1]
            inner = self._advance(frame)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)

    def _advance(self, frame: _Frame) -> _Frame | None:
        """Up to a body that has to be gone through first, or to the end (None)."""
        rows, address, known = frame.rows, frame.address, self.known
        while frame.position < len(rows):
            row = rows[frame.position]
            inputs = []
            for source in row.sources:
                outputs = known.get((address, source.layer), ()) if source is not None else ()
                inputs.append(
                    outputs[source.output]
                    if source is not None and source.output < len(outputs)
                    else NOTHING_KNOWN
                )
            if row.is_region:
                inner = self._region(
                    address, row, region.with_absent(row.node, row.sources, inputs)
                )
                if inner is not None:
                    return inner
            else:
                known[address, row.node.id] = self._outputs(frame, row, inputs)
            frame.position += 1
        return None

    def _rows(self, address: GraphAddress, graph: ModelGraph) -> Sequence[_Row]:
        if address not in self.rows:
            sources, nodes = graph.sources, graph.by_id
            self.graphs[address] = graph
            self.rows[address] = [
                self._row(nodes[layer], sources[layer]) for layer in order(graph).layers
            ]
        return self.rows[address]

    def _row(self, node: Node, sources: tuple[OutputRef | None, ...]) -> _Row:
        while sources and sources[-1] is None:
            sources = sources[:-1]
        key = (node.type, node.opset)
        if key not in self.operations:
            self.operations[key] = self.catalogue.find(*key)
        operation = self.operations[key]
        attributes = None
        if operation is not None:
            try:
                attributes = typed(operation, node.attributes)
            except (AttributeProblem, *_RULE_FAULTS):
                attributes = None
        return _Row(node, sources, operation, attributes)

    def _outputs(self, frame: _Frame, row: _Row, inputs: Sequence[Known]) -> tuple[Known, ...]:
        node, operation = row.node, row.operation
        role = operation.role if operation is not None else None
        if role is Role.PARAMETER or node.type == "Parameter":
            return (frame.parameters.get(node.id) or knowledge.declared(node),)
        if role is Role.CONSTANT or node.constant is not None:
            return (knowledge.of_constant(node),)
        if role is Role.RESULT or node.type == "Result":
            return (inputs[0] if inputs else NOTHING_KNOWN,)
        missing = self._settled(frame.address, row, inputs)
        if (
            operation is None
            or row.attributes is None
            or operation.infer is None
            or len(inputs) < operation.inputs[0]
        ):
            return tuple(missing)
        inferred = self._inferred(frame.address, row, operation, inputs)
        return (*inferred, *missing[len(inferred) :])

    def _said(self, port: Port) -> Known:
        """An output's type and shape as ONNX's own inference found them; nothing in an IR, whose
        operations infer them here.
        """
        return (
            Known(port.element_type, port.shape) if self.model.dialect == "onnx" else NOTHING_KNOWN
        )

    def _settled(self, address: GraphAddress, row: _Row, inputs: Sequence[Known]) -> list[Known]:
        """What is said of the outputs; their element types as ONNX's schema settles them, where
        it does.
        """
        said, operation = [self._said(port) for port in row.node.outputs], row.operation
        if operation is not None and operation.alike:
            inputs = self._operands(address, row.node, operation, inputs)
        types = (
            operation.output_types(inputs, row.attributes or {})
            if operation is not None and operation.output_types
            else ()
        )
        settled = (
            types[min(index, len(types) - 1)] if types else None for index in range(len(said))
        )
        return [
            known if type is None else Known(type, known.shape)
            for known, type in zip(said, settled, strict=True)
        ]

    def _operands(
        self, address: GraphAddress, node: Node, operation: Operation, inputs: Sequence[Known]
    ) -> Sequence[Known]:
        """Return the inputs, or those of an earlier round whose element types differed from each
        other.
        """
        groups = input_groups(operation.alike, len(inputs))
        types = [{inputs[index].element_type for index in group} - {None} for group in groups]
        if any(len(found) > 1 for found in types):
            self.mixed[address, node.id] = list(inputs)
        return self.mixed.get((address, node.id), inputs)

    def _inferred(
        self, address: GraphAddress, row: _Row, operation: Operation, inputs: Sequence[Known]
    ) -> Sequence[Known]:
        attributes = row.attributes or {}
        try:
            inferred = operation.infer(inputs, attributes) if operation.infer else ()
        except ValueError as problem:
            by_types = _type_contradiction(operation, inputs, attributes)
            message = by_types or str(problem)
            # It stays, also when less is known in later rounds: then it holds for the first
            # iteration.
            self.contradictions.setdefault(
                (address, row.node.id), Contradiction(address, row.node.id, message, bool(by_types))
            )
            return ()
        except _RULE_FAULTS:
            return ()
        if self.catalogue.is_foreign(operation):
            return inferred
        return knowledge.computed(operation, inputs, attributes, inferred)

    def _region(self, address: GraphAddress, row: _Row, outer: Sequence[Known]) -> _Frame | None:
        """The next body of a node to go through, or None when nothing new enters any of them;
        then its outputs are known.
        """
        node, insides = row.node, []
        for body in node.bodies:
            place = self._place(address, node, body)
            state = self.bodies.get(place)
            inside = (
                region.BodyState(body, state.parameters, self._results(place, body))
                if state
                else None
            )
            found = region.bindings(node, body, outer, inside)
            parameters = _given_up(found, body, state.rounds if state else 0)
            if state is None or inside is None or not _all_same(state.parameters, parameters):
                self.bodies[place] = _BodyState(parameters, state.rounds + 1 if state else 1)
                return _Frame(place, self._rows(place, body.graph), parameters)
            insides.append(inside)
        self.known[address, node.id] = self._after_region(row, outer, insides)
        return None

    def _after_region(
        self, row: _Row, outer: Sequence[Known], insides: Sequence[region.BodyState]
    ) -> tuple[Known, ...]:
        node = row.node
        if node.is_foreign:
            return tuple(self._said(port) for port in node.outputs)
        outputs = (
            region.chosen(outer, insides)
            if node.type == IF
            else region.iterated(node, outer, insides[0])
        )
        return (*outputs, *[NOTHING_KNOWN] * (len(node.outputs) - len(outputs)))

    def _place(self, address: GraphAddress, node: Node, body: Body) -> GraphAddress:
        if address not in self.labels:
            self.labels[address] = labels(self.graphs[address])
        return f"{address}/{self.labels[address][node.id]}/{body.name}"

    def _results(self, place: GraphAddress, body: Body) -> region.Bindings:
        # Of two layers with one id, which the checks refuse, what is known may be that of one
        # without outputs.
        return {
            result.id: (self.known.get((place, result.id)) or (NOTHING_KNOWN,))[0]
            for result in body.graph.results
        }


def _type_contradiction(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any]
) -> str:
    """What the operation's rule says against the element types alone; empty when it has nothing
    against them.
    """
    try:
        if operation.infer is not None:
            operation.infer([Known(known.element_type) for known in inputs], attributes)
    except ValueError as problem:
        return str(problem) or "the element types do not fit"
    except _RULE_FAULTS:
        pass
    return ""


def _given_up(parameters: region.Bindings, body: Body, rounds: int) -> region.Bindings:
    """After many rounds less is asked: no shapes of carried values, then nothing at all."""
    if rounds < _ROUNDS:
        return parameters
    if rounds >= 2 * _ROUNDS:
        return dict.fromkeys(parameters, NOTHING_KNOWN)
    carried = {edge.to_layer for edge in body.back_edges}
    return {
        layer: Known(known.element_type) if layer in carried else known
        for layer, known in parameters.items()
    }


def _all_same(one: region.Bindings, other: region.Bindings) -> bool:
    return all(knowledge.same(known, other[layer]) for layer, known in one.items())
