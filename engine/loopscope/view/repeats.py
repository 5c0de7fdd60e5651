"""Repeated stretches of a sequence, such as the layers of a network without names.

The sequence is a graph's reading order, with a number for the kind of each node (``kinds``). The
time is linear in its length, times a few dozen candidate distances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ir.model import LayerId, ModelGraph, Node

_CANDIDATES = 8
_WINDOWS = (1, 4, 16, 64)
"""Lengths of the stretches that vote for a repeat distance, because single operations often occur
several times in a layer.
"""
_MAX_REPEATS = 32
_MIN_NODES = 8
"""Smallest number of nodes in a repeat, all copies together."""
_PREFER_SHORTER = 0.95
"""Ratio of covered lengths from which the shorter distance is preferred: two layers together repeat
as well as one.
"""


@dataclass(frozen=True, slots=True)
class Repeat:
    """``count`` copies of ``length`` nodes from position ``begin`` on."""

    begin: int
    length: int
    count: int

    @property
    def end(self) -> int:
        return self.begin + self.length * self.count


def kinds(graph: ModelGraph, layers: Sequence[LayerId]) -> np.ndarray:
    """Return a number for each node, equal for nodes that may correspond in two copies.

    It depends on type, constant inputs, number of outputs, and the types inside bodies. Names,
    shapes and attributes are ignored, because copies may differ in them.
    """
    seen: dict[object, int] = {}
    numbers = []
    for layer in layers:
        node = graph.by_id[layer]
        input_kinds = tuple(_input_kinds(graph, node))
        inside = tuple(_types_inside(node)) if node.bodies else ()
        numbers.append(
            seen.setdefault((node.type, input_kinds, len(node.outputs), inside), len(seen))
        )
    return np.array(numbers, np.int64)


def _input_kinds(graph: ModelGraph, node: Node) -> Iterator[str]:
    for source in graph.sources[node.id]:
        source_node = None if source is None else graph.by_id[source.layer]
        yield (
            ""
            if source_node is None
            else "constant"
            if source_node.constant is not None
            else "value"
        )


def _types_inside(node: Node) -> Iterator[str]:
    waiting = [body.graph for body in node.bodies]
    while waiting:
        graph = waiting.pop()
        for node_inside in graph.nodes:
            yield node_inside.type
            waiting.extend(body.graph for body in node_inside.bodies)


def repeats(numbers: np.ndarray, last_use: np.ndarray) -> tuple[Repeat, ...]:
    """Return the repeats in a sequence in order. The largest is found first, then those beside it.

    ``last_use`` is the last consumer of each position; copies are cut where few values cross.
    """
    result: list[Repeat] = []
    waiting = [(0, len(numbers))]
    min_nodes = max(_MIN_NODES, len(numbers) // 100)
    while waiting and len(result) < _MAX_REPEATS:
        begin, end = waiting.pop(
            max(range(len(waiting)), key=lambda index: waiting[index][1] - waiting[index][0])
        )
        candidate = _largest(numbers, begin, end) if end - begin >= min_nodes else None
        # A repeat of distance 1 is one operation several times, which is not a block.
        if candidate is None or candidate[1] - candidate[0] < min_nodes or candidate[2] == 1:
            continue
        repeat = _cut(*candidate, last_use)
        result.append(repeat)
        waiting += [(begin, repeat.begin), (repeat.end, end)]
    return tuple(sorted(result, key=lambda repeat: repeat.begin))


def _largest(numbers: np.ndarray, begin: int, end: int) -> tuple[int, int, int] | None:
    """Return begin, end and distance of the longest stretch that equals itself at that distance."""
    part = numbers[begin:end]
    best: tuple[int, int, int] | None = None
    for distance in sorted(_distances(part)):
        first, after = _longest_run(part[distance:] == part[:-distance])
        covered = after - first + distance
        if after - first >= distance and (
            best is None or covered * _PREFER_SHORTER > best[1] - best[0]
        ):
            best = begin + first, begin + first + covered, distance
    return best


def _distances(part: np.ndarray) -> set[int]:
    """Return candidate distances at which many nodes and stretches have an equal one."""
    chosen = {1}
    for length in _WINDOWS:
        if len(part) < 2 * length:
            break
        numbers = part if length == 1 else _stretch_numbers(part, length)
        by_kind = np.argsort(numbers, kind="stable")
        is_equal = numbers[by_kind[1:]] == numbers[by_kind[:-1]]
        gaps = (by_kind[1:] - by_kind[:-1])[is_equal]
        votes = np.bincount(gaps[gaps <= len(part) // 2], minlength=2)
        weighted_votes = votes * np.arange(len(votes))
        chosen.update(
            int(distance)
            for count in (votes, weighted_votes)
            for distance in np.argsort(-count, kind="stable")[:_CANDIDATES]
            if count[distance]
        )
    return chosen


def _stretch_numbers(part: np.ndarray, length: int) -> np.ndarray:
    """Number all stretches of this length, equal numbers for equal stretches.

    The numbers of each length are built from the numbers of the two halves.
    """
    numbers, size = part, 1
    while size < length:
        pairs = numbers[:-size] * (int(numbers.max()) + 1) + numbers[size:]
        numbers, size = np.unique(pairs, return_inverse=True)[1].astype(np.int64), 2 * size
    return numbers


def _longest_run(equal: np.ndarray) -> tuple[int, int]:
    """Return begin and end of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
    if not len(edges):
        return 0, 0
    begins, ends = edges[::2], edges[1::2]
    index = int(np.argmax(ends - begins))
    return int(begins[index]), int(ends[index])


def _cut(begin: int, end: int, length: int, last_use: np.ndarray) -> Repeat:
    """Cut a repeat into whole copies where the fewest values cross; ties prefer more copies, then
    the first.
    """
    crossing = _crossing(begin, end, length, last_use)
    best: tuple[float, int, int] | None = None
    for shift in range(min(length, end - begin - 2 * length + 1)):
        count = (end - begin - shift) // length
        width = float(crossing[shift : shift + count * length : length].mean())
        if best is None or (width, -count) < (best[0], -best[1]):
            best = width, count, shift
    assert best is not None, "a stretch that repeats holds two copies"
    return Repeat(begin + best[2], length, best[1])


def _crossing(begin: int, end: int, length: int, last_use: np.ndarray) -> np.ndarray:
    """Return for each position the number of values that cross it and are used within two
    copies.
    """
    positions = np.arange(begin, end)
    until = last_use[begin:end]
    near = (until > positions) & (until - positions <= 2 * length)
    change = np.zeros(end - begin + 1, np.int64)
    np.add.at(change, positions[near] - begin + 1, 1)
    np.add.at(change, np.minimum(until[near] - begin + 1, end - begin), -1)
    return np.asarray(np.cumsum(change)[: end - begin])
