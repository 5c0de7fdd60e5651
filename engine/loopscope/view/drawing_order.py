"""The order in which nodes can run, and how far apart the ends of a line are in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from loopscope.ir.model import LayerId, ModelGraph

Key = TypeVar("Key", bound=Hashable)


def topological(graph: ModelGraph) -> tuple[LayerId, ...]:
    """Node ids, producers before consumers; each constant right before the first node that takes
    it.
    """
    arcs = [
        (source.layer, layer)
        for layer, sources in graph.sources.items()
        for source in sources
        if source is not None
    ]
    order = tuple(levels([node.id for node in graph.nodes], arcs))
    constants = {node.id for node in graph.nodes if node.constant is not None}
    placed: dict[LayerId, None] = {}
    for layer in order:
        if layer not in constants:
            placed.update(
                dict.fromkeys(
                    one.layer
                    for one in graph.sources[layer]
                    if one is not None and one.layer in constants
                )
            )
            placed[layer] = None
    return tuple(placed | dict.fromkeys(order))


def turned(keys: Sequence[Key], arcs: Sequence[tuple[Key, Key]]) -> set[tuple[Key, Key]]:
    """The arcs to remove so that no cycle is left: those on a cycle that lead back to an earlier
    key.
    """
    cyclic = on_cycles(keys, arcs)
    position = {key: number for number, key in enumerate(keys)} if cyclic else {}
    return {
        (source, target)
        for source, target in arcs
        if source in cyclic and target in cyclic and position[source] > position[target]
    }


def levels(keys: Sequence[Key], arcs: Sequence[tuple[Key, Key]]) -> Mapping[Key, int]:
    """For each key the length of the longest path that ends in it, in topological order; arcs
    that close cycles do not count.
    """
    following: dict[Key, list[Key]] = {key: [] for key in keys}
    missing = dict.fromkeys(keys, 0)
    closing = turned(keys, arcs)
    for source, target in arcs:
        if source != target and (source, target) not in closing:
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
    return level


def on_cycles(keys: Collection[Key], arcs: Sequence[tuple[Key, Key]]) -> set[Key]:
    """The keys that lie on cycles, or on paths between cycles; arcs from a key to itself do not
    count.
    """
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
