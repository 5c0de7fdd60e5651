"""Whether two models are the same one, and if not, where they part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.address import ROOT, labels
from loopscope.ir.constant import Constant
from loopscope.ir.model import Body, Model, ModelGraph, Node, Port

# Constants and ports hold these exactly; the text of an attribute may spell them in several ways.
_SAID_ELSEWHERE = {
    "Const": frozenset({"element_type", "shape", "offset", "size"}),
    "Parameter": frozenset({"element_type", "shape"}),
}


def difference(one: Model, other: Model) -> str:
    """The first difference in words; empty when both mean the same.

    Not compared, because it means nothing: port ids (edges are compared by the position of their
    ports), the order of edges and port map entries, where the weights lie, the IR version, lines,
    files. Bounds of dimensions count only where a file can keep them: at Parameters.
    """
    for what in ("name", "dialect", "rt_info", "meta_data"):
        if getattr(one, what) != getattr(other, what):
            return _told("the model", what, getattr(one, what), getattr(other, what))
    waiting = [(ROOT, one.graph, other.graph)]
    while waiting:
        address, mine, yours = waiting.pop()
        found = next(_graph_differences(address, mine, yours), "")
        if found:
            return found
        label = labels(mine)
        for node, twin in zip(mine.nodes, yours.nodes, strict=True):
            for body, other_body in zip(node.bodies, twin.bodies, strict=True):
                waiting.append(
                    (f"{address}/{label[node.id]}/{body.name}", body.graph, other_body.graph)
                )
    return ""


def _told(place: str, what: str, mine: object, yours: object) -> str:
    return f"{place}: {what} is {shorten(repr(mine), 80)} in one and {shorten(repr(yours), 80)} in the other"


def _graph_differences(address: str, mine: ModelGraph, yours: ModelGraph) -> Iterator[str]:
    if len(mine.nodes) != len(yours.nodes):
        yield _told(address, "the number of nodes", len(mine.nodes), len(yours.nodes))
        return
    if len(mine.edges) != len(yours.edges):
        yield _told(address, "the number of edges", len(mine.edges), len(yours.edges))
    label = labels(mine)
    for node, twin in zip(mine.nodes, yours.nodes, strict=True):
        place = f"{address}/{label[node.id]}"
        yield from _node_differences(place, node, twin)
        if mine.sources[node.id] != yours.sources[twin.id]:
            yield _told(place, "what feeds it", mine.sources[node.id], yours.sources[twin.id])


def _node_differences(place: str, mine: Node, yours: Node) -> Iterator[str]:
    for what in ("id", "name", "type", "opset", "rt_info", "output_names"):
        if getattr(mine, what) != getattr(yours, what):
            yield _told(place, what, getattr(mine, what), getattr(yours, what))
    ignored = _SAID_ELSEWHERE.get(mine.type, frozenset())
    attributes = [
        {name: value for name, value in node.attributes.items() if name not in ignored}
        for node in (mine, yours)
    ]
    if attributes[0] != attributes[1]:
        yield _told(place, "its attributes", *attributes)
    exact = mine.type in _SAID_ELSEWHERE
    for what, ports, others in (
        ("inputs", mine.inputs, yours.inputs),
        ("outputs", mine.outputs, yours.outputs),
    ):
        declared = [[_declared(port, exact=exact) for port in side] for side in (ports, others)]
        if declared[0] != declared[1]:
            yield _told(place, what, *declared)
    if not _same_constant(mine.constant, yours.constant):
        yield f"{place}: its constant data differ"
    bodies = [[_bindings(body) for body in node.bodies] for node in (mine, yours)]
    if bodies[0] != bodies[1]:
        yield _told(place, "how its bodies are bound", *bodies)


def _declared(port: Port, *, exact: bool) -> tuple[object, ...]:
    """What a file can say of a port: a scalar and an unknown rank look alike in it, and bounds
    of dimensions are lost.
    """
    shape: object = port.shape
    if not exact:
        shape = tuple(
            dimension.length if dimension.is_static else -1
            for dimension in port.shape.dimensions or ()
        )
    return port.element_type, shape, port.names, port.rt_info


def _same_constant(mine: Constant | None, yours: Constant | None) -> bool:
    if mine is None or yours is None:
        return mine is yours
    if (mine.element_type, mine.shape, mine.is_kept, len(mine.data)) != (
        yours.element_type,
        yours.shape,
        yours.is_kept,
        len(yours.data),
    ):
        return False
    return bool(
        np.array_equal(np.frombuffer(mine.data, np.uint8), np.frombuffer(yours.data, np.uint8))
    )


def _bindings(body: Body) -> tuple[object, ...]:
    """Everything but the numbers of the outputs, of which only the order counts, and entries
    that repeat a number.
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
