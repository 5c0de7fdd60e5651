"""Values of a forward loop for its backward loop: additional outputs that record them, and values
of the forward Parameters inside the backward body.

Most records contain the value of a Parameter at the start of every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.backward_ports import (
    BackwardCarried,
    Fed,
    Outside,
    RecordRequest,
    Span,
)
from loopscope.builder.gradient.step import BodyTensors, GradientStep
from loopscope.builder.tensor import Tensor
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    SCAN,
    Edge,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
    OutputMap,
    OutputRef,
    Port,
)
from loopscope.ir.replace import replace
from loopscope.ir.shape import SCALAR, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Known


def record(
    frame: GraphFrame, layer: LayerId, records: Sequence[RecordRequest], count: Dimension
) -> list[Tensor]:
    """Add a concatenated output per record to a loop and return the tensors; their first axis is
    the iteration.
    """
    node = frame.nodes[layer]
    body = node.bodies[0]
    changed, results = _with_results(body.graph, records)
    frame.graph.calls[changed] = frame.graph.calls.get(body.graph, ())
    external = max((entry.external for entry in body.outputs), default=-1) + 1
    external = max(external, len(node.inputs))
    port = max((item.id for item in (*node.inputs, *node.outputs)), default=-1) + 1
    axes = [None if item.form == "last" else 0 for item in records]
    added = tuple(
        OutputMap(external + number, result, axis=axis)
        for number, (result, axis) in enumerate(zip(results, axes, strict=True))
    )
    knowns = [_output_knowledge(item, count) for item in records]
    ports = tuple(
        Port(port + number, known.element_type, known.shape) for number, known in enumerate(knowns)
    )
    frame.nodes[layer] = replace(
        node,
        outputs=(*node.outputs, *ports),
        bodies=(replace(body, graph=changed, outputs=(*body.outputs, *added)), *node.bodies[1:]),
    )
    first = len(node.outputs)
    handles = [
        Tensor(frame, OutputRef(layer, first + number), f"{node.name}:{first + number}", known)
        for number, known in enumerate(knowns)
    ]
    frame.tensors[layer] = (*frame.tensors[layer], *handles)
    return handles


def _output_knowledge(request: RecordRequest, count: Dimension) -> Known:
    dimensions = () if request.form in ("count", "last") else request.known.shape.dimensions
    assert dimensions is not None
    match request.form:
        case "whole":
            return Known(request.known.element_type, PartialShape((count, *dimensions)))
        case "flat":
            return Known(request.known.element_type, PartialShape((Dimension(),)))
        case "shape":
            return Known(ElementType.I64, PartialShape((count, static(len(dimensions)))))
        case "count":
            return Known(ElementType.BOOLEAN, PartialShape((count,)))
        case "last":
            return Known(request.known.element_type, request.known.shape)


class _ExtendedGraph:
    """A finished graph with additional nodes."""

    def __init__(self, graph: ModelGraph) -> None:
        self.graph = graph
        self.nodes = list(graph.nodes)
        self.edges = list(graph.edges)
        self.names = {node.name for node in graph.nodes}
        self.next = max(graph.by_id, default=-1) + 1

    def add(
        self,
        type: str,
        opset: str,
        sources: Sequence[tuple[LayerId, int]],
        outputs: Sequence[Known],
        attributes: dict[str, object] | None = None,
        constant: Constant | None = None,
        name: str = "",
    ) -> tuple[LayerId, int]:
        layer = LayerId(self.next)
        self.next += 1
        unique = stem = name or f"recorded_{type}"
        number = 0
        while unique in self.names:
            number += 1
            unique = f"{stem}_{number}"
        self.names.add(unique)
        inputs = tuple(Port(number) for number in range(len(sources)))
        ports = tuple(
            Port(len(sources) + number, known.element_type, known.shape)
            for number, known in enumerate(outputs)
        )
        self.nodes.append(
            Node(layer, unique, type, opset, attributes or {}, inputs, ports, constant=constant)
        )
        self.edges += [Edge(fed, port, layer, number) for number, (fed, port) in enumerate(sources)]
        return layer, len(sources)

    def constant(self, value: np.ndarray) -> tuple[LayerId, int]:
        data = Constant.of(value)
        attributes: dict[str, object] = {
            "element_type": str(data.element_type),
            "shape": ",".join(map(str, data.shape)),
        }
        return self.add("Const", "opset1", (), (Known.of(value),), attributes, data)

    def finished(self) -> ModelGraph:
        return ModelGraph(tuple(self.nodes), tuple(self.edges), self.graph.name, self.graph.rt_info)


def _with_results(
    graph: ModelGraph, records: Sequence[RecordRequest]
) -> tuple[ModelGraph, list[LayerId]]:
    nodes = _ExtendedGraph(graph)
    results = []
    for request in records:
        if request.form == "last" and request.layer is not None:
            results.append(request.layer)
            continue
        suffix = "at_start" if request.form == "whole" else request.form
        name = (
            "iterations" if request.layer is None else f"{graph.by_id[request.layer].name}_{suffix}"
        )
        results.append(nodes.add("Result", "opset1", [_part(nodes, request)], (), name=name)[0])
    return nodes.finished(), results


def _part(nodes: _ExtendedGraph, request: RecordRequest) -> tuple[LayerId, int]:
    """Add the nodes that compute an iteration's part of the output, and return their output."""
    if request.layer is None:
        return nodes.constant(np.array([True]))
    value = (request.layer, nodes.graph.by_id[request.layer].outputs[0].id)
    dimensions, element_type = request.known.shape.dimensions, request.known.element_type
    assert dimensions is not None
    if request.form == "flat":
        known = Known(element_type, PartialShape((Dimension(),)))
        return nodes.add(
            "Reshape",
            "opset1",
            [value, nodes.constant(np.array([-1]))],
            (known,),
            {"special_zero": "false"},
        )
    if request.form == "shape":
        shape = Known(ElementType.I64, PartialShape.of([len(dimensions)]))
        value = nodes.add("ShapeOf", "opset3", [value], (shape,), {"output_type": "i64"})
        element_type, dimensions = ElementType.I64, (static(len(dimensions)),)
    known = Known(element_type, PartialShape((static(1), *dimensions)))
    return nodes.add("Unsqueeze", "opset1", [value, nodes.constant(np.array([0]))], (known,))


class ForwardValues:
    """Values of the forward Parameters; ``fed`` and ``carried`` are the Parameters of the backward
    body that they come from.
    """

    def __init__(self, step: GradientStep, inside: BodyTensors, frame: GraphFrame) -> None:
        self.step = step
        self.inside = inside
        self.frame = frame
        self.fed: list[Fed] = []
        self.carried: list[BackwardCarried] = []

    def of(self, parameter: Node) -> Tensor:
        """Return the value of a Parameter in the forward iteration; its nodes are added to the
        backward body.
        """
        body = self.inside.body
        entry = next((item for item in body.inputs if item.internal == parameter.id), None)
        known = self.inside.known(parameter.id)
        if entry is not None and entry.is_iteration_number:
            return self._number(parameter.name, known)
        if entry is not None and entry.axis is not None:
            return self._part(parameter, entry, known)
        back = next((edge for edge in body.back_edges if edge.to_layer == parameter.id), None)
        if back is not None and self.inside.source(back.from_layer) != OutputRef(parameter.id, 0):
            return self._state(parameter, known)
        if entry is None or entry.external < 0:
            return self.frame.parameter(parameter.name, known)
        return self._same(parameter, entry, known)

    def _same(self, parameter: Node, entry: InputMap, known: Known) -> Tensor:
        """Return a value that is equal in all iterations, converted to its type in the body."""
        outer = self._outer(entry)
        parameter_tensor = self.frame.parameter(
            parameter.name,
            Known(outer.element_type, outer.shape, outer.known.value, outer.known.partial),
        )
        self.fed.append(Fed(parameter_tensor, lambda _: outer))
        if known.element_type in (None, outer.element_type):
            return parameter_tensor
        return self._apply("Convert", parameter_tensor, destination_type=known.element_type)

    def _number(self, name: str, known: Known) -> Tensor:
        """Return the forward iteration number, counted down from the last one."""
        shape = known.shape if known.shape.is_static else SCALAR
        number = self.frame.parameter(name, Known(ElementType.I64, PartialShape.of([1])))
        self.carried.append(BackwardCarried(number, self._last, number - 1))
        scalar = self._apply(
            "Reshape", number, np.array(shape.lengths, np.int64), special_zero=False
        )
        target_type = known.element_type or ElementType.I64
        return (
            scalar
            if target_type is ElementType.I64
            else self._apply("Convert", scalar, destination_type=target_type)
        )

    def _last(self, outside: Outside) -> Tensor:
        count = outside.count
        return (
            self.step.graph.constant(np.array([count - 1])) if isinstance(count, int) else count - 1
        )

    def _part(self, parameter: Node, entry: InputMap, known: Known) -> Tensor:
        """Return the same slice of a sliced input, counted from the end of the range that the
        iterations read.
        """
        outer, removes_axis = self._outer(entry), self.step.node.type == SCAN
        rank, axis = outer.rank, entry.axis
        if rank is None or axis is None:
            raise ValueError(
                f"the rank of the tensor that {parameter.name!r} is a slice of is not known: "
                "declare the ranks of the model's inputs"
            )
        axis %= rank
        shape = _with_axis(known.shape, axis, static(1)) if removes_axis else known.shape
        slice_parameter = self.frame.parameter(parameter.name, Known(outer.element_type, shape))

        def stretch(outside: Outside) -> Tensor:
            return Span.of(self.step.graph, self.step.node.type, entry, outer, outside.count).cut(
                self.step.graph, outer
            )

        self.fed.append(
            Fed(
                slice_parameter,
                stretch,
                axis,
                -entry.part_size if entry.stride > 0 else entry.part_size,
            )
        )
        part = (
            self._apply("Squeeze", slice_parameter, np.array([axis]))
            if removes_axis
            else slice_parameter
        )
        if known.element_type in (None, part.element_type):
            return part
        return self._apply("Convert", part, destination_type=known.element_type)

    def _state(self, parameter: Node, known: Known) -> Tensor:
        """Return a carried value at the start of the forward iteration."""
        if known.element_type is None or known.shape.dimensions is None:
            raise ValueError(
                f"the {'rank' if known.element_type else 'type'} of the carried value "
                f"{parameter.name!r} is not known"
            )
        if not known.shape.is_static:
            return self._growing(parameter, known)
        record = RecordRequest("whole", parameter.id, known)
        part = Known(known.element_type, PartialShape((static(1), *known.shape.dimensions)))
        recorded = self._recorded(record, f"{parameter.name}_recorded", part)
        return self._apply("Squeeze", recorded, np.array([0]), name=parameter.name)

    def _growing(self, parameter: Node, known: Known) -> Tensor:
        """Return a carried value of changing lengths; the record contains the elements of all
        iterations in one axis.
        """
        assert known.shape.dimensions is not None
        rank = len(known.shape.dimensions)
        flat = RecordRequest("flat", parameter.id, known)
        shapes = RecordRequest("shape", parameter.id, known)
        all_elements = self.frame.parameter(
            f"{parameter.name}_all", Known(known.element_type, PartialShape((UNKNOWN,)))
        )
        self.fed.append(Fed(all_elements, lambda outside: outside.recorded[flat], records=(flat,)))
        shape = self._recorded(
            shapes,
            f"{parameter.name}_shape",
            Known(ElementType.I64, PartialShape((static(1), static(rank)))),
        )
        shape = self._apply("Squeeze", shape, np.array([0]))
        end = self.frame.parameter(
            f"{parameter.name}_end", Known(ElementType.I64, PartialShape.of([1]))
        )
        begin = end - self._apply("ReduceProd", shape, np.array([0]), keep_dims=True)
        self.carried.append(
            BackwardCarried(end, lambda outside: _length(outside.recorded[flat]), begin, (flat,))
        )
        elements = self._apply("Slice", all_elements, begin, end, np.array([1]), np.array([0]))
        return self._apply(
            "Reshape",
            elements,
            self._with_known_lengths(shape, known.shape),
            special_zero=False,
            name=parameter.name,
        )

    def _with_known_lengths(self, shape: Tensor, known: PartialShape) -> Tensor:
        """Replace known lengths of a recorded shape by constants, because a record over no
        iterations contains no lengths.
        """
        dimensions = known.dimensions or ()
        if not any(length.is_static for length in dimensions):
            return shape
        parts = [
            np.array([length.length])
            if length.is_static
            else self._apply("Gather", shape, np.array([axis]), np.array(0))
            for axis, length in enumerate(dimensions)
        ]
        return self.step.graph.apply("Concat", parts, {"axis": 0})[0] if len(parts) > 1 else shape

    def _recorded(self, record: RecordRequest, name: str, known: Known) -> Tensor:
        parameter = self.frame.parameter(name, known)
        self.fed.append(Fed(parameter, lambda outside: outside.recorded[record], 0, -1, (record,)))
        return parameter

    def _outer(self, entry: InputMap) -> Tensor:
        outer = self.step.fed[entry.external] if 0 <= entry.external < len(self.step.fed) else None
        if outer is None:
            raise ValueError(f"input {entry.external} of its port map is not connected")
        return outer

    def _apply(self, type: str, *inputs: object, name: str = "", **attributes: object) -> Tensor:
        return self.step.graph.apply(type, inputs, attributes, name)[0]


def _length(flat: Tensor) -> Tensor:
    return flat.graph.apply("ShapeOf", (flat,), {})[0]


def _with_axis(shape: PartialShape, axis: int, length: Dimension) -> PartialShape:
    dimensions = shape.dimensions or ()
    return PartialShape((*dimensions[:axis], length, *dimensions[axis:]))
