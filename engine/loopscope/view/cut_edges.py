"""Cuts of long lines into numbered ends, because long lines dominate layout time and are hard to
follow.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from loopscope.view.boxes import sized
from loopscope.view.graph import ViewEdge, ViewNode
from loopscope.view.node_order import cycle_closing_arcs, levels
from loopscope.view.rows import SIDEWAYS

MAX_LEVELS = 12
"""Number of levels that a line may span without being cut."""
_MAX_TARGETS = 5
"""Largest number of targets that the tooltip of a cut line names."""
_CUT = frozenset({"data", "input_map"})
_ENTERS = frozenset({"input_map", "trip_count", "start"})


def _into_rows(
    nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...]
) -> Iterator[tuple[str, str]]:
    """Yield pairs of ids, upper and lower, that place a frame's sources above its first row.

    Otherwise the first row would be level with the lowest of its inputs.
    """
    frame_of = {node.id: node.cluster for node in nodes}
    row: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        if node.cluster and node.at_top:
            row[node.cluster].append(node.id)
    entering: dict[str, dict[str, None]] = defaultdict(dict)
    for edge in edges:
        if edge.kind == "branch":
            entering[edge.frame][edge.source] = None
        elif edge.kind in _ENTERS and frame_of[edge.source] != frame_of[edge.target]:
            entering[frame_of[edge.target]][edge.source] = None
    for frame, sources in entering.items():
        yield from itertools.product(sources, row[frame])


def cut_long_edges(
    nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...]
) -> tuple[tuple[ViewNode, ...], tuple[ViewEdge, ...]]:
    """Replace each long line by a numbered end on either side; back edges stay whole.

    Lines with the same value share the end at their source.
    """
    # Back edges are laid out in reverse, so they count as lines from the Parameter down to the
    # Result. Copies of an unrolled body are short, and must all look the same.
    copied = {node.id for node in nodes if "[" in node.address}
    arcs = [
        (edge.target, edge.source) if edge.kind in ("back", "again") else (edge.source, edge.target)
        for edge in edges
        if edge.kind not in SIDEWAYS
    ]
    ids = [node.id for node in nodes]
    closing = cycle_closing_arcs(ids, arcs)
    level = levels(ids, [*arcs, *_into_rows(nodes, edges)])
    by_id = {node.id: node for node in nodes}
    lowest: dict[str, str] = {}
    for edge in edges:
        if edge.latent:
            lowest[edge.target] = max(
                lowest.get(edge.target, edge.source), edge.source, key=level.__getitem__
            )
    cut_ends: list[ViewNode] = []
    cuts: dict[tuple[str, str], list[ViewEdge]] = {}
    remaining: list[ViewEdge] = []
    for edge in edges:
        if edge.latent:
            # One short line is enough to order both boxes vertically.
            short = level[edge.target] - level[edge.source] <= MAX_LEVELS
            remaining.append(replace(edge, placed=short and lowest[edge.target] == edge.source))
            continue
        whole = edge.kind not in _CUT or edge.source in copied or edge.target in copied
        if whole or abs(level[edge.target] - level[edge.source]) <= MAX_LEVELS:
            remaining.append(
                replace(edge, upwards=edge.kind in _CUT and (edge.source, edge.target) in closing)
            )
            continue
        cuts.setdefault((edge.source, edge.tensor), []).append(edge)
    for number, cut in enumerate(cuts.values(), 1):
        near, tensor = by_id[cut[0].source], cut[0].tensor
        places = [by_id[edge.target] for edge in cut]
        targets = ", ".join(f"{far.title} {far.name}" for far in places[:_MAX_TARGETS]) + (
            f" and {len(cut) - _MAX_TARGETS} more" * (len(cut) > _MAX_TARGETS)
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
                    tooltip=f"continues at {targets}",
                )
            )
        )
        remaining.append(ViewEdge(f"{cut[0].id}a", "cut_end", near.id, begin, tensor))
        for edge, far, end in zip(cut, places, ends, strict=True):
            back = f"from {near.title} {near.name}"
            cut_ends.append(
                sized(
                    ViewNode(end, "cut_end", tensor, str(number), cluster=far.cluster, tooltip=back)
                )
            )
            remaining.append(replace(edge, source=end))
    return (*nodes, *cut_ends), tuple(remaining)
