"""Translation of Loop, TensorIterator and If to TensorFlow's While and If.

Bodies, branches and conditions become functions, whose arguments contain everything they read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    IF,
    LOOP,
    TENSOR_ITERATOR,
    Body,
    InputMap,
    LayerId,
    Node,
    OutputMap,
    Port,
)
from loopscope.ir.rt_info import window_of
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.write.tensorflow.graph_nodes import declared, write_graph
from loopscope.write.tensorflow.movement_rules import concatenate, gather, shape_of
from loopscope.write.tensorflow.nodes import (
    Function,
    GraphDefNodes,
    GraphDefTensor,
    data_type,
    with_port,
)

I64, BOOLEAN = ElementType.I64, ElementType.BOOLEAN
_ITERATION, _CONDITION, _TRIP_COUNT = range(3)
"""Indices of the first states of every loop: iteration, execution condition and trip count."""


def write_region(
    nodes: GraphDefNodes, node: Node, inputs: Sequence[GraphDefTensor], address: str
) -> Sequence[GraphDefTensor]:
    """Write a node with bodies, and return its outputs.

    ``WriteError`` if TensorFlow lacks its feature.
    """
    if node.type == IF:
        return _write_if(nodes, node, inputs, address)
    if node.type in (LOOP, TENSOR_ITERATOR) and not node.is_foreign:
        return _Loop(nodes, node, inputs, address, node.body("body")).write()
    raise WriteError(f"there is no translation of the graphs of {node.type}")


def _write_if(
    nodes: GraphDefNodes, node: Node, inputs: Sequence[GraphDefTensor], address: str
) -> Sequence[GraphDefTensor]:
    bodies = (node.body("then"), node.body("else"))
    reads_condition = any(entry.external == 0 for body in bodies for entry in body.inputs)
    first = 0 if reads_condition else 1
    arguments = inputs[first:]
    kinds = [tensor.element_type for tensor in arguments]
    results: list[ElementType] = []
    for port in node.outputs:
        if port.element_type is None:
            raise WriteError("the element type of an output of the If is not known")
        results.append(port.element_type)
    functions: dict[str, Any] = {}
    is_stateful = False
    for body in bodies:

        def write(
            inner: GraphDefNodes, arguments: Sequence[GraphDefTensor], body: Body = body
        ) -> list[GraphDefTensor]:
            sources = {entry.internal: arguments[entry.external - first] for entry in body.inputs}
            parameters = {
                parameter.id: with_port(sources[parameter.id], parameter.outputs[0])
                if parameter.id in sources
                else _zeros(inner, parameter)
                for parameter in body.graph.parameters
            }
            results = write_graph(
                body.graph, parameters, inner, f"{address}/{body.name}", write_region
            )
            return [results[entry.internal] for entry in body.outer_outputs]

        function, is_function_stateful = _write_function(
            nodes, f"{node.name}_{body.name}", arguments, write
        )
        functions[f"{body.name}_branch"] = function
        is_stateful |= is_function_stateful
    attributes: dict[str, Any] = {
        "Tcond": BOOLEAN,
        "Tin": kinds,
        "Tout": results,
        "output_shapes": [port.shape for port in node.outputs],
    }
    operands = [nodes.scalar(inputs[0]), *arguments]
    operation = "If" if is_stateful else "StatelessIf"
    return nodes.add(
        operation,
        operands,
        results,
        node.name,
        **attributes,
        **functions,
    )


def _zeros(nodes: GraphDefNodes, parameter: Node) -> GraphDefTensor:
    """Return the value of a Parameter without an input: zeros of its declared type and shape."""
    known = declared(parameter, "")
    if not known.shape.is_static:
        raise WriteError(
            f"the Parameter {parameter.name!r} of a body has no input, "
            f"and the shape {known.shape} of its zeros is not known"
        )
    return nodes.constant(np.zeros(known.shape.lengths, known.element_type.dtype))


def _write_function(
    nodes: GraphDefNodes,
    name: str,
    tensors: Sequence[GraphDefTensor],
    write: Callable[[GraphDefNodes, list[GraphDefTensor]], Sequence[GraphDefTensor]],
) -> tuple[Function, bool]:
    """Write a function with arguments like ``tensors`` and the results of ``write``.

    Return the function, and True if a node in it has a side effect.
    """
    definition, inner = nodes.add_function(name)
    arguments = []
    for index, argument in enumerate(tensors):
        definition.signature.input_arg.add(
            name=inner.unique_name(f"argument_{index}"), type=data_type(argument.element_type)
        )
        arguments.append(GraphDefTensor(f"argument_{index}", argument.element_type, argument.shape))
    for index, result in enumerate(write(inner, arguments)):
        definition.signature.output_arg.add(
            name=f"result_{index}", type=data_type(result.element_type)
        )
        definition.ret[f"result_{index}"] = inner.add_one(
            "Identity", [result], result.element_type, T=result.element_type
        ).text
    definition.signature.is_stateful = inner.stateful
    return Function(definition.signature.name), inner.stateful


@dataclass(slots=True)
class _Loop:
    """A loop as a While.

    Its states that change come first: iteration, condition, carried and collected values. Constant
    states follow.
    """

    nodes: GraphDefNodes
    node: Node
    inputs: Sequence[GraphDefTensor]
    address: str
    body: Body
    states: list[GraphDefTensor] = field(default_factory=list[GraphDefTensor])
    carried: dict[LayerId, int] = field(default_factory=dict[LayerId, int])
    """Index of the state that a Parameter reads, or that stores the last value of a Result."""
    collected: dict[int, int] = field(default_factory=dict[int, int])
    """Index of the state that collects the parts of a concatenated output, by its number."""
    outer: dict[int, int] = field(default_factory=dict[int, int])
    """Index of the state that passes an input of the node into the body, by the input's number."""

    def write(self) -> Sequence[GraphDefTensor]:
        self._add_states()
        condition, _ = _write_function(
            self.nodes, f"{self.node.name}_cond", self.states, self._condition
        )
        iteration, is_stateful = _write_function(
            self.nodes, f"{self.node.name}_body", self.states, self._iteration
        )
        kinds = [state.element_type for state in self.states]
        attributes: dict[str, Any] = {
            "T": kinds,
            "cond": condition,
            "body": iteration,
            "output_shapes": [DYNAMIC] * len(kinds),
        }
        operation = "While" if is_stateful else "StatelessWhile"
        window = window_of(self.node)
        final_states = self.nodes.add(
            operation, self.states, kinds, self.node.name, **attributes, parallel_iterations=window
        )
        return [final_states[self._state_of(entry)] for entry in self.body.outer_outputs]

    # Initial states

    def _add_states(self) -> None:
        nodes, body = self.nodes, self.body
        is_loop = self.node.type == LOOP
        entries = {entry.internal: entry for entry in body.inputs}
        trip_count = (
            nodes.scalar(nodes.cast(self.inputs[0], I64))
            if is_loop
            else self._slices(list(entries.values()))
        )
        condition = nodes.scalar(self.inputs[1]) if is_loop else nodes.constant(np.bool_(True))
        self.states = [nodes.constant(np.int64(0)), condition, trip_count]
        for edge in body.back_edges:
            entry = entries.get(edge.to_layer)
            if entry is None or entry.external < 0:
                raise WriteError("a carried value of the loop has no initial value")
            self.carried[edge.to_layer] = self._add(self.inputs[entry.external])
        for output in body.outer_outputs:
            result = _declared_port(body, output.internal)
            if output.axis is not None:
                self.collected[output.external] = self._add(
                    self._empty(result.element_type, _empty_shape(result.shape, output.axis))
                )
            elif not any(edge.from_layer == output.internal for edge in body.back_edges):
                self.carried[output.internal] = self._add(
                    self._empty(result.element_type, result.shape)
                )
        for entry in entries.values():
            if (
                entry.external >= 0
                and entry.internal not in self.carried
                and entry.external not in self.outer
            ):
                self.outer[entry.external] = self._add(self.inputs[entry.external])

    def _add(self, tensor: GraphDefTensor) -> int:
        self.states.append(tensor)
        return len(self.states) - 1

    def _empty(self, kind: ElementType | None, shape: PartialShape) -> GraphDefTensor:
        if kind is None or not shape.is_static:
            raise WriteError(
                f"an output of the loop has parts of {kind}{shape}: expected known lengths, "
                "because TensorFlow needs an initial value"
            )
        return self.nodes.constant(np.zeros(shape.lengths, kind.dtype))

    def _slices(self, entries: Sequence[InputMap]) -> GraphDefTensor:
        """Return the number of slices that a TensorIterator iterates over."""
        sliced = next((entry for entry in entries if entry.axis is not None), None)
        if sliced is None:
            raise WriteError("no input is sliced, so its iteration count is not known")
        return self._length(self.nodes, self.inputs[sliced.external], sliced)

    @staticmethod
    def _length(nodes: GraphDefNodes, tensor: GraphDefTensor, entry: InputMap) -> GraphDefTensor:
        axis = nodes.constant(np.int64(entry.axis or 0))
        return gather(nodes, shape_of(nodes, tensor), axis, nodes.constant(np.int64(0)))

    # Contents of the functions

    def _condition(
        self, inner: GraphDefNodes, states: Sequence[GraphDefTensor]
    ) -> list[GraphDefTensor]:
        zero = inner.constant(np.int64(0))
        endless = inner.add_one("Less", [states[_TRIP_COUNT], zero], BOOLEAN, T=I64)
        remaining = inner.add_one("Less", [states[_ITERATION], states[_TRIP_COUNT]], BOOLEAN, T=I64)
        allowed = inner.add_one("LogicalOr", [endless, remaining], BOOLEAN)
        return [inner.add_one("LogicalAnd", [states[_CONDITION], allowed], BOOLEAN)]

    def _iteration(
        self, inner: GraphDefNodes, states: Sequence[GraphDefTensor]
    ) -> list[GraphDefTensor]:
        body = self.body
        entries = {entry.internal: entry for entry in body.inputs}
        parameters = {
            parameter.id: self._parameter(inner, parameter, entries, states)
            for parameter in body.graph.parameters
        }
        results = write_graph(
            body.graph, parameters, inner, f"{self.address}/{body.name}", write_region
        )
        next_states = list(states)
        next_states[_ITERATION] = inner.add_one(
            "AddV2", [states[_ITERATION], inner.constant(np.int64(1))], I64, T=I64
        )
        condition = next(
            (entry.internal for entry in body.outputs if entry.purpose == "execution_condition"),
            None,
        )
        if condition is not None:
            next_states[_CONDITION] = inner.scalar(results[condition])
        for edge in body.back_edges:
            next_states[self.carried[edge.to_layer]] = results[edge.from_layer]
        for output in body.outer_outputs:
            if output.axis is not None:
                index = self.collected[output.external]
                parts = [states[index], results[output.internal]]
                next_states[index] = concatenate(
                    inner, parts if _is_forward(output) else parts[::-1], output.axis
                )
            elif output.internal in self.carried:
                next_states[self.carried[output.internal]] = results[output.internal]
        return next_states

    def _parameter(
        self,
        inner: GraphDefNodes,
        node: Node,
        entries: Mapping[LayerId, InputMap],
        states: Sequence[GraphDefTensor],
    ) -> GraphDefTensor:
        entry = entries.get(node.id)
        known = declared(node, "")
        if node.id in self.carried:
            return with_port(states[self.carried[node.id]], node.outputs[0])
        if entry is None:
            return _zeros(inner, node)
        if entry.is_iteration_number:
            number = inner.cast(states[_ITERATION], known.element_type)
            return number if known.shape.rank == 0 else inner.reshape_to(number, [1])
        tensor = states[self.outer[entry.external]]
        if entry.axis is None:
            return with_port(tensor, node.outputs[0])
        number = states[_ITERATION]
        if not _is_forward(entry):
            last = inner.add_one(
                "Sub", [self._length(inner, tensor, entry), inner.constant(np.int64(1))], I64, T=I64
            )
            number = inner.add_one("Sub", [last, number], I64, T=I64)
        part = gather(
            inner, tensor, inner.reshape_to(number, [1]), inner.constant(np.int64(entry.axis))
        )
        return with_port(part, node.outputs[0])

    def _state_of(self, output: OutputMap) -> int:
        if output.axis is not None:
            return self.collected[output.external]
        carried = next(
            (edge.to_layer for edge in self.body.back_edges if edge.from_layer == output.internal),
            output.internal,
        )
        return self.carried[carried]


def _declared_port(body: Body, result: LayerId) -> Port:
    """Return the declared port that feeds a Result of the body."""
    source = body.graph.sources[result][0]
    return body.graph.by_id[result].inputs[0] if source is None else body.graph.tensor(source)


def _is_forward(entry: InputMap | OutputMap) -> bool:
    """Return True if the slices are traversed from first to last, False if from last to first.

    ``WriteError`` for other traversals.
    """
    match entry.start, entry.end, entry.stride, entry.part_size:
        case 0, -1, 1, 1:
            return True
        case -1, 0, -1, 1:
            return False
        case _:
            raise WriteError(
                "the loop takes slices of several elements, or does not take all of them"
            )


def _empty_shape(shape: PartialShape, axis: int) -> PartialShape:
    """Return the shape of an empty collection along an axis."""
    if not shape.is_static:
        return shape
    lengths = list(shape.lengths)
    lengths[axis] = 0
    return PartialShape.of(lengths)
