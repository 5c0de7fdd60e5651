"""Loop, TensorIterator and If as TensorFlow's While and If: what they run becomes functions, all
that these read their arguments.
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
from loopscope.ir.parallel_iterations import window_of
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.write.tensorflow.graph_nodes import declared, write_graph
from loopscope.write.tensorflow.movement_rules import gathered, joined, shape_of
from loopscope.write.tensorflow.nodes import (
    Function,
    GraphDefNodes,
    GraphDefTensor,
    data_type,
    of_port,
)

I64, BOOLEAN = ElementType.I64, ElementType.BOOLEAN
_ITERATION, _GOES_ON, _TRIPS = range(3)
"""The first states of every loop."""


def write_region(
    nodes: GraphDefNodes, node: Node, inputs: Sequence[GraphDefTensor], address: str
) -> Sequence[GraphDefTensor]:
    """The outputs of a node with bodies; ``WriteError`` for what TensorFlow's loops do not do."""
    if node.type == IF:
        return _write_if(nodes, node, inputs, address)
    if node.type in (LOOP, TENSOR_ITERATOR) and not node.is_foreign:
        return _Loop(nodes, node, inputs, address, node.body("body")).write()
    raise WriteError(f"there is no rule for the graphs of {node.type}")


def _write_if(
    nodes: GraphDefNodes, node: Node, inputs: Sequence[GraphDefTensor], address: str
) -> Sequence[GraphDefTensor]:
    condition, *given = inputs
    kinds = [one.element_type for one in given]
    results = [port.element_type for port in node.outputs]
    functions: dict[str, Any] = {}
    stateful = False
    for branch in ("then", "else"):
        body = node.body("then" if branch == "then" else "else")

        def write(
            inner: GraphDefNodes, arguments: Sequence[GraphDefTensor], body: Body = body
        ) -> list[GraphDefTensor]:
            fed = {entry.internal: arguments[entry.external - 1] for entry in body.inputs}
            parameters = {
                one.id: of_port(fed[one.id], one.outputs[0]) for one in body.graph.parameters
            }
            found = write_graph(
                body.graph, parameters, inner, f"{address}/{body.name}", write_region
            )
            return [found[entry.internal] for entry in body.outer_outputs]

        function, inside = _function(nodes, f"{node.name}_{branch}", given, write)
        functions[f"{branch}_branch"] = function
        stateful |= inside
    kept: dict[str, Any] = {
        "Tcond": BOOLEAN,
        "Tin": kinds,
        "Tout": results,
        "output_shapes": [port.shape for port in node.outputs],
    }
    taken = [nodes.scalar(condition), *given]
    operation = "If" if stateful else "StatelessIf"
    return nodes.add(
        operation, taken, [kind or BOOLEAN for kind in results], node.name, **kept, **functions
    )


def _function(
    nodes: GraphDefNodes,
    name: str,
    given: Sequence[GraphDefTensor],
    write: Callable[[GraphDefNodes, list[GraphDefTensor]], Sequence[GraphDefTensor]],
) -> tuple[Function, bool]:
    """A function that takes tensors like these and gives what ``write`` gives; whether something
    in it has an effect.
    """
    made, inner = nodes.function(name)
    arguments = []
    for at, one in enumerate(given):
        made.signature.input_arg.add(
            name=inner.free(f"argument_{at}"), type=data_type(one.element_type)
        )
        arguments.append(GraphDefTensor(f"argument_{at}", one.element_type, one.shape))
    for at, tensor in enumerate(write(inner, arguments)):
        made.signature.output_arg.add(name=f"result_{at}", type=data_type(tensor.element_type))
        made.ret[f"result_{at}"] = inner.one(
            "Identity", [tensor], tensor.element_type, T=tensor.element_type
        ).text
    made.signature.is_stateful = inner.stateful
    return Function(made.signature.name), inner.stateful


@dataclass(slots=True)
class _Loop:
    """A While: states that change (the iteration, whether it goes on, carried and collected
    values), then what stays the same.
    """

    nodes: GraphDefNodes
    node: Node
    inputs: Sequence[GraphDefTensor]
    address: str
    body: Body
    states: list[GraphDefTensor] = field(default_factory=list[GraphDefTensor])
    carried: dict[LayerId, int] = field(default_factory=dict[LayerId, int])
    """The state that a Parameter reads, and that a Result without a back edge leaves its last
    value in.
    """
    collected: dict[LayerId, int] = field(default_factory=dict[LayerId, int])
    outer: dict[int, int] = field(default_factory=dict[int, int])
    """The state that hands on an input of the node."""

    def write(self) -> Sequence[GraphDefTensor]:
        self._add_states()
        tests, _ = _function(self.nodes, f"{self.node.name}_cond", self.states, self._condition)
        repeats, stateful = _function(
            self.nodes, f"{self.node.name}_body", self.states, self._iteration
        )
        kinds = [one.element_type for one in self.states]
        kept: dict[str, Any] = {
            "T": kinds,
            "cond": tests,
            "body": repeats,
            "output_shapes": [DYNAMIC] * len(kinds),
        }
        operation = "While" if stateful else "StatelessWhile"
        window = window_of(self.node)
        left = self.nodes.add(
            operation, self.states, kinds, self.node.name, **kept, parallel_iterations=window
        )
        return [left[self._state_of(entry)] for entry in self.body.outer_outputs]

    # What it begins with

    def _add_states(self) -> None:
        nodes, body = self.nodes, self.body
        is_loop = self.node.type == LOOP
        entries = {entry.internal: entry for entry in body.inputs}
        trips = (
            nodes.scalar(nodes.cast(self.inputs[0], I64))
            if is_loop
            else self._slices(list(entries.values()))
        )
        goes_on = nodes.scalar(self.inputs[1]) if is_loop else nodes.constant(np.bool_(True))
        self.states = [nodes.constant(np.int64(0)), goes_on, trips]
        for edge in body.back_edges:
            entry = entries.get(edge.to_layer)
            if entry is None or entry.external < 0:
                raise WriteError("a carried value of the loop has no initial value")
            self.carried[edge.to_layer] = self._add(self.inputs[entry.external])
        for output in body.outer_outputs:
            result = _given(body, output.internal)
            if output.axis is not None:
                self.collected[output.internal] = self._add(
                    self._empty(result.element_type, _without(result.shape, output.axis))
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
                f"an output of the loop collects parts of {kind}{shape}, and without all lengths there is no empty one"
            )
        return self.nodes.constant(np.zeros(shape.lengths, kind.dtype))

    def _slices(self, entries: Sequence[InputMap]) -> GraphDefTensor:
        """How many parts a TensorIterator goes through."""
        cut = next((entry for entry in entries if entry.axis is not None), None)
        if cut is None:
            raise WriteError("no input says how many iterations it has")
        return self._length(self.nodes, self.inputs[cut.external], cut)

    @staticmethod
    def _length(nodes: GraphDefNodes, tensor: GraphDefTensor, entry: InputMap) -> GraphDefTensor:
        last = nodes.constant(np.int64(entry.axis or 0))
        return gathered(nodes, shape_of(nodes, tensor), last, nodes.constant(np.int64(0)))

    # What its functions do

    def _condition(
        self, inner: GraphDefNodes, given: Sequence[GraphDefTensor]
    ) -> list[GraphDefTensor]:
        zero = inner.constant(np.int64(0))
        endless = inner.one("Less", [given[_TRIPS], zero], BOOLEAN, T=I64)
        left = inner.one("Less", [given[_ITERATION], given[_TRIPS]], BOOLEAN, T=I64)
        allowed = inner.one("LogicalOr", [endless, left], BOOLEAN)
        return [inner.one("LogicalAnd", [given[_GOES_ON], allowed], BOOLEAN)]

    def _iteration(
        self, inner: GraphDefNodes, given: Sequence[GraphDefTensor]
    ) -> list[GraphDefTensor]:
        body = self.body
        entries = {entry.internal: entry for entry in body.inputs}
        parameters = {
            one.id: self._parameter(inner, one, entries, given) for one in body.graph.parameters
        }
        found = write_graph(
            body.graph, parameters, inner, f"{self.address}/{body.name}", write_region
        )
        after = list(given)
        after[_ITERATION] = inner.one(
            "AddV2", [given[_ITERATION], inner.constant(np.int64(1))], I64, T=I64
        )
        condition = next(
            (entry.internal for entry in body.outputs if entry.purpose == "execution_condition"),
            None,
        )
        if condition is not None:
            after[_GOES_ON] = inner.scalar(found[condition])
        for edge in body.back_edges:
            after[self.carried[edge.to_layer]] = found[edge.from_layer]
        for output in body.outer_outputs:
            if output.internal in self.collected and output.axis is not None:
                at = self.collected[output.internal]
                parts = [given[at], found[output.internal]]
                after[at] = joined(
                    inner, parts if _is_forward(output) else parts[::-1], output.axis
                )
            elif output.internal in self.carried:
                after[self.carried[output.internal]] = found[output.internal]
        return after

    def _parameter(
        self,
        inner: GraphDefNodes,
        node: Node,
        entries: Mapping[LayerId, InputMap],
        given: Sequence[GraphDefTensor],
    ) -> GraphDefTensor:
        entry = entries.get(node.id)
        known = declared(node, "")
        if node.id in self.carried:
            return of_port(given[self.carried[node.id]], node.outputs[0])
        if entry is None or entry.is_iteration_number:
            number = inner.cast(given[_ITERATION], known.element_type)
            return number if known.shape.rank == 0 else inner.reshaped(number, [1])
        tensor = given[self.outer[entry.external]]
        if entry.axis is None:
            return of_port(tensor, node.outputs[0])
        number = given[_ITERATION]
        if not _is_forward(entry):
            last = inner.one(
                "Sub", [self._length(inner, tensor, entry), inner.constant(np.int64(1))], I64, T=I64
            )
            number = inner.one("Sub", [last, number], I64, T=I64)
        part = gathered(
            inner, tensor, inner.reshaped(number, [1]), inner.constant(np.int64(entry.axis))
        )
        return of_port(part, node.outputs[0])

    def _state_of(self, output: OutputMap) -> int:
        if output.axis is not None:
            return self.collected[output.internal]
        carried = next(
            (edge.to_layer for edge in self.body.back_edges if edge.from_layer == output.internal),
            output.internal,
        )
        return self.carried[carried]


def _given(body: Body, result: LayerId) -> Port:
    """What a Result of the body gets, as far as it is declared."""
    source = body.graph.sources[result][0]
    return body.graph.by_id[result].inputs[0] if source is None else body.graph.tensor(source)


def _is_forward(entry: InputMap | OutputMap) -> bool:
    """Whether parts of one are gone through from the first to the last, or from the last to the
    first; ``WriteError`` for other ways.
    """
    match entry.start, entry.end, entry.stride, entry.part_size:
        case 0, -1, 1, 1:
            return True
        case -1, 0, -1, 1:
            return False
        case _:
            raise WriteError(
                "the loop goes through parts of several elements, or not through all of them"
            )


def _without(shape: PartialShape, axis: int) -> PartialShape:
    """The shape of nothing collected yet along an axis."""
    if not shape.is_static:
        return shape
    lengths = list(shape.lengths)
    lengths[axis] = 0
    return PartialShape.of(lengths)
