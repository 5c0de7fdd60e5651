"""Propagation of element types, shapes and small values through a model before it runs."""

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
from loopscope.ops.kernel_arithmetic import input_groups

GraphAddress = str
_ROUNDS = 8
"""Rounds after which the shapes of carried values become unknown. After twice as many, all
Parameters of the body do.
"""
_RULE_FAULTS = (TypeError, LookupError, ArithmeticError, AttributeError)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A node whose inputs contradict its operation's rule for shapes and types."""

    graph: GraphAddress
    layer: LayerId
    message: str
    of_types: bool = False
    """True if the element types alone are contradictory, for any shapes and values."""


@dataclass(frozen=True, slots=True, eq=False)
class Propagated:
    """Knowledge about all outputs of all nodes; for a Result, about its input."""

    known: Mapping[tuple[GraphAddress, LayerId], tuple[Known, ...]]
    contradictions: tuple[Contradiction, ...] = ()
    mixed: Mapping[tuple[GraphAddress, LayerId], Sequence[Known]] = field(default_factory=dict)
    """Inputs of nodes whose operands have several element types although the specification requires
    one.
    """

    def output(self, graph: GraphAddress, layer: LayerId, output: int = 0) -> Known:
        """Return the knowledge about one output, or ``NOTHING_KNOWN`` if it does not exist."""
        outputs = self.known.get((graph, layer), ())
        return outputs[output] if output < len(outputs) else NOTHING_KNOWN

    def inputs(self, graph: GraphAddress, sources: Sequence[OutputRef | None]) -> list[Known]:
        """Return the knowledge about the tensors that feed a node of a graph."""
        return [
            NOTHING_KNOWN if source is None else self.output(graph, source.layer, source.output)
            for source in sources
        ]


def propagate(
    model: Model,
    catalogue: Catalogue,
    inputs: Mapping[LayerId, Known] | None = None,
    *,
    computes_declared: bool = False,
) -> Propagated:
    """Propagate types, shapes and values through a model; ``inputs`` replaces the declarations of
    the model's Parameters.

    ``computes_declared`` computes values also of operations without a shape function, which are
    most of ONNX's, from the shapes that ONNX inferred.

    No model content makes it raise: outputs of an unknown operation are unknown. Bodies are
    repeated until their Parameters no longer change, within a bounded number of rounds.
    """
    walk = _Walk(model, catalogue, computes_declared)
    parameters = {
        node.id: (inputs or {}).get(node.id) or knowledge.declared(node)
        for node in model.graph.parameters
    }
    with np.errstate(all="ignore"):
        walk.run(parameters)
    return Propagated(walk.known, tuple(walk.contradictions.values()), walk.mixed)


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A node with everything that its evaluation needs in each round."""

    node: Node
    sources: tuple[OutputRef | None, ...]
    operation: Operation | None
    attributes: Mapping[str, Any] | None

    @property
    def is_region(self) -> bool:
        """True if the node is control flow. Bodies of other operations are checked without binding
        inputs to them.
        """
        return bool(self.node.bodies) and (
            self.operation is None or self.operation.role is Role.REGION
        )


@dataclass(slots=True, eq=False)
class _Frame:
    """A graph under evaluation."""

    address: GraphAddress
    rows: Sequence[_Row]
    parameters: region.Bindings
    position: int = 0


@dataclass(slots=True, eq=False)
class _BodyState:
    """Knowledge about one body over all its iterations, and those of the loops around it."""

    parameters: region.Bindings
    rounds: int = 0


@dataclass(slots=True, eq=False)
class _Walk:
    model: Model
    catalogue: Catalogue
    computes_declared: bool
    known: dict[tuple[GraphAddress, LayerId], tuple[Known, ...]] = field(default_factory=dict)
    contradictions: dict[tuple[GraphAddress, LayerId], Contradiction] = field(default_factory=dict)
    rows: dict[GraphAddress, Sequence[_Row]] = field(default_factory=dict)
    graphs: dict[GraphAddress, ModelGraph] = field(default_factory=dict)
    labels: dict[GraphAddress, Mapping[LayerId, str]] = field(default_factory=dict)
    bodies: dict[GraphAddress, _BodyState] = field(default_factory=dict)
    operations: dict[tuple[str, str], Operation | None] = field(default_factory=dict)
    mixed: dict[tuple[GraphAddress, LayerId], list[Known]] = field(default_factory=dict)
    """Operands of several types where one is specified. They are not removed when later rounds know
    less, because they are true of the first iteration.
    """

    def run(self, parameters: region.Bindings) -> None:
        """Evaluate the outermost graph, and bodies when their nodes are reached; an explicit stack
        replaces recursion.
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
        """Evaluate rows until a body must be evaluated first; return that body's frame, or None at
        the end.
        """
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
        missing = self._declared_outputs(frame.address, row, inputs)
        if operation is None or row.attributes is None or len(inputs) < operation.inputs[0]:
            return tuple(missing)
        if operation.infer is None:
            computes = self.computes_declared and not self.catalogue.is_foreign(operation)
            return tuple(
                knowledge.computed(operation, inputs, row.attributes, missing)
                if computes
                else missing
            )
        inferred = self._inferred(frame.address, row, operation, inputs)
        return (*inferred, *missing[len(inferred) :])

    def _declared_output(self, port: Port) -> Known:
        """Return an output's type and shape from ONNX's own inference. IR operations are inferred
        here instead, so nothing is known.
        """
        return (
            Known(port.element_type, port.shape) if self.model.dialect == "onnx" else NOTHING_KNOWN
        )

    def _declared_outputs(
        self, address: GraphAddress, row: _Row, inputs: Sequence[Known]
    ) -> list[Known]:
        """Return the declared outputs, with the element types that ONNX's schema determines."""
        declared = [self._declared_output(port) for port in row.node.outputs]
        operation = row.operation
        if operation is not None and operation.alike:
            inputs = self._operands(address, row.node, operation, inputs)
        types = (
            operation.output_types(inputs, row.attributes or {})
            if operation is not None and operation.output_types
            else ()
        )
        output_types = (
            types[min(index, len(types) - 1)] if types else None for index in range(len(declared))
        )
        return [
            known if type is None else Known(type, known.shape)
            for known, type in zip(declared, output_types, strict=True)
        ]

    def _operands(
        self, address: GraphAddress, node: Node, operation: Operation, inputs: Sequence[Known]
    ) -> Sequence[Known]:
        """Return the inputs, or those of an earlier round whose element types differed from each
        other.
        """
        groups = input_groups(operation.alike, len(inputs))
        types = [{inputs[index].element_type for index in group} - {None} for group in groups]
        if any(len(group_types) > 1 for group_types in types):
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
            # The first contradiction is retained when later rounds know less: it is true of the
            # first iteration.
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
        """Return the frame of the next body to evaluate, or None once no body's Parameters change;
        the node's outputs are known then.
        """
        node, states = row.node, []
        for body in node.bodies:
            place = self._place(address, node, body)
            state = self.bodies.get(place)
            body_state = (
                region.BodyState(body, state.parameters, self._results(place, body))
                if state
                else None
            )
            parameters_now = region.bindings(node, body, outer, body_state)
            parameters = _drop_knowledge(parameters_now, body, state.rounds if state else 0)
            if state is None or body_state is None or not _all_same(state.parameters, parameters):
                self.bodies[place] = _BodyState(parameters, state.rounds + 1 if state else 1)
                return _Frame(place, self._rows(place, body.graph), parameters)
            states.append(body_state)
        self.known[address, node.id] = self._after_region(row, outer, states)
        return None

    def _after_region(
        self, row: _Row, outer: Sequence[Known], states: Sequence[region.BodyState]
    ) -> tuple[Known, ...]:
        node = row.node
        if node.is_foreign:
            return tuple(self._declared_output(port) for port in node.outputs)
        outputs = (
            region.chosen(outer, states)
            if node.type == IF
            else region.iterated(node, outer, states[0])
        )
        return (*outputs, *[NOTHING_KNOWN] * (len(node.outputs) - len(outputs)))

    def _place(self, address: GraphAddress, node: Node, body: Body) -> GraphAddress:
        if address not in self.labels:
            self.labels[address] = labels(self.graphs[address])
        return f"{address}/{self.labels[address][node.id]}/{body.name}"

    def _results(self, place: GraphAddress, body: Body) -> region.Bindings:
        # With two layers of one id, which the checks reject, the entry may be of a layer without
        # outputs.
        return {
            result.id: (self.known.get((place, result.id)) or (NOTHING_KNOWN,))[0]
            for result in body.graph.results
        }


def _type_contradiction(
    operation: Operation, inputs: Sequence[Known], attributes: Mapping[str, Any]
) -> str:
    """Return the message of the operation's rule for the element types alone, or "" if they are
    valid.
    """
    try:
        if operation.infer is not None:
            operation.infer([Known(known.element_type) for known in inputs], attributes)
    except ValueError as problem:
        return str(problem) or "the element types do not fit"
    except _RULE_FAULTS:
        pass
    return ""


def _drop_knowledge(parameters: region.Bindings, body: Body, rounds: int) -> region.Bindings:
    """Drop knowledge after many rounds: first the shapes of carried values, then everything."""
    if rounds < _ROUNDS:
        return parameters
    if rounds >= 2 * _ROUNDS:
        return dict.fromkeys(parameters, NOTHING_KNOWN)
    carried = {edge.to_layer for edge in body.back_edges}
    return {
        layer: Known(known.element_type) if layer in carried else known
        for layer, known in parameters.items()
    }


def _all_same(left: region.Bindings, right: region.Bindings) -> bool:
    return all(knowledge.same(known, right[layer]) for layer, known in left.items())
