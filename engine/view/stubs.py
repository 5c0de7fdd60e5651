"""Long lines cut into numbered pairs of stubs: they decide how long a layout takes, and nobody can follow them anyway."""

from __future__ import annotations

from dataclasses import replace

from engine.view.boxes import sized
from engine.view.graph import ViewEdge, ViewNode
from engine.view.order import levels
from engine.view.rows import SIDEWAYS

LONGEST = 12
"""Lines that span more levels than this are cut."""
_CUT = frozenset({"data", "input_map"})


def cut_long_edges(nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...]) -> tuple[tuple[ViewNode, ...], tuple[ViewEdge, ...]]:
    """The same picture with each long line replaced by a numbered stub at either end; back edges stay whole."""
    # Back edges are laid out backwards, so they count as lines from the Parameter down to the Result.
    # Copies of an unrolled body are short enough, and must all look the same.
    copied = {node.id for node in nodes if "[" in node.address}
    arcs = [
        (edge.target, edge.source) if edge.kind in ("back", "again") else (edge.source, edge.target)
        for edge in edges
        if edge.kind not in SIDEWAYS
    ]
    level = levels([node.id for node in nodes], arcs)
    by_id = {node.id: node for node in nodes}
    stubs: list[ViewNode] = []
    kept: list[ViewEdge] = []
    for edge in edges:
        if edge.kind not in _CUT or edge.source in copied or edge.target in copied or level[edge.target] - level[edge.source] <= LONGEST:
            kept.append(edge)
            continue
        number = str(len(stubs) // 2 + 1)
        near, far = by_id[edge.source], by_id[edge.target]
        ids = [f"n{len(nodes) + len(stubs) + end}" for end in (0, 1)]
        towards, back = f"continues at {far.title} {far.name}", f"comes from {near.title} {near.name}"
        stubs.append(sized(ViewNode(ids[0], "stub", edge.tensor, number, cluster=near.cluster, tooltip=towards)))
        stubs.append(sized(ViewNode(ids[1], "stub", edge.tensor, number, cluster=far.cluster, tooltip=back)))
        kept.append(ViewEdge(f"{edge.id}a", "stub", edge.source, ids[0], edge.tensor))
        kept.append(replace(edge, source=ids[1]))
    return (*nodes, *stubs), tuple(kept)
