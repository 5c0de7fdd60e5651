"""Scopes of loops and branches and devices of nodes, which OpenVINO's conversion drops."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loopscope.ir.model import Model, ModelGraph, Node
from loopscope.ir.replace import replace
from loopscope.read.tensorflow.graph_file import GraphDefFile, node_name

DEVICE = "device"
_GENERATED_NAME = re.compile(r"(If|Loop|TensorIterator)_\d+(_\d+)*")
"""Names that OpenVINO generates for new nodes."""
_V1_OUTPUT = re.compile(r"(Merge|Exit|Switch)(_\d+)?")
_MAX_PARTS = 32


def with_origins(model: Model, source: GraphDefFile) -> Model:
    """Return the model with loops and branches named by their scope, and node devices in
    ``rt_info``.
    """
    functions = (node for function in source.graph.library.function for node in function.node_def)
    nodes = {node.name: node.device for group in (functions, source.graph.node) for node in group}
    return replace(model, graph=_rename_graph(model.graph, nodes))


def _rename_graph(graph: ModelGraph, devices: Mapping[str, str]) -> ModelGraph:
    used_names = {node.name for node in graph.nodes}
    nodes = []
    for node in graph.nodes:
        if node.bodies:
            node = replace(
                node,
                bodies=tuple(
                    replace(body, graph=_rename_graph(body.graph, devices)) for body in node.bodies
                ),
            )
            scope = _scope(node) if _GENERATED_NAME.fullmatch(node.name) else ""
            if scope and scope not in used_names:
                used_names.add(scope)
                node = replace(node, name=scope)
        device = _device(node.name, devices)
        if device:
            node = replace(node, rt_info={**node.rt_info, DEVICE: device})
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _scope(node: Node) -> str:
    """Return the TensorFlow scope in which a loop or branch was built; "" if it is unknown."""
    for port in node.outputs:
        for name in port.names:
            scope, _, last = node_name(name).rpartition("/")
            if scope and _V1_OUTPUT.fullmatch(last):
                return scope
    inside = [
        inner.name.split("/")[:-1]
        for body in node.bodies
        for inner in body.graph.nodes
        if inner.type not in ("Parameter", "Result", "Const") and "/" in inner.name
    ]
    common = inside[0] if inside else []
    for scopes in inside:
        length = next(
            (
                place
                for place, pair in enumerate(zip(common, scopes, strict=False))
                if pair[0] != pair[1]
            ),
            len(scopes),
        )
        common = common[:length]
    while common and common[-1] in ("then_branch", "else_branch", "body", "cond_branch"):
        common = common[:-1]
    return "/".join(common)


def _device(name: str, devices: Mapping[str, str]) -> str:
    """Return the device of a node; in a body, the names of outer calls may precede the node's own
    name.
    """
    parts = name.split("/")
    tails = ("/".join(parts[start:]) for start in range(min(len(parts), _MAX_PARTS)))
    return next((device for tail in tails if (device := devices.get(tail)) is not None), "")
