"""The picture of a trace: frames of loops with the recorded values in the order of recording.

A trace has no graph. Only what carries a value to the next iteration is drawn as a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from loopscope.ir.address import graphs, labels
from loopscope.ir.model import IF, Model
from loopscope.ir.recorded_rows import RECORDED, is_control
from loopscope.view.graph import ViewEdge, ViewNode, without_iterations

_LINES = frozenset({"back", "carried", "input_map"})
_HIDDEN_KINDS = frozenset({"result", "output", "constant"})


def decisions(model: Model) -> frozenset[str]:
    """Return the static addresses of the decisions of a trace, which are drawn as one box each."""
    return frozenset(
        f"{place.address}/{label}"
        for place in graphs(model)
        for layer, label in labels(place.graph).items()
        if place.graph.by_id[layer].type == IF
    )


def recorded_boxes(
    model: Model, nodes: Iterable[ViewNode], edges: Iterable[ViewEdge]
) -> tuple[tuple[ViewNode, ...], tuple[ViewEdge, ...]]:
    """Return the boxes of recorded values, and the lines of carried values."""
    hidden, producers = _hidden_addresses(model)
    everything = {node.id: node for node in nodes}
    shown = {
        node.id: _named(node)
        for node in everything.values()
        if node.kind not in _HIDDEN_KINDS and without_iterations(node.address) not in hidden
    }
    box_at = {node.address: node.id for node in shown.values()}
    lines = [
        line
        for edge in edges
        if edge.kind in _LINES
        for line in [_from_value(edge, everything, producers, box_at)]
        if line.source in shown and line.target in shown
    ]
    order = _order(shown.values())
    return tuple(shown.values()), (*lines, *order)


def _named(node: ViewNode) -> ViewNode:
    """Return the box of a value or a decision with its name as title."""
    if node.title == RECORDED:
        return replace(node, title=node.name, name="")
    if node.kind == "folded" and not node.loops and node.title == IF:
        return replace(node, title=node.name, name="", detail="", badge="decision")
    return node


def _from_value(
    edge: ViewEdge,
    nodes: Mapping[str, ViewNode],
    producers: Mapping[str, str],
    box_at: Mapping[str, str],
) -> ViewEdge:
    """Return a back edge that begins at the value itself instead of at a Result."""
    source = nodes.get(edge.source)
    if source is None or source.kind != "result":
        return edge
    graph, _, label = source.address.rpartition("/")
    producer = producers.get(without_iterations(source.address), label)
    return replace(edge, source=box_at.get(f"{graph}/{producer}", edge.source))


def _order(nodes: Iterable[ViewNode]) -> Iterator[ViewEdge]:
    """Yield invisible lines that place the boxes of each frame in the order of recording."""
    frames: dict[str, list[ViewNode]] = {}
    for node in nodes:
        if node.kind != "parameter":
            frames.setdefault(node.cluster, []).append(node)
    number = 0
    for members in frames.values():
        for upper, lower in pairwise(members):
            yield ViewEdge(f"o{number}", "data", upper.id, lower.id, latent=True)
            number += 1


def _hidden_addresses(model: Model) -> tuple[frozenset[str], Mapping[str, str]]:
    """Return the addresses that no program recorded, and the label of each Result's value."""
    hidden: set[str] = set()
    producers: dict[str, str] = {}
    for place in graphs(model):
        label = labels(place.graph)
        body = place.body
        carried = {edge.to_layer for edge in body.back_edges} if body is not None else set()
        for node in place.graph.nodes:
            address = f"{place.address}/{label[node.id]}"
            if is_control(node) or (node.type == "Parameter" and node.id not in carried):
                hidden.add(address)
            if node.type == "Result":
                source = place.graph.sources[node.id][0]
                if source is not None:
                    producers[address] = label[source.layer]
    return frozenset(hidden), producers
