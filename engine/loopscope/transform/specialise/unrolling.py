"""Replacement of a loop by one copy of its body per iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.checks.propagate import Propagated
from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    LOOP,
    TENSOR_ITERATOR,
    Body,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
    OutputMap,
    OutputRef,
    Port,
)
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import Role
from loopscope.transform.specialise.editable_graph import EditableGraph

MOST_NODES = 50_000
"""Number of nodes that an unrolled loop may have."""
_END = 2**63 - 1
_AXES_AS_INPUT = 13
"""First ONNX opset whose Unsqueeze has its axes as an input."""


class CannotUnroll(Exception):
    """The reason why a loop remains."""


def unroll(
    graph: EditableGraph,
    address: str,
    layer: LayerId,
    count: int,
    known: Propagated,
    catalogue: Catalogue,
    place: str,
) -> None:
    """Replace a loop that runs ``count`` times by copies of its body.

    ``place`` is the address of the body. ``CannotUnroll`` names the reason if the loop remains.
    """
    node = graph.nodes[layer]
    body = node.bodies[0]
    if count * len(body.graph.nodes) > MOST_NODES:
        raise CannotUnroll(
            f"{count:,} copies of {len(body.graph.nodes):,} nodes are more than {MOST_NODES:,}"
        )
    _Unrolling(graph, address, node, body, count, known, catalogue, place).run()


@dataclass(frozen=True, slots=True, eq=False)
class _Unrolling:
    graph: EditableGraph
    address: str
    node: Node
    body: Body
    count: int
    known: Propagated
    catalogue: Catalogue
    place: str
    """Address of the body."""

    def run(self) -> None:
        self._check()
        layer = self.node.id
        carried = {edge.to_layer: edge.from_layer for edge in reversed(self.body.back_edges)}
        results: list[Mapping[LayerId, OutputRef | None]] = []
        for iteration in range(self.count):
            bound = {
                parameter.id: self._fed(parameter, iteration, carried, results)
                for parameter in self.body.graph.parameters
            }
            results.append(self.graph.inline(layer, self.body.graph, bound, is_copy=True))
        for index, entry in enumerate(self.body.outer_outputs[: len(self.node.outputs)]):
            tensor = OutputRef(layer, index)
            replacement = (
                self._last(entry, results)
                if entry.axis is None
                else self._joined(index, entry, results)
            )
            self.graph.keep_names(tensor)
            self.graph.redirect(tensor, replacement)
        self.graph.remove(layer)

    def _check(self) -> None:
        """Raise ``CannotUnroll`` before anything is changed."""
        stateful = next(_stateful_nodes(self.body.graph, self.catalogue), None)
        if stateful is not None:
            raise CannotUnroll(
                f"{shorten(stateful.name, 60)!r} ({stateful.type}) has a state that all "
                "iterations share"
            )
        fed = {entry.internal: entry for entry in self.body.inputs}
        for parameter in self.body.graph.parameters:
            entry = fed.get(parameter.id)
            if entry is None or (
                not entry.is_iteration_number
                and self.graph.source(self.node.id, entry.external) is None
                and not self._is_condition(entry)
            ):
                raise CannotUnroll(f"nothing feeds the Parameter {parameter.name!r} of its body")
            if entry.axis is not None and self._direction(entry) == 0:
                raise CannotUnroll(f"its input {entry.external} is sliced with bounds")
            if self.node.type == TENSOR_ITERATOR and self._is_converted(parameter, entry):
                raise CannotUnroll(f"the Parameter {parameter.name!r} converts its value")
        for index, output in enumerate(self.body.outer_outputs[: len(self.node.outputs)]):
            if output.axis is not None and (self._direction(output) == 0 or output.part_size < 1):
                raise CannotUnroll(f"its output {index} is concatenated with bounds")
            if output.axis is not None and not output.stacked and self._rank(output) is None:
                raise CannotUnroll(f"the rank of the parts of its output {index} is not known")
            if not self.count and output.axis is not None and self._empty(index) is None:
                raise CannotUnroll(f"the shape of its output {index} without parts is not known")
            if not self.count and output.axis is None and self._initial(output) is None:
                raise CannotUnroll(f"its output {index} has no value without an iteration")

    def _direction(self, entry: InputMap | OutputMap) -> int:
        return _direction(entry, self.graph.names.dialect)

    def _is_condition(self, entry: InputMap) -> bool:
        """Return True for the condition that an ONNX Loop passes to its body."""
        return self.node.type == LOOP and self.graph.names.dialect == "onnx" and entry.external == 1

    def _is_converted(self, parameter: Node, entry: InputMap) -> bool:
        source = self.graph.source(self.node.id, entry.external)
        declared = parameter.outputs[0].element_type
        if source is None or declared is None:
            return False
        known = self.known.output(self.address, source.layer, source.output).element_type
        return known is not None and known is not declared

    def _fed(
        self,
        parameter: Node,
        iteration: int,
        carried: Mapping[LayerId, LayerId],
        results: Sequence[Mapping[LayerId, OutputRef | None]],
    ) -> OutputRef | None:
        """Return the tensor that a Parameter receives in an iteration."""
        entry = next(
            entry for entry in reversed(self.body.inputs) if entry.internal == parameter.id
        )
        if entry.is_iteration_number:
            return self._counter(parameter, iteration)
        if self._is_condition(entry):
            return self._constant("condition", np.array(True))
        source = self.graph.source(self.node.id, entry.external)
        assert source is not None
        if entry.axis is not None:
            return self._slice(entry, source, iteration)
        if iteration and parameter.id in carried:
            return results[-1][carried[parameter.id]]
        return source

    def _constant(self, name: str, array: np.ndarray) -> OutputRef:
        return self.graph.insert_constant(self.node.id, f"{self.node.name}_{name}", array)

    def _counter(self, parameter: Node, iteration: int) -> OutputRef:
        port = parameter.outputs[0]
        shape = port.shape.lengths if port.shape.is_static else ()
        dtype = (port.element_type or ElementType.I64).dtype
        return self._constant("iteration", np.full(shape, iteration, dtype))

    def _slice(self, entry: InputMap, source: OutputRef, iteration: int) -> OutputRef:
        port = self.graph.nodes[source.layer].outputs[source.output]
        backward = self._direction(entry) < 0
        if self.graph.names.dialect == "onnx":
            index = self._constant("part", np.array(-iteration - 1 if backward else iteration))
            return self._operation(
                "Gather", [source, index], port.element_type, {"axis": entry.axis}
            )
        size = entry.part_size
        begin = -(iteration + 1) * size if backward else iteration * size
        end = (-iteration * size or _END) if backward else begin + size
        bounds = [
            self._constant(name, np.array([value]))
            for name, value in (("begin", begin), ("end", end), ("step", 1), ("axis", entry.axis))
        ]
        return self._operation("Slice", [source, *bounds], port.element_type, {}, "opset8")

    def _operation(
        self,
        kind: str,
        sources: Sequence[OutputRef],
        element_type: ElementType | None,
        attributes: Mapping[str, object],
        opset: str = "",
        shape: PartialShape = DYNAMIC,
    ) -> OutputRef:
        ports = [self.graph.nodes[source.layer].outputs[source.output] for source in sources]
        inputs = tuple(
            [
                Port(number, port.element_type, port.shape, port.names[:1])
                for number, port in enumerate(ports)
            ]
        )
        name = f"{self.node.name}_{kind.lower()}"
        names = (self.graph.names.new(name),) if self.graph.names.dialect == "onnx" else ()
        output = Port(len(inputs), element_type, shape, names)
        node = Node(
            self.node.id, name, kind, opset or self.node.opset, attributes, inputs, (output,)
        )
        return self.graph.insert(self.node.id, node, sources)

    def _last(
        self, entry: OutputMap, results: Sequence[Mapping[LayerId, OutputRef | None]]
    ) -> OutputRef | None:
        return results[-1][entry.internal] if results else self._initial(entry)

    def _initial(self, entry: OutputMap) -> OutputRef | None:
        """Return the value of an output without iterations; None if there is none."""
        parameters = [
            edge.to_layer for edge in self.body.back_edges if edge.from_layer == entry.internal
        ]
        external = next(
            (item.external for item in self.body.inputs if item.internal in parameters[:1]), -1
        )
        return self.graph.source(self.node.id, external)

    def _empty(self, index: int) -> np.ndarray | None:
        """Return an output without parts; None if its shape is not declared.

        A runtime replaces lengths that are not declared by 0.
        """
        known = self.known.output(self.address, self.node.id, index)
        declared = self.node.outputs[index].shape
        if known.shape != declared or not declared.is_static or known.element_type is None:
            return None
        lengths = known.shape.lengths
        return np.empty(lengths, known.element_type.dtype) if 0 in lengths else None

    def _joined(
        self,
        index: int,
        entry: OutputMap,
        results: Sequence[Mapping[LayerId, OutputRef | None]],
    ) -> OutputRef | None:
        """Return the concatenated parts of an output."""
        empty = self._empty(index)
        if not results and empty is not None:
            return self._constant("empty", empty)
        port = self.node.outputs[index]
        parts = [result[entry.internal] for result in results]
        tensors = [part for part in parts if part is not None]
        if entry.stacked or self._rank(entry) == 0:
            tensors = [self._unsqueezed(tensor, entry.axis or 0, port) for tensor in tensors]
        if self._direction(entry) < 0:
            tensors.reverse()
        if len(tensors) == 1:
            return tensors[0]
        attributes: Mapping[str, object] = (
            {"axis": entry.axis}
            if self.graph.names.dialect == "onnx"
            else {"axis": str(entry.axis)}
        )
        opset = "" if self.graph.names.dialect == "onnx" else "opset1"
        return self._operation("Concat", tensors, port.element_type, attributes, opset)

    def _unsqueezed(self, tensor: OutputRef, axis: int, port: Port) -> OutputRef:
        is_onnx = self.graph.names.dialect == "onnx"
        if is_onnx and int(self.node.opset.rpartition(" ")[2]) < _AXES_AS_INPUT:
            return self._operation("Unsqueeze", [tensor], port.element_type, {"axes": (axis,)})
        axes = self._constant("axes", np.array([axis]))
        opset = "" if is_onnx else "opset1"
        return self._operation("Unsqueeze", [tensor, axes], port.element_type, {}, opset)

    def _rank(self, entry: OutputMap) -> int | None:
        """Return the rank of the parts of an output, or None if it is not known."""
        return self.known.output(self.place, entry.internal).shape.rank


def _direction(entry: InputMap | OutputMap, dialect: str) -> int:
    """Return 1 for whole slices from the beginning, -1 from the end, and 0 for other slices."""
    if dialect == "onnx":
        return 1 if entry.stride > 0 else -1
    bounds = (entry.start, entry.end)
    return (bounds == (0, -1)) if entry.stride > 0 else -(bounds == (-1, 0))


def _stateful_nodes(graph: ModelGraph, catalogue: Catalogue) -> Iterator[Node]:
    """Yield the random operations and variables of a graph and of the graphs in it."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop().nodes:
            waiting += [body.graph for body in node.bodies]
            operation = catalogue.find(node.type, node.opset)
            if operation is not None and (
                operation.stateful or operation.role in (Role.ASSIGN, Role.READ_VALUE)
            ):
                yield node
