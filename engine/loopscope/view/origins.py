"""Which boxes and lines of a picture a value came through: its provenance, followed back along
the lines that are drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loopscope.explain.provenance import ProvenanceStep, Role
from loopscope.view.graph import EdgeKind, GraphView, ViewEdge, ViewNode, without_iterations

FARTHEST = 5
"""Shades end at this distance."""
_ARRIVES: Mapping[Role, frozenset[EdgeKind]] = {
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
"""The lines on which a value of each role arrives."""
_INTO_FOLDED: frozenset[EdgeKind] = frozenset(
    {"data", "trip_count", "start", "condition", "input_map", "carried"}
)
_PASSED_ON: frozenset[EdgeKind] = frozenset({"data", "cut_end", "input_map"})
_LONGEST_WAY = 4


@dataclass(slots=True)
class Lit:
    """What lights up, by id, with its distance from the value that was asked about."""

    boxes: dict[str, int] = field(default_factory=dict[str, int])
    lines: dict[str, int] = field(default_factory=dict[str, int])


def lit(view: GraphView, steps: Sequence[ProvenanceStep]) -> Lit:
    """A provenance (``loopscope.explain.provenance.provenance``) on a picture; what is not on
    the picture is left out.
    """
    return _Lighting(view).light(steps)


class _Lighting:
    def __init__(self, view: GraphView) -> None:
        self.view = view
        self.nodes = {node.id: node for node in view.nodes}
        self.arriving: dict[str, list[ViewEdge]] = defaultdict(list)
        for edge in view.edges:
            self.arriving[edge.target].append(edge)
        self.near: dict[str, str] = {}
        """Of each cut line the end at its source, by number: it comes before the other."""
        for node in view.nodes:
            if node.kind == "cut_end":
                self.near.setdefault(node.title, node.id)
        self.found = Lit()
        self._ways: dict[tuple[str, frozenset[EdgeKind]], Mapping[str, tuple[ViewEdge, ...]]] = {}

    def light(self, steps: Sequence[ProvenanceStep]) -> Lit:
        for step in steps:
            made = self._box(step.address)
            if made is None:
                continue
            self._mark(self.found.boxes, made.id, step.distance)
            for link in step.links:
                source = self._box(link.address)
                if source is not None and source is not made:
                    self._mark(self.found.boxes, source.id, step.distance + 1)
                    self._light_way(
                        source, self._arrival(made, link.role), link.role, step.distance
                    )
        return self.found

    def _light_way(self, source: ViewNode, target: ViewNode, role: Role, distance: int) -> None:
        allowed = _INTO_FOLDED if target.kind == "folded" else _ARRIVES[role]
        key = target.id, allowed
        if key not in self._ways:
            self._ways[key] = self._ways_to(*key)
        for edge in self._ways[key].get(source.id, ()):
            self._mark(self.found.lines, edge.id, distance + (edge.target != target.id))
            for end in (edge.source, edge.target):
                self._mark(self.found.boxes, end, distance + (end != target.id))

    def _ways_to(
        self, target: str, allowed: frozenset[EdgeKind]
    ) -> Mapping[str, tuple[ViewEdge, ...]]:
        """For each box from which lines lead to another through boxes that only pass values on,
        the fewest such lines.
        """
        found: dict[str, tuple[ViewEdge, ...]] = {}
        waiting: list[tuple[str, frozenset[EdgeKind], tuple[ViewEdge, ...]]] = [
            (target, allowed, ())
        ]
        for _ in range(_LONGEST_WAY + 1):
            new: list[tuple[str, frozenset[EdgeKind], tuple[ViewEdge, ...]]] = []
            for box, kinds, way in waiting:
                for edge in self.arriving[box]:
                    if edge.kind in kinds and edge.source not in found:
                        found[edge.source] = (*way, edge)
                        through = self.nodes[edge.source]
                        if self._hands_on(through):
                            before = (
                                self.near[through.title]
                                if through.kind == "cut_end"
                                else through.id
                            )
                            new.append((before, _PASSED_ON, found[edge.source]))
            waiting = new
        return found

    def _hands_on(self, node: ViewNode) -> bool:
        """A Result, a cut line's end, or the one box of a Parameter that is the same in all
        copies of an unrolled body.
        """
        if node.kind == "parameter":
            loop = node.address.rpartition("/")[0].rpartition("/")[0]
            return not loop.endswith("]") and without_iterations(loop) in self.view.unrolled
        return node.kind in ("result", "cut_end")

    def _arrival(self, made: ViewNode, role: Role) -> ViewNode:
        """Where a value of this role arrives: what decides at the header of its If or loop."""
        header = (
            self.view.node_of.get(made.address.partition(":")[0])
            if role in ("condition", "trip count")
            else None
        )
        return header or made

    def _box(self, address: str) -> ViewNode | None:
        """The box that shows a value: its own, the folded one around it, or the one of
        iterations beside the window.
        """
        path, _, output = self.view.place_of(address).partition(":")
        own = self.view.node_of.get(f"{path}:{output or 0}") or self.view.node_of.get(path)
        if own is not None:
            return own
        around = self.view.showing(path)
        if around is not None and around.kind == "folded":
            return around
        return next(self._beside_window(path), None) if self.view.unrolled else None

    def _beside_window(self, path: str) -> Iterator[ViewNode]:
        for node in self.view.nodes:
            if node.kind != "more" or not path.startswith(f"{node.address}["):
                continue
            number = _iteration(path, node.address)
            shown = [
                _iteration(one.address, node.address)
                for one in self.view.clusters
                if one.address.startswith(f"{node.address}[")
            ]
            if node.badge == (
                "earlier" if number < min(shown) else "later" if number > max(shown) else ""
            ):
                yield node

    @staticmethod
    def _mark(marks: dict[str, int], id: str, distance: int) -> None:
        marks[id] = min(distance, marks.get(id, FARTHEST), FARTHEST)


def _iteration(address: str, loop: str) -> int:
    """The iteration of a loop that an address lies in.

    >>> _iteration("main/loop[12]/body/x", "main/loop")
    12
    """
    return int(address[len(loop) + 1 :].partition("]")[0])
