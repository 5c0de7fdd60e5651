"""The pictures of a page: one for each way to fold the graph, drawn of parts that they have in common.

A part has the same id in all pictures that show it, so that the moments of a run are told once, of all parts together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import engine
from engine.view import Folding, GraphView, ViewCluster, ViewEdge, ViewNode, graph_view, structure, toggle

MOST_PICTURES = 32
MOST_PARTS = 6000
"""Boxes, frames and lines of all of them."""
MOST_TRIES = 160
"""Pictures that are looked at for it."""
_TABLES = ("nodes", "clusters", "edges")
_Fold = tuple[str, bool]
"""An address, and whether it is drawn as one box."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """Views of one graph; the first is the one that the page opens with."""

    views: tuple[GraphView, ...]
    complete: bool
    """Every click on a fold has its picture among them."""

    @property
    def together(self) -> GraphView:
        """All parts, for an overlay of all pictures at once; nothing that could be drawn."""
        nodes = {one.id: one for view in self.views for one in view.nodes}
        clusters = {one.id: one for view in self.views for one in view.clusters}
        edges = {one.id: one for view in self.views for one in view.edges}
        return replace(self.views[0], nodes=tuple(nodes.values()), clusters=tuple(clusters.values()), edges=tuple(edges.values()))

    def first(self, count: int) -> Pictures:
        """Only so many."""
        return Pictures(self.views[:count], self.complete and count >= len(self.views))

    def as_data(self) -> dict[str, object]:
        """For the page's script: ``parts`` by id, and structures that name them."""
        parts: dict[str, dict[str, object]] = {table: {} for table in _TABLES}
        pictures: list[dict[str, object]] = []
        for view in self.views:
            drawn = structure(view)
            for table in _TABLES:
                own = drawn[table]
                assert isinstance(own, dict)
                parts[table].update(own)
                drawn[table] = list(own)
            pictures.append(drawn)
        return {"parts": parts, "pictures": pictures}


def pictures(model: engine.Model, folding: Folding, root: str) -> Pictures:
    """The picture of a folding, and those that clicks lead to: first one for each fold by itself, then their combinations.

    Where there are more than are kept, some are left out.
    """
    return _Gathering(model, folding, root).gather()


class _Gathering:
    """Pictures so far, and the folds that they show."""

    def __init__(self, model: engine.Model, folding: Folding, root: str) -> None:
        self.model = model
        self.root = root
        self.ids: dict[object, str] = {}
        self.views: list[GraphView] = []
        self.foldings: list[Folding] = []
        self.tried: set[Folding] = set()
        self.seen: set[frozenset[_Fold]] = set()
        self.shown: set[_Fold] = set()
        self.complete = True
        self._try(folding)

    def gather(self) -> Pictures:
        """Each fold by itself, as long as new ones come into sight; then all foldings that one click makes of another."""
        for known in (self.shown, frozenset[_Fold]()):
            waiting = deque(range(len(self.views)))
            while waiting:
                number = waiting.popleft()
                for address, folded in _folds(self.views[number]):
                    if (address, not folded) not in known and self._try(toggle(self.model, self.foldings[number], address)):
                        waiting.append(len(self.views) - 1)
        return Pictures(tuple(self.views), self.complete)

    def _try(self, folding: Folding) -> bool:
        """Whether its picture is a new one, which is kept."""
        if folding in self.tried:
            return False
        if len(self.views) == MOST_PICTURES or len(self.tried) == MOST_TRIES:
            self.complete = False
            return False
        self.tried.add(folding)
        view = graph_view(self.model, folding, self.root)
        folds = frozenset(_folds(view))
        if folds in self.seen:
            return False
        ids = dict(self.ids)
        named = _named(view, ids)
        if self.views and len(ids) > MOST_PARTS:
            self.complete = False
            return False
        self.ids = ids
        self.seen.add(folds)
        self.shown |= folds
        self.views.append(named)
        self.foldings.append(folding)
        return True


def _folds(view: GraphView) -> Iterator[_Fold]:
    """What a click folds or opens."""
    yield from ((node.address, True) for node in view.nodes if node.kind == "folded")
    yield from ((cluster.address, False) for cluster in view.clusters if cluster.foldable)


def _named(view: GraphView, ids: dict[object, str]) -> GraphView:
    """The view with an id for each part that is the same wherever the same part is drawn; new ones go into ``ids``."""
    own: dict[str, str] = {"": ""}
    used: set[str] = set()

    def name(part: ViewNode | ViewCluster | ViewEdge, letter: str) -> str:
        bare, copy = replace(part, id=""), 0
        while (found := ids.setdefault((bare, copy), f"{letter}{len(ids)}")) in used:
            copy += 1
        used.add(found)
        own[part.id] = found
        return found

    clusters = tuple(replace(one, id=name(one, "c")) for one in _with_parents(view.clusters, own))
    nodes = tuple(replace(node, id=name(node, "n")) for node in (replace(one, cluster=own[one.cluster]) for one in view.nodes))
    moved = (replace(one, source=own[one.source], target=own[one.target], frame=own[one.frame]) for one in view.edges)
    edges = tuple(replace(edge, id=name(edge, "e")) for edge in moved)
    return replace(view, nodes=nodes, clusters=clusters, edges=edges)


def _with_parents(clusters: tuple[ViewCluster, ...], own: Mapping[str, str]) -> Iterator[ViewCluster]:
    """With the new id of the frame around each, which comes before it."""
    for one in clusters:
        yield replace(one, parent=own[one.parent])
