"""Long lines cut into numbered pairs of stubs: they decide how long a layout takes, and nobody can follow them anyway."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from engine.view.boxes import sized
from engine.view.graph import ViewEdge, ViewNode
from engine.view.order import levels, turned
from engine.view.rows import SIDEWAYS

LONGEST = 12
"""Lines that span more levels than this are cut."""
_CUT = frozenset({"data", "input_map"})
_ENTERS = frozenset({"input_map", "trip_count", "start"})


def _into_rows(nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...]) -> Iterator[tuple[str, str]]:
    """What comes into a frame stands above all of its first row, which is as low as the lowest of what comes in."""
    frame_of = {node.id: node.cluster for node in nodes}
    row: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        if node.cluster and node.at_top:
            row[node.cluster].append(node.id)
    coming: dict[str, dict[str, None]] = defaultdict(dict)
    for edge in edges:
        if edge.kind == "branch":
            coming[edge.frame][edge.source] = None
        elif edge.kind in _ENTERS and frame_of[edge.source] != frame_of[edge.target]:
            coming[frame_of[edge.target]][edge.source] = None
    for frame, sources in coming.items():
        yield from itertools.product(sources, row[frame])


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
    ids = [node.id for node in nodes]
    closing = turned(ids, arcs)
    level = levels(ids, [*arcs, *_into_rows(nodes, edges)])
    by_id = {node.id: node for node in nodes}
    lowest: dict[str, str] = {}
    for edge in edges:
        if edge.latent:
            lowest[edge.target] = max(lowest.get(edge.target, edge.source), edge.source, key=level.__getitem__)
    stubs: list[ViewNode] = []
    kept: list[ViewEdge] = []
    for edge in edges:
        if edge.latent:
            # One short line is enough to say what stands below what.
            short = level[edge.target] - level[edge.source] <= LONGEST
            kept.append(replace(edge, placed=short and lowest[edge.target] == edge.source))
            continue
        whole = edge.kind not in _CUT or edge.source in copied or edge.target in copied
        if whole or abs(level[edge.target] - level[edge.source]) <= LONGEST:
            kept.append(replace(edge, upwards=edge.kind in _CUT and (edge.source, edge.target) in closing))
            continue
        number = str(len(stubs) // 2 + 1)
        near, far = by_id[edge.source], by_id[edge.target]
        ends = [f"n{len(nodes) + len(stubs) + end}" for end in (0, 1)]
        towards, back = f"continues at {far.title} {far.name}", f"comes from {near.title} {near.name}"
        stubs.append(sized(ViewNode(ends[0], "stub", edge.tensor, number, cluster=near.cluster, tooltip=towards)))
        stubs.append(sized(ViewNode(ends[1], "stub", edge.tensor, number, cluster=far.cluster, tooltip=back)))
        kept.append(ViewEdge(f"{edge.id}a", "stub", edge.source, ends[0], edge.tensor))
        kept.append(replace(edge, source=ends[1]))
    return (*nodes, *stubs), tuple(kept)
