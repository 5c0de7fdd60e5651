"""The pictures of a page: one for each folding of the graph.

A part has the same id in all pictures that show it, so that each moment of a run is stored once for
all pictures.
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
"""Largest number of boxes, frames and lines of all pictures."""
MOST_WINDOWS = MOST_PICTURES // 2
"""Largest number of pictures with other iterations of unrolled loops."""
MOST_TOLD = 200_000
"""Largest number of boxes of copies over all moments. Describing that many takes some seconds."""
MOST_TRIES = 160
"""Largest number of pictures that are tried."""
_TABLES = ("nodes", "clusters", "edges")
_Fold = tuple[str, bool]
"""An address, and whether it is drawn as one box."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """Views of one graph; the page opens with the first."""

    views: tuple[GraphView, ...]
    complete: bool
    """True if every click on a fold and every iteration of an unrolled loop has its picture."""

    @property
    def together(self) -> GraphView:
        """Return a view of all parts, for an overlay of all pictures at once. The view cannot be
        drawn.
        """
        nodes = {part.id: part for view in self.views for part in view.nodes}
        clusters = {part.id: part for view in self.views for part in view.clusters}
        edges = {part.id: part for view in self.views for part in view.edges}
        return replace(
            self.views[0],
            nodes=tuple(nodes.values()),
            clusters=tuple(clusters.values()),
            edges=tuple(edges.values()),
        )

    def first(self, count: int) -> Pictures:
        """Return the first ``count`` pictures."""
        return Pictures(self.views[:count], self.complete and count >= len(self.views))

    def as_data(self) -> dict[str, object]:
        """Return the pictures for the page's script: ``parts`` by id, and structures that name
        them.
        """
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
    """The pictures so far, and the foldings that they show."""

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
        """Add other iterations, then each fold by itself, then all foldings that one click makes of
        another.
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
        """Yield foldings with other iterations of one unrolled loop in view, the nearest first."""
        for unrolled in folding.unrolled:
            for first in _firsts(
                unrolled.first, unrolled.count, self.iterations.get(unrolled.address, 0)
            ):
                others = tuple(
                    replace(each, first=first) if each is unrolled else each
                    for each in folding.unrolled
                )
                yield replace(folding, unrolled=others)

    def _try(self, folding: Folding) -> bool:
        """Add the picture of a folding; return True if it is a new one."""
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
    """Return the first iterations of other windows of ``count`` iterations, the nearest to
    ``shown`` first.

    >>> _firsts(4, 4, 11), _firsts(3, 4, 7), _firsts(0, 4, 2)
    ([7, 0], [0], [])
    """
    middle = shown // count
    windows = range(
        max(0, middle - MOST_WINDOWS), min(-(-total // count), middle + MOST_WINDOWS + 1)
    )
    firsts = {min(number * count, max(0, total - count)) for number in windows} - {shown}
    return sorted(firsts, key=lambda first: abs(first - shown))


def _folds(view: GraphView) -> Iterator[_Fold]:
    """Yield what a click folds or opens."""
    yield from ((node.address, True) for node in view.nodes if node.kind == "folded")
    yield from ((cluster.address, False) for cluster in view.clusters if cluster.foldable)


def _named(view: GraphView, ids: dict[object, str]) -> GraphView:
    """Return the view with ids that are the same wherever the same part is drawn. New ids are added
    to ``ids``.
    """
    own: dict[str, str] = {"": ""}
    used: set[str] = set()

    def name(part: ViewNode | ViewCluster | ViewEdge, letter: str) -> str:
        bare, copy = replace(part, id=""), 0
        while (part_id := ids.setdefault((bare, copy), f"{letter}{len(ids)}")) in used:
            copy += 1
        used.add(part_id)
        own[part.id] = part_id
        return part_id

    clusters = tuple(
        replace(item, id=name(item, "c")) for item in _with_parents(view.clusters, own)
    )
    nodes = tuple(
        replace(node, id=name(node, "n"))
        for node in (replace(item, cluster=own[item.cluster]) for item in view.nodes)
    )
    moved = (
        replace(item, source=own[item.source], target=own[item.target], frame=own[item.frame])
        for item in view.edges
    )
    edges = tuple(replace(edge, id=name(edge, "e")) for edge in moved)
    return replace(view, nodes=nodes, clusters=clusters, edges=edges)


def _with_parents(
    clusters: tuple[ViewCluster, ...], own: Mapping[str, str]
) -> Iterator[ViewCluster]:
    """Yield the clusters with the new ids of their parents, which come first."""
    for cluster in clusters:
        yield replace(cluster, parent=own[cluster.parent])
