"""The tensor names that files of version 10 have without writing them: inputs and outputs are
called after their layers.
"""

from __future__ import annotations

from loopscope.ir.model import ModelGraph, Node
from loopscope.ir.replace import replace


def with_layer_names(graph: ModelGraph) -> ModelGraph:
    """The graph as OpenVINO names it: a Parameter's tensor also after the Parameter, a Result's
    after what feeds it (``Loop_21.1``).
    """
    return replace(graph, nodes=tuple(_named(graph, node) for node in graph.nodes))


def _named(graph: ModelGraph, node: Node) -> Node:
    if node.type == "Parameter" and len(node.outputs) == 1:
        (port,) = node.outputs
        return replace(node, outputs=(replace(port, names=_with(port.names, node.name)),))
    if node.type == "Result" and graph.sources[node.id] and (source := graph.sources[node.id][0]):
        feeder = graph.by_id[source.layer]
        name = feeder.name if len(feeder.outputs) == 1 else f"{feeder.name}.{source.output}"
        return replace(node, output_names=_with(node.output_names, name))
    return node


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if name in names else (*names, name)
