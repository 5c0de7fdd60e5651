"""Unrolled loops as rows of copies, for a layout that is computed once and repeated per iteration.

A layout of all copies at once would make each copy look different. Therefore the first copy of a
row has a layout of its own, the picture around it contains one box for the row, and lines that
cross the border of a copy are drawn at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from loopscope.view.graph import GraphView, ViewCluster, ViewEdge, ViewNode

SIDEWAYS = frozenset({"carried", "goes_on"})
"""Kinds of lines between consecutive copies."""


@dataclass(frozen=True, slots=True)
class CopyMembers:
    """Ids inside the frame of one copy, in the same order for every copy of a row; the frame itself
    first.
    """

    clusters: tuple[str, ...]
    nodes: tuple[str, ...]
    edges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnrolledRow:
    """The copies of one unrolled loop, first iteration first."""

    id: str
    cluster: str
    """Id of the loop's frame."""
    copies: tuple[CopyMembers, ...]
    earlier: str = ""
    later: str = ""
    """Ids of the boxes at both ends of the row."""


@dataclass(slots=True)
class LayoutPart:
    """The content of one layout: boxes, frames, lines between them, and rows as single boxes."""

    nodes: list[ViewNode] = field(default_factory=list[ViewNode])
    clusters: list[ViewCluster] = field(default_factory=list[ViewCluster])
    edges: list[ViewEdge] = field(default_factory=list[ViewEdge])
    rows: list[UnrolledRow] = field(default_factory=list[UnrolledRow])
    pulls: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    """Pairs of boxes or rows with lines that are drawn later. The second one is placed below the
    first.
    """


class ViewRows:
    """The rows of a view, and the parts of its layout."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._frame = {frame.id: frame for frame in view.clusters}
        self._copy_of: dict[str, str] = {"": ""}
        for frame in view.clusters:
            self._copy_of[frame.id] = (
                frame.id if frame.kind == "copy" else self._copy_of[frame.parent]
            )
        self._siblings: dict[str, list[str]] = {}
        for frame in view.clusters:
            if frame.kind == "copy":
                self._siblings.setdefault(frame.parent, []).append(frame.id)
        self._row_of = {loop: f"r{number}" for number, loop in enumerate(self._siblings)}
        self._cluster_of = {node.id: node.cluster for node in view.nodes}
        self._more = {node.id for node in view.nodes if node.kind == "more"}

    def parts(self) -> tuple[LayoutPart, list[tuple[UnrolledRow, LayoutPart]]]:
        """Return the outermost part, and each row with the part for its first copy.

        Rows inside copies precede the rows around them.
        """
        rows = [
            self._row(loop)
            for loop in self._siblings
            if all(self._is_first(copy) for copy in self._copies_round(loop))
        ]
        parts = {"": LayoutPart()} | {row.copies[0].clusters[0]: LayoutPart() for row in rows}
        for row in rows:
            parts[self._copy_of[row.cluster]].rows.append(row)
        for frame in self._view.clusters:
            if self._copy_of[frame.id] in parts:
                parts[self._copy_of[frame.id]].clusters.append(frame)
        for node in self._view.nodes:
            if self._copy_of[node.cluster] in parts and node.id not in self._more:
                parts[self._copy_of[node.cluster]].nodes.append(node)
        for edge in self._view.edges:
            self._place(edge, parts)
        return parts[""], [(row, parts[row.copies[0].clusters[0]]) for row in reversed(rows)]

    def _place(self, edge: ViewEdge, parts: dict[str, LayoutPart]) -> None:
        if edge.kind in SIDEWAYS:
            return
        ends = [dict(self._stands_for(end)) for end in (edge.source, edge.target)]
        for copy in ends[0].keys() & ends[1].keys() & parts.keys():
            source, target = ends[0][copy], ends[1][copy]
            if (source, target) == (edge.source, edge.target):
                parts[copy].edges.append(edge)
            elif source != target:
                parts[copy].pulls[source, target] = None

    def _stands_for(self, node: str) -> Iterator[tuple[str, str]]:
        """Yield each part that contains a box, directly or in a row, with the item that represents
        it there.
        """
        frame = self._cluster_of[node]
        item = node
        if node in self._more:
            item = self._row_of[frame]
        while True:
            copy = self._copy_of[frame]
            yield copy, item
            if not copy:
                return
            frame = self._frame[copy].parent
            item = self._row_of[frame]

    def _copies_round(self, cluster: str) -> Iterator[str]:
        while copy := self._copy_of[cluster]:
            yield copy
            cluster = self._frame[copy].parent

    def _is_first(self, copy: str) -> bool:
        return self._siblings[self._frame[copy].parent][0] == copy

    def _row(self, loop: str) -> UnrolledRow:
        inside = {copy: CopyMembers(*self._inside(copy)) for copy in self._siblings[loop]}
        ends = {
            node.badge: node.id
            for node in self._view.nodes
            if node.id in self._more and node.cluster == loop
        }
        return UnrolledRow(
            self._row_of[loop],
            loop,
            tuple(inside.values()),
            ends.get("earlier", ""),
            ends.get("later", ""),
        )

    def _inside(self, copy: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        frames = {copy: None}
        for frame in self._view.clusters:
            if frame.parent in frames:
                frames[frame.id] = None
        nodes = {node.id: None for node in self._view.nodes if node.cluster in frames}
        edges = tuple(
            edge.id for edge in self._view.edges if edge.source in nodes and edge.target in nodes
        )
        return tuple(frames), tuple(nodes), edges
