"""Topological order of nodes, and their levels in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from loopscope.ir.model import LayerId, ModelGraph

Key = TypeVar("Key", bound=Hashable)


def topological(graph: ModelGraph) -> tuple[LayerId, ...]:
    """Return node ids with producers before consumers; each constant directly before its first
    consumer.
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
                    source.layer
                    for source in graph.sources[layer]
                    if source is not None and source.layer in constants
                )
            )
            placed[layer] = None
    return tuple(placed | dict.fromkeys(order))


def cycle_closing_arcs(
    keys: Sequence[Key], arcs: Sequence[tuple[Key, Key]]
) -> set[tuple[Key, Key]]:
    """Return the arcs whose removal breaks all cycles: those that lead back to an earlier key."""
    cyclic = on_cycles(keys, arcs)
    position = {key: number for number, key in enumerate(keys)} if cyclic else {}
    return {
        (source, target)
        for source, target in arcs
        if source in cyclic and target in cyclic and position[source] > position[target]
    }


def levels(keys: Sequence[Key], arcs: Sequence[tuple[Key, Key]]) -> Mapping[Key, int]:
    """Return for each key the length of the longest path to it, in topological order.

    Arcs that close cycles are ignored.
    """
    successors: dict[Key, list[Key]] = {key: [] for key in keys}
    open_inputs = dict.fromkeys(keys, 0)
    closing = cycle_closing_arcs(keys, arcs)
    for source, target in arcs:
        if source != target and (source, target) not in closing:
            successors[source].append(target)
            open_inputs[target] += 1
    level: dict[Key, int] = {}
    depth = dict.fromkeys(keys, 0)
    ready = deque(key for key in keys if not open_inputs[key])
    while ready:
        key = ready.popleft()
        level[key] = depth[key]
        for target in successors[key]:
            depth[target] = max(depth[target], depth[key] + 1)
            open_inputs[target] -= 1
            if not open_inputs[target]:
                ready.append(target)
    return level


def on_cycles(keys: Collection[Key], arcs: Sequence[tuple[Key, Key]]) -> set[Key]:
    """Return the keys on cycles or on paths between cycles; arcs from a key to itself are
    ignored.
    """
    remaining = set(keys)
    for forwards in (True, False):
        successors: dict[Key, list[Key]] = {key: [] for key in remaining}
        open_inputs = dict.fromkeys(remaining, 0)
        for arc in arcs:
            source, target = arc if forwards else arc[::-1]
            if source != target and source in remaining and target in remaining:
                successors[source].append(target)
                open_inputs[target] += 1
        ready = [key for key in remaining if not open_inputs[key]]
        while ready:
            key = ready.pop()
            remaining.discard(key)
            for target in successors[key]:
                open_inputs[target] -= 1
                if not open_inputs[target]:
                    ready.append(target)
    return remaining
