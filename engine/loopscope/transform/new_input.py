"""Replacement of a tensor of a model by a new input."""

from __future__ import annotations

from dataclasses import replace

from loopscope.ir.model import Edge, LayerId, Model, Node, OutputRef, Port


def with_new_input(model: Model, source: OutputRef, name: str) -> tuple[Model, OutputRef]:
    """Return the model with a new input in place of a tensor, and that input.

    The tensor is one of the outermost graph.
    """
    graph = model.graph
    port = graph.tensor(source)
    layer = LayerId(max(graph.by_id) + 1)
    attributes = {"shape": str(port.shape)[1:-1], "element_type": str(port.element_type)}
    parameter = Node(
        layer,
        name,
        "Parameter",
        "opset1",
        attributes,
        outputs=(Port(0, port.element_type, port.shape, form=port.form),),
    )
    edges = tuple(
        Edge(layer, 0, edge.to_layer, edge.to_port)
        if (edge.from_layer, edge.from_port) == (source.layer, port.id)
        else edge
        for edge in graph.edges
    )
    return replace(
        model, graph=replace(graph, nodes=(*graph.nodes, parameter), edges=edges)
    ), OutputRef(layer, 0)
