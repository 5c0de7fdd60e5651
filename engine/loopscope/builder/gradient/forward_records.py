"""Outputs that a forward loop gets for the way back: what some of its Parameters are at the
beginning of every iteration.
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
"""The value under a new first axis; its elements in a row; its shape; one element for each
iteration, to count them; and the last value of a Result.
"""


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """What is to be recorded of a Parameter (of none, to count iterations; of a Result, its last
    value).
    """

    form: Form
    layer: LayerId | None
    known: Known
    """Of that, over all iterations."""


def record(
    frame: GraphFrame, layer: LayerId, records: Sequence[RecordRequest], count: Dimension
) -> list[Tensor]:
    """Adds a concatenated output to a loop for each record; gives the tensors, whose first axis
    goes through the iterations.
    """
    node = frame.nodes[layer]
    body = node.bodies[0]
    changed, results = _with_results(body.graph, records)
    frame.graph.calls[changed] = frame.graph.calls.get(body.graph, ())
    external = max((entry.external for entry in body.outputs), default=-1) + 1
    external = max(external, len(node.inputs))
    port = max((one.id for one in (*node.inputs, *node.outputs)), default=-1) + 1
    axes = [None if one.form == "last" else 0 for one in records]
    added = tuple(
        OutputMap(external + number, result, axis=axis)
        for number, (result, axis) in enumerate(zip(results, axes, strict=True))
    )
    knowns = [_leaving(one, count) for one in records]
    ports = tuple(
        Port(port + number, known.element_type, known.shape) for number, known in enumerate(knowns)
    )
    frame.nodes[layer] = replace(
        node,
        outputs=(*node.outputs, *ports),
        bodies=(replace(body, graph=changed, outputs=(*body.outputs, *added)), *node.bodies[1:]),
    )
    first = len(node.outputs)
    made = [
        Tensor(frame, OutputRef(layer, first + number), f"{node.name}:{first + number}", known)
        for number, known in enumerate(knowns)
    ]
    frame.tensors[layer] = (*frame.tensors[layer], *made)
    return made


def _leaving(one: RecordRequest, count: Dimension) -> Known:
    dimensions = () if one.form in ("count", "last") else one.known.shape.dimensions
    assert dimensions is not None
    match one.form:
        case "whole":
            return Known(one.known.element_type, PartialShape((count, *dimensions)))
        case "flat":
            return Known(one.known.element_type, PartialShape((Dimension(),)))
        case "shape":
            return Known(ElementType.I64, PartialShape((count, static(len(dimensions)))))
        case "count":
            return Known(ElementType.BOOLEAN, PartialShape((count,)))
        case "last":
            return Known(one.known.element_type, one.known.shape)


class _Nodes:
    """Nodes behind those of a finished graph."""

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
        unique = wanted = name or f"recorded_{type}"
        number = 0
        while unique in self.names:
            number += 1
            unique = f"{wanted}_{number}"
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
        held = Constant.of(value)
        attributes: dict[str, object] = {
            "element_type": str(held.element_type),
            "shape": ",".join(map(str, held.shape)),
        }
        return self.add("Const", "opset1", (), (Known.of(value),), attributes, held)

    def finished(self) -> ModelGraph:
        return ModelGraph(tuple(self.nodes), tuple(self.edges), self.graph.name, self.graph.rt_info)


def _with_results(
    graph: ModelGraph, records: Sequence[RecordRequest]
) -> tuple[ModelGraph, list[LayerId]]:
    nodes = _Nodes(graph)
    results = []
    for one in records:
        if one.form == "last" and one.layer is not None:
            results.append(one.layer)
            continue
        name = (
            "iterations"
            if one.layer is None
            else f"{graph.by_id[one.layer].name}_{'at_start' if one.form == 'whole' else one.form}"
        )
        results.append(nodes.add("Result", "opset1", [_part(nodes, one)], (), name=name)[0])
    return nodes.finished(), results


def _part(nodes: _Nodes, one: RecordRequest) -> tuple[LayerId, int]:
    """What one iteration adds to the output."""
    if one.layer is None:
        return nodes.constant(np.array([True]))
    value = (one.layer, nodes.graph.by_id[one.layer].outputs[0].id)
    dimensions, element_type = one.known.shape.dimensions, one.known.element_type
    assert dimensions is not None
    if one.form == "flat":
        known = Known(element_type, PartialShape((Dimension(),)))
        return nodes.add(
            "Reshape",
            "opset1",
            [value, nodes.constant(np.array([-1]))],
            (known,),
            {"special_zero": "false"},
        )
    if one.form == "shape":
        shape = Known(ElementType.I64, PartialShape.of([len(dimensions)]))
        value = nodes.add("ShapeOf", "opset3", [value], (shape,), {"output_type": "i64"})
        element_type, dimensions = ElementType.I64, (static(len(dimensions)),)
    known = Known(element_type, PartialShape((static(1), *dimensions)))
    return nodes.add("Unsqueeze", "opset1", [value, nodes.constant(np.array([0]))], (known,))
