"""Identities between a value and the carried value that copies it, which OpenVINO needs."""

from __future__ import annotations

from loopscope.checks.rules.runtimes import overwritten_parameters
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, Port
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE
from loopscope.transform.graph_edits import with_graph


def overwriting_regions(model: Model) -> list[CheckedRegion]:
    """Return the loops whose carried values OpenVINO's CPU overwrites before it copies them."""
    return [
        region for region in Subject(model, CATALOGUE).iterating if overwritten_parameters(region)
    ]


def with_identities(model: Model, region: CheckedRegion) -> Model:
    """Return the model with an Identity before each back edge that OpenVINO's CPU copies late.

    The values do not change: an Identity is a computation, whose result is not overwritten.
    """
    graph = region.body.graph
    results = {edge.to_layer: edge.from_layer for edge in region.body.back_edges}
    for parameter in overwritten_parameters(region):
        graph = _with_identity(graph, results[parameter])
    return with_graph(model, region.within.address, graph)


def _with_identity(graph: ModelGraph, result: LayerId) -> ModelGraph:
    source = graph.sources[result][0]
    assert source is not None
    node, port = graph.by_id[result], graph.tensor(source)
    layer = LayerId(max(graph.by_id) + 1)
    names = {each.name for each in graph.nodes}
    name = f"{node.name}/identity"
    while name in names:
        name += "_"
    identity = Node(
        layer,
        name,
        "Identity",
        "opset16",
        inputs=(replace(port, id=0, names=()),),
        outputs=(Port(1, port.element_type, port.shape),),
    )
    edges = [edge for edge in graph.edges if edge.to_layer != result]
    edges += [
        Edge(source.layer, port.id, layer, 0),
        Edge(layer, 1, result, node.inputs[0].id),
    ]
    position = graph.nodes.index(node)
    nodes = (*graph.nodes[:position], identity, *graph.nodes[position:])
    return replace(graph, nodes=nodes, edges=tuple(edges))
