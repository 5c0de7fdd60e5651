"""Provenance on a picture: the boxes and drawn lines along which a value was computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.explain.provenance import ProvenanceStep, Role
from loopscope.view.graph import EdgeKind, GraphView, ViewEdge, ViewNode, without_iterations

FARTHEST = 5
"""Largest distance with a shade of its own."""
_ARRIVAL_KINDS: Mapping[Role, frozenset[EdgeKind]] = {
    "operand": frozenset({"data"}),
    "back edge": frozenset({"back", "carried"}),
    "initial value": frozenset({"input_map", "carried"}),
    "slice": frozenset({"input_map"}),
    "invariant": frozenset({"input_map", "data"}),
    "branch": frozenset({"merge", "input_map"}),
    "call": frozenset({"merge", "input_map", "output_map"}),
    "last value": frozenset({"output_map"}),
    "concatenated": frozenset({"output_map"}),
    "assigned": frozenset(),
    "condition": frozenset({"condition", "start", "again"}),
    "trip count": frozenset({"trip_count"}),
}
"""Kinds of lines on which a value of each role arrives."""
_INTO_FOLDED: frozenset[EdgeKind] = frozenset(
    {"data", "trip_count", "start", "condition", "input_map", "carried"}
)
_PASSING_KINDS: frozenset[EdgeKind] = frozenset({"data", "cut_end", "input_map"})
_MAX_PATH = 4


@dataclass(slots=True)
class Highlight:
    """Highlighted boxes and lines by id, with their distance from the traced value."""

    boxes: dict[str, int] = field(default_factory=dict[str, int])
    lines: dict[str, int] = field(default_factory=dict[str, int])


def highlight(view: GraphView, steps: Sequence[ProvenanceStep]) -> Highlight:
    """Return the boxes and lines of a provenance (``loopscope.explain.provenance.provenance``).

    Steps that the picture does not contain are left out.
    """
    return _Highlighter(view).run(steps)


class _Highlighter:
    def __init__(self, view: GraphView) -> None:
        self.view = view
        self.nodes = {node.id: node for node in view.nodes}
        self.arriving: dict[str, list[ViewEdge]] = defaultdict(list)
        for edge in view.edges:
            self.arriving[edge.target].append(edge)
        self.near: dict[str, str] = {}
        """Id of the end near the source of each cut line, by the line's number. It precedes the far
        end.
        """
        for node in view.nodes:
            if node.kind == "cut_end":
                self.near.setdefault(node.title, node.id)
        self.result = Highlight()
        self._paths: dict[tuple[str, frozenset[EdgeKind]], Mapping[str, tuple[ViewEdge, ...]]] = {}

    def run(self, steps: Sequence[ProvenanceStep]) -> Highlight:
        for step in steps:
            box = self._box(step.address)
            if box is None:
                continue
            self._mark(self.result.boxes, box.id, step.distance)
            for link in step.links:
                source = self._box(link.address)
                if source is not None and source is not box:
                    self._mark(self.result.boxes, source.id, step.distance + 1)
                    self._mark_path(source, self._arrival(box, link.role), link.role, step.distance)
        return self.result

    def _mark_path(self, source: ViewNode, target: ViewNode, role: Role, distance: int) -> None:
        allowed = _INTO_FOLDED if target.kind == "folded" else _ARRIVAL_KINDS[role]
        key = target.id, allowed
        if key not in self._paths:
            self._paths[key] = self._paths_to(*key)
        for edge in self._paths[key].get(source.id, ()):
            self._mark(self.result.lines, edge.id, distance + (edge.target != target.id))
            for end in (edge.source, edge.target):
                self._mark(self.result.boxes, end, distance + (end != target.id))

    def _paths_to(
        self, target: str, allowed: frozenset[EdgeKind]
    ) -> Mapping[str, tuple[ViewEdge, ...]]:
        """Return the shortest path of lines to a box from each box that reaches it.

        Boxes in between only pass values on.
        """
        paths: dict[str, tuple[ViewEdge, ...]] = {}
        frontier: list[tuple[str, frozenset[EdgeKind], tuple[ViewEdge, ...]]] = [
            (target, allowed, ())
        ]
        for _ in range(_MAX_PATH + 1):
            next_frontier: list[tuple[str, frozenset[EdgeKind], tuple[ViewEdge, ...]]] = []
            for box, kinds, path in frontier:
                for edge in self.arriving[box]:
                    if edge.kind in kinds and edge.source not in paths:
                        paths[edge.source] = (*path, edge)
                        through = self.nodes[edge.source]
                        if self._passes_on(through):
                            before = (
                                self.near[through.title]
                                if through.kind == "cut_end"
                                else through.id
                            )
                            next_frontier.append((before, _PASSING_KINDS, paths[edge.source]))
            frontier = next_frontier
        return paths

    def _passes_on(self, node: ViewNode) -> bool:
        """Return True for boxes that only pass a value on.

        These are Results, ends of cut lines, and a Parameter box that all copies of an unrolled
        body share.
        """
        if node.kind == "parameter":
            loop = node.address.rpartition("/")[0].rpartition("/")[0]
            return not loop.endswith("]") and without_iterations(loop) in self.view.unrolled
        return node.kind in ("result", "cut_end")

    def _arrival(self, box: ViewNode, role: Role) -> ViewNode:
        """Return the box where a value of this role arrives; for conditions the header of the If or
        loop.
        """
        header = (
            self.view.node_of.get(box.address.partition(":")[0])
            if role in ("condition", "trip count")
            else None
        )
        return header or box

    def _box(self, address: str) -> ViewNode | None:
        """Return the box of a value: its own, the folded box around it, or the box for iterations
        beside the window.
        """
        path, _, output = self.view.place_of(address).partition(":")
        own_box = self.view.node_of.get(f"{path}:{output or 0}") or self.view.node_of.get(path)
        if own_box is not None:
            return own_box
        enclosing = self.view.showing(path)
        if enclosing is not None and enclosing.kind == "folded":
            return enclosing
        return next(self._beside_window(path), None) if self.view.unrolled else None

    def _beside_window(self, path: str) -> Iterator[ViewNode]:
        for node in self.view.nodes:
            if node.kind != "more" or not path.startswith(f"{node.address}["):
                continue
            number = _iteration(path, node.address)
            iterations = [
                _iteration(cluster.address, node.address)
                for cluster in self.view.clusters
                if cluster.address.startswith(f"{node.address}[")
            ]
            if node.badge == (
                "earlier"
                if number < min(iterations)
                else "later"
                if number > max(iterations)
                else ""
            ):
                yield node

    @staticmethod
    def _mark(marks: dict[str, int], id: str, distance: int) -> None:
        marks[id] = min(distance, marks.get(id, FARTHEST), FARTHEST)


def _iteration(address: str, loop: str) -> int:
    """Return the iteration number of a loop in an address.

    >>> _iteration("main/loop[12]/body/x", "main/loop")
    12
    """
    return int(address[len(loop) + 1 :].partition("]")[0])
