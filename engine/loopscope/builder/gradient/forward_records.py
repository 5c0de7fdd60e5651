"""Additional outputs of a forward loop for its gradient: values of Parameters at the start of every
iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.tensor import Tensor
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Edge, LayerId, ModelGraph, Node, OutputMap, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import Dimension, PartialShape, static
from loopscope.ops.declare import Known

Form = Literal["whole", "flat", "shape", "count", "last"]
"""Form of a record: the value under a new first axis; its elements in one axis; its shape; one
element per iteration, to count them; or the last value of a Result.
"""


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """A value to record: of a Parameter, the last value of a Result, or the count of iterations
    (without a layer).
    """

    form: Form
    layer: LayerId | None
    known: Known
    """Knowledge about the value over all iterations."""


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
