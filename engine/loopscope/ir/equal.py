"""Comparison of two models, and a sentence about their first difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.address import ROOT, labels
from loopscope.ir.constant import Constant
from loopscope.ir.model import Body, Model, ModelGraph, Node, Port

# Constants and ports store these exactly; the text of an attribute may spell them in several ways.
_REDUNDANT_ATTRIBUTES = {
    "Const": frozenset({"element_type", "shape", "offset", "size"}),
    "Parameter": frozenset({"element_type", "shape"}),
}


def difference(left: Model, right: Model) -> str:
    """Return a sentence about the first difference of two models; empty when they are equal.

    These have no meaning and are not compared: port ids (edges are compared by the position of
    their ports), the order of edges and of port map entries, the location of the weights, the IR
    version, lines and files. Bounds of dimensions are compared only at Parameters, where a file can
    store them.
    """
    for field in ("name", "dialect", "rt_info", "meta_data"):
        if getattr(left, field) != getattr(right, field):
            return _sentence("the model", field, getattr(left, field), getattr(right, field))
    waiting = [(ROOT, left.graph, right.graph)]
    while waiting:
        address, left_graph, right_graph = waiting.pop()
        sentence = next(_graph_differences(address, left_graph, right_graph), "")
        if sentence:
            return sentence
        label = labels(left_graph)
        for node, twin in zip(left_graph.nodes, right_graph.nodes, strict=True):
            for body, twin_body in zip(node.bodies, twin.bodies, strict=True):
                waiting.append(
                    (f"{address}/{label[node.id]}/{body.name}", body.graph, twin_body.graph)
                )
    return ""


def _sentence(place: str, field: str, left_value: object, right_value: object) -> str:
    left, right = shorten(repr(left_value), 80), shorten(repr(right_value), 80)
    return f"{place}: {field} is {left} in one and {right} in the other"


def _graph_differences(address: str, left: ModelGraph, right: ModelGraph) -> Iterator[str]:
    if len(left.nodes) != len(right.nodes):
        yield _sentence(address, "the number of nodes", len(left.nodes), len(right.nodes))
        return
    if len(left.edges) != len(right.edges):
        yield _sentence(address, "the number of edges", len(left.edges), len(right.edges))
    label = labels(left)
    for node, twin in zip(left.nodes, right.nodes, strict=True):
        place = f"{address}/{label[node.id]}"
        yield from _node_differences(place, node, twin)
        if left.sources[node.id] != right.sources[twin.id]:
            yield _sentence(place, "what feeds it", left.sources[node.id], right.sources[twin.id])


def _node_differences(place: str, left: Node, right: Node) -> Iterator[str]:
    for what in ("id", "name", "type", "opset", "rt_info", "output_names"):
        if getattr(left, what) != getattr(right, what):
            yield _sentence(place, what, getattr(left, what), getattr(right, what))
    ignored = _REDUNDANT_ATTRIBUTES.get(left.type, frozenset())
    attributes = [
        {name: value for name, value in node.attributes.items() if name not in ignored}
        for node in (left, right)
    ]
    if not _same_attributes(*attributes):
        yield _sentence(place, "its attributes", *attributes)
    exact = left.type in _REDUNDANT_ATTRIBUTES
    for what, ports, others in (
        ("inputs", left.inputs, right.inputs),
        ("outputs", left.outputs, right.outputs),
    ):
        declared = [[_declared(port, exact=exact) for port in side] for side in (ports, others)]
        if declared[0] != declared[1]:
            yield _sentence(place, what, *declared)
    if not same_constant(left.constant, right.constant):
        yield f"{place}: its constant data differ"
    bodies = [[_bindings(body) for body in node.bodies] for node in (left, right)]
    if bodies[0] != bodies[1]:
        yield _sentence(place, "how its bodies are bound", *bodies)


def _same_attributes(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    return left.keys() == right.keys() and all(
        same_attribute(value, right[name]) for name, value in left.items()
    )


def same_attribute(left: object, right: object) -> bool:
    """Return True if two attributes are equal; arrays are compared by type and bytes."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_attribute, left, right))
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        if (left.dtype, left.shape) != (right.dtype, right.shape):
            return False
        return (
            left.tolist() == right.tolist()
            if left.dtype == object
            else (left.tobytes() == right.tobytes())
        )
    return type(left) is type(right) and (left == right or (left != left and right != right))


def _declared(port: Port, *, exact: bool) -> tuple[object, ...]:
    """Return what a file can declare about a port.

    A file does not distinguish a scalar from an unknown rank, and cannot store bounds of
    dimensions.
    """
    shape: object = port.shape
    if not exact:
        shape = tuple(
            dimension.length if dimension.is_static else -1
            for dimension in port.shape.dimensions or ()
        )
    return port.element_type, shape, port.names, port.rt_info


def same_constant(left: Constant | None, right: Constant | None) -> bool:
    """Return True if both are None, or have the same type, shape and bytes."""
    if left is None or right is None:
        return left is right
    if (left.element_type, left.shape, left.is_kept, len(left.data)) != (
        right.element_type,
        right.shape,
        right.is_kept,
        len(right.data),
    ):
        return False
    return bool(
        np.array_equal(np.frombuffer(left.data, np.uint8), np.frombuffer(right.data, np.uint8))
    )


def _bindings(body: Body) -> tuple[object, ...]:
    """Return the name, port map and back edges of a body.

    Entries that repeat an output number are omitted. Output numbers are replaced by their rank,
    because only their order has a meaning.
    """
    rank = {id(entry): index for index, entry in enumerate(body.outer_outputs)}
    outputs = [
        (
            rank.get(id(entry), -1),
            entry.internal,
            str(entry.axis),
            entry.start,
            entry.end,
            entry.stride,
            entry.part_size,
            entry.purpose,
        )
        for entry in body.outputs
        if entry.external == -1 or id(entry) in rank
    ]
    inputs = [
        (
            entry.external,
            entry.internal,
            str(entry.axis),
            entry.start,
            entry.end,
            entry.stride,
            entry.part_size,
            entry.purpose,
        )
        for entry in body.inputs
    ]
    edges = [(edge.from_layer, edge.to_layer) for edge in body.back_edges]
    return body.name, sorted(inputs), sorted(outputs), sorted(edges)
