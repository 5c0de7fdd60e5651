"""Cuts of long lines into numbered ends, because long lines dominate layout time and are hard to
follow.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
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
    remaining, cuts = _separate_long(nodes, edges)
    by_id = {node.id: node for node in nodes}
    drawn = list(nodes)
    for number, cut in enumerate(cuts, 1):
        ends, lines = _cut(cut, number, by_id, len(drawn))
        drawn += ends
        remaining += lines
    return tuple(drawn), tuple(remaining)


def _separate_long(
    nodes: tuple[ViewNode, ...], edges: tuple[ViewEdge, ...]
) -> tuple[list[ViewEdge], list[list[ViewEdge]]]:
    """Return the lines that stay whole, and the long lines grouped by source and value."""
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
    lowest = _lowest_latent_sources(edges, level)
    whole: list[ViewEdge] = []
    cuts: dict[tuple[str, str], list[ViewEdge]] = {}
    for edge in edges:
        span = level[edge.target] - level[edge.source]
        if edge.latent:
            # One short line is enough to order both boxes vertically.
            placed = span <= MAX_LEVELS and lowest[edge.target] == edge.source
            whole.append(replace(edge, placed=placed))
        elif (
            edge.kind not in _CUT
            or edge.source in copied
            or edge.target in copied
            or abs(span) <= MAX_LEVELS
        ):
            upwards = edge.kind in _CUT and (edge.source, edge.target) in closing
            whole.append(replace(edge, upwards=upwards))
        else:
            cuts.setdefault((edge.source, edge.tensor), []).append(edge)
    return whole, list(cuts.values())


def _lowest_latent_sources(edges: tuple[ViewEdge, ...], level: Mapping[str, int]) -> dict[str, str]:
    """Map the target of latent lines to the source of theirs on the lowest level."""
    lowest: dict[str, str] = {}
    for edge in edges:
        if edge.latent:
            lowest[edge.target] = max(
                lowest.get(edge.target, edge.source), edge.source, key=level.__getitem__
            )
    return lowest


def _cut(
    cut: list[ViewEdge], number: int, by_id: Mapping[str, ViewNode], first_id: int
) -> tuple[list[ViewNode], list[ViewEdge]]:
    """Return the ends that replace long lines of one value, and the short lines to these ends."""
    near, tensor = by_id[cut[0].source], cut[0].tensor
    targets = [by_id[edge.target] for edge in cut]
    names = ", ".join(f"{far.title} {far.name}" for far in targets[:_MAX_TARGETS])
    if len(cut) > _MAX_TARGETS:
        names += f" and {len(cut) - _MAX_TARGETS} more"
    begin, *far_ids = (f"n{first_id + position}" for position in range(len(cut) + 1))

    def end(id: str, cluster: str, tooltip: str) -> ViewNode:
        return sized(ViewNode(id, "cut_end", tensor, str(number), cluster=cluster, tooltip=tooltip))

    ends = [end(begin, near.cluster, f"continues at {names}")]
    ends += [
        end(id, far.cluster, f"from {near.title} {near.name}")
        for id, far in zip(far_ids, targets, strict=True)
    ]
    lines = [ViewEdge(f"{cut[0].id}a", "cut_end", near.id, begin, tensor)]
    lines += [replace(edge, source=id) for edge, id in zip(cut, far_ids, strict=True)]
    return ends, lines
