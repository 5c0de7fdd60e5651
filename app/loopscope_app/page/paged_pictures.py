"""The pictures of a page: one for each way to fold the graph, drawn of parts that they have in
common.

A part has the same id in all pictures that show it, so that the moments of a run are told once, of
all parts together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import loopscope
from loopscope.view import (
    Folding,
    GraphView,
    ViewCluster,
    ViewEdge,
    ViewNode,
    graph_view,
    structure,
    toggle,
)

MOST_PICTURES = 32
MOST_PARTS = 6000
"""Boxes, frames and lines of all of them."""
MOST_WINDOWS = MOST_PICTURES // 2
"""Of them, how many show other iterations of unrolled loops."""
MOST_TOLD = 200_000
"""Boxes of copies, of all moments together: telling so many takes some seconds."""
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
    """Every click on a fold, and every iteration of an unrolled loop, has its picture among
    them.
    """

    @property
    def together(self) -> GraphView:
        """All parts, for an overlay of all pictures at once; nothing that could be drawn."""
        nodes = {one.id: one for view in self.views for one in view.nodes}
        clusters = {one.id: one for view in self.views for one in view.clusters}
        edges = {one.id: one for view in self.views for one in view.edges}
        return replace(
            self.views[0],
            nodes=tuple(nodes.values()),
            clusters=tuple(clusters.values()),
            edges=tuple(edges.values()),
        )

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


def pictures(
    model: loopscope.Model,
    folding: Folding,
    root: str,
    iterations: Mapping[str, int] | None = None,
    moments: int = 1,
) -> Pictures:
    """The picture of a folding, those with other iterations of its unrolled loops, and those that
    clicks lead to: first one for each fold by itself, then their combinations.

    ``iterations``: how many an unrolled loop has at most; ``moments``: for how many of them each
    copy will be told. Where there are more pictures than are kept, some are left out.
    """
    return _Gathering(model, folding, root, iterations or {}, MOST_TOLD // moments).gather()


class _Gathering:
    """Pictures so far, and the folds that they show."""

    def __init__(
        self,
        model: loopscope.Model,
        folding: Folding,
        root: str,
        iterations: Mapping[str, int],
        most_boxes: int,
    ) -> None:
        self.model = model
        self.root = root
        self.iterations = iterations
        self.most_boxes = most_boxes
        self.ids: dict[object, str] = {}
        self.views: list[GraphView] = []
        self.foldings: list[Folding] = []
        self.tried: set[Folding] = set()
        self.seen: set[frozenset[_Fold]] = set()
        self.shown: set[_Fold] = set()
        self.complete = True
        self._try(folding)

    def gather(self) -> Pictures:
        """Other iterations; each fold by itself, as long as new ones come into sight; then all
        foldings that one click makes of another.
        """
        self._gather_windows()
        for known in (self.shown, frozenset[_Fold]()):
            waiting = deque(range(len(self.views)))
            while waiting:
                number = waiting.popleft()
                for address, folded in _folds(self.views[number]):
                    if (address, not folded) not in known and self._try(
                        toggle(self.model, self.foldings[number], address)
                    ):
                        waiting.append(len(self.views) - 1)
        return Pictures(tuple(self.views), self.complete)

    def _gather_windows(self) -> None:
        waiting = deque([0])
        while waiting:
            number = waiting.popleft()
            for beside in self._beside(self.foldings[number]):
                boxes = sum(len(view.nodes) for view in self.views)
                if len(self.views) > MOST_WINDOWS or boxes > self.most_boxes:
                    self.complete = False
                    return
                if self._try(beside):
                    waiting.append(len(self.views) - 1)

    def _beside(self, folding: Folding) -> Iterator[Folding]:
        """With other iterations of one unrolled loop in sight, the nearest first."""
        for one in folding.unrolled:
            for first in _firsts(one.first, one.count, self.iterations.get(one.address, 0)):
                others = tuple(
                    replace(each, first=first) if each is one else each for each in folding.unrolled
                )
                yield replace(folding, unrolled=others)

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


def _firsts(shown: int, count: int, total: int) -> list[int]:
    """Where the other windows of ``count`` iterations begin, beside one that begins at ``shown``;
    only so many, the nearest first.

    >>> _firsts(4, 4, 11), _firsts(3, 4, 7), _firsts(0, 4, 2)
    ([7, 0], [0], [])
    """
    middle = shown // count
    windows = range(
        max(0, middle - MOST_WINDOWS), min(-(-total // count), middle + MOST_WINDOWS + 1)
    )
    found = {min(number * count, max(0, total - count)) for number in windows} - {shown}
    return sorted(found, key=lambda first: abs(first - shown))


def _folds(view: GraphView) -> Iterator[_Fold]:
    """What a click folds or opens."""
    yield from ((node.address, True) for node in view.nodes if node.kind == "folded")
    yield from ((cluster.address, False) for cluster in view.clusters if cluster.foldable)


def _named(view: GraphView, ids: dict[object, str]) -> GraphView:
    """The view with an id for each part that is the same wherever the same part is drawn; new
    ones go into ``ids``.
    """
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
    nodes = tuple(
        replace(node, id=name(node, "n"))
        for node in (replace(one, cluster=own[one.cluster]) for one in view.nodes)
    )
    moved = (
        replace(one, source=own[one.source], target=own[one.target], frame=own[one.frame])
        for one in view.edges
    )
    edges = tuple(replace(edge, id=name(edge, "e")) for edge in moved)
    return replace(view, nodes=nodes, clusters=clusters, edges=edges)


def _with_parents(
    clusters: tuple[ViewCluster, ...], own: Mapping[str, str]
) -> Iterator[ViewCluster]:
    """With the new id of the frame around each, which comes before it."""
    for one in clusters:
        yield replace(one, parent=own[one.parent])
