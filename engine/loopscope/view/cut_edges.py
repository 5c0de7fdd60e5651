"""Long lines cut into numbered ends: they dominate the time of a layout, and cannot be followed
by eye anyway.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from loopscope.view.boxes import sized
from loopscope.view.drawing_order import levels, turned
from loopscope.view.graph import ViewEdge, ViewNode
from loopscope.view.rows import SIDEWAYS

LONGEST = 12
"""Lines that span more levels than this are cut."""
_TOLD = 5
"""Places that the beginning of a cut line names."""
_CUT = frozenset({"data", "input_map"})
_ENTERS = frozenset({"input_map", "trip_count", "start"})


def _into_rows(
    nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...]
) -> Iterator[tuple[str, str]]:
    """Pairs of ids, upper and lower, that put what enters a frame above its first row, which is
    as low as the lowest of its inputs.
    """
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


def cut_long_edges(
    nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...]
) -> tuple[tuple[ViewNode, ...], tuple[ViewEdge, ...]]:
    """The same picture with each long line replaced by a numbered end on either side, one at the
    beginning for all that bring the same value; back edges stay whole.
    """
    # Back edges are laid out backwards, so they count as lines from the Parameter down to the
    # Result. Instances of an unrolled body are short enough, and must all look the same.
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
            lowest[edge.target] = max(
                lowest.get(edge.target, edge.source), edge.source, key=level.__getitem__
            )
    cut_ends: list[ViewNode] = []
    begun: dict[tuple[str, str], list[ViewEdge]] = {}
    kept: list[ViewEdge] = []
    for edge in edges:
        if edge.latent:
            # One short line is enough to order the two vertically.
            short = level[edge.target] - level[edge.source] <= LONGEST
            kept.append(replace(edge, placed=short and lowest[edge.target] == edge.source))
            continue
        whole = edge.kind not in _CUT or edge.source in copied or edge.target in copied
        if whole or abs(level[edge.target] - level[edge.source]) <= LONGEST:
            kept.append(
                replace(edge, upwards=edge.kind in _CUT and (edge.source, edge.target) in closing)
            )
            continue
        begun.setdefault((edge.source, edge.tensor), []).append(edge)
    for number, cut in enumerate(begun.values(), 1):
        near, tensor = by_id[cut[0].source], cut[0].tensor
        places = [by_id[edge.target] for edge in cut]
        towards = ", ".join(f"{far.title} {far.name}" for far in places[:_TOLD]) + (
            f" and {len(cut) - _TOLD} more" * (len(cut) > _TOLD)
        )
        begin, *ends = (
            f"n{len(nodes) + len(cut_ends) + position}" for position in range(len(cut) + 1)
        )
        cut_ends.append(
            sized(
                ViewNode(
                    begin,
                    "cut_end",
                    tensor,
                    str(number),
                    cluster=near.cluster,
                    tooltip=f"continues at {towards}",
                )
            )
        )
        kept.append(ViewEdge(f"{cut[0].id}a", "cut_end", near.id, begin, tensor))
        for edge, far, end in zip(cut, places, ends, strict=True):
            back = f"comes from {near.title} {near.name}"
            cut_ends.append(
                sized(
                    ViewNode(end, "cut_end", tensor, str(number), cluster=far.cluster, tooltip=back)
                )
            )
            kept.append(replace(edge, source=end))
    return (*nodes, *cut_ends), tuple(kept)
