"""The order in which nodes can run, and how far apart the ends of a line are in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from engine.ir.model import Graph, LayerId

Key = TypeVar("Key", bound=Hashable)


def topological(graph: Graph) -> tuple[LayerId, ...]:
    """Node ids, producers before consumers, otherwise in document order; nodes on a cycle come last."""
    arcs = [(source.layer, layer) for layer, sources in graph.sources.items() for source in sources if source is not None]
    return tuple(levels([node.id for node in graph.nodes], arcs))


def levels(keys: Sequence[Key], arcs: Iterable[tuple[Key, Key]]) -> Mapping[Key, int]:
    """For each key the length of the longest path that ends in it, in topological order; what is on a cycle comes last, at level 0."""
    following: dict[Key, list[Key]] = {key: [] for key in keys}
    missing = dict.fromkeys(keys, 0)
    for source, target in arcs:
        if source != target:
            following[source].append(target)
            missing[target] += 1
    level: dict[Key, int] = {}
    depth = dict.fromkeys(keys, 0)
    ready = deque(key for key in keys if not missing[key])
    while ready:
        key = ready.popleft()
        level[key] = depth[key]
        for target in following[key]:
            depth[target] = max(depth[target], depth[key] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    for key in keys:
        level.setdefault(key, 0)
    return level


def on_cycles(keys: Iterable[Key], arcs: Sequence[tuple[Key, Key]]) -> set[Key]:
    """The keys that lie on cycles, or on paths between cycles; arcs from a key to itself do not count."""
    left = set(keys)
    for forwards in (True, False):
        following: dict[Key, list[Key]] = {key: [] for key in left}
        missing = dict.fromkeys(left, 0)
        for arc in arcs:
            source, target = arc if forwards else arc[::-1]
            if source != target and source in left and target in left:
                following[source].append(target)
                missing[target] += 1
        ready = [key for key in left if not missing[key]]
        while ready:
            key = ready.pop()
            left.discard(key)
            for target in following[key]:
                missing[target] -= 1
                if not missing[target]:
                    ready.append(target)
    return left
