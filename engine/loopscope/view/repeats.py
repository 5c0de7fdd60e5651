"""Stretches of a sequence that repeat, one right after the other: the layers of a network whose
file has no names for them.

The sequence is a graph's reading order, each node written as a number for its kind (``kinds``).
Time is linear in its length, but for a few dozen candidates of the distance at which it repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ir.model import LayerId, ModelGraph, Node

_CANDIDATES = 8
_WINDOWS = (1, 4, 16, 64)
"""Lengths of stretches by which the distance at which something repeats is found: few operations
of a layer occur in it only once.
"""
_MOST_REPEATS = 32
_LEAST_NODES = 8
"""What repeats has so many nodes at least, all copies together."""
_NEAR = 0.95
"""Of two distances that explain about as much the shorter one is taken: two layers together
repeat as well as one does.
"""


@dataclass(frozen=True, slots=True)
class Repeat:
    """``count`` copies of ``length`` nodes, from position ``begin`` on."""

    begin: int
    length: int
    count: int

    @property
    def end(self) -> int:
        return self.begin + self.length * self.count


def kinds(graph: ModelGraph, layers: Sequence[LayerId]) -> np.ndarray:
    """A number for each node, equal for nodes that may be the same place of two copies: by type,
    which inputs are constants, number of outputs, and what is inside bodies. Names, shapes and
    attributes do not count: copies may differ in them.
    """
    seen: dict[object, int] = {}
    found = []
    for layer in layers:
        node = graph.by_id[layer]
        fed = tuple(_fed_by(graph, node))
        inside = tuple(_types_inside(node)) if node.bodies else ()
        found.append(seen.setdefault((node.type, fed, len(node.outputs), inside), len(seen)))
    return np.array(found, np.int64)


def _fed_by(graph: ModelGraph, node: Node) -> Iterator[str]:
    for source in graph.sources[node.id]:
        made = None if source is None else graph.by_id[source.layer]
        yield "" if made is None else "constant" if made.constant is not None else "value"


def _types_inside(node: Node) -> Iterator[str]:
    waiting = [body.graph for body in node.bodies]
    while waiting:
        graph = waiting.pop()
        for one in graph.nodes:
            yield one.type
            waiting.extend(body.graph for body in one.bodies)


def repeats(numbers: np.ndarray, last_use: np.ndarray) -> tuple[Repeat, ...]:
    """What repeats, from the beginning on; the largest is found first, then what lies beside it.
    ``last_use``: for each position the last one that takes what is made there, by which copies are
    cut where few values cross.
    """
    found: list[Repeat] = []
    waiting = [(0, len(numbers))]
    least = max(_LEAST_NODES, len(numbers) // 100)
    while waiting and len(found) < _MOST_REPEATS:
        begin, end = waiting.pop(
            max(range(len(waiting)), key=lambda at: waiting[at][1] - waiting[at][0])
        )
        one = _largest(numbers, begin, end) if end - begin >= least else None
        if (
            one is None or one[1] - one[0] < least or one[2] == 1
        ):  # the same operation over and over is no block
            continue
        repeat = _cut(*one, last_use)
        found.append(repeat)
        waiting += [(begin, repeat.begin), (repeat.end, end)]
    return tuple(sorted(found, key=lambda repeat: repeat.begin))


def _largest(numbers: np.ndarray, begin: int, end: int) -> tuple[int, int, int] | None:
    """The longest stretch that equals itself some nodes further on: where it begins, where it
    ends, and that distance.
    """
    part = numbers[begin:end]
    best: tuple[int, int, int] | None = None
    for distance in sorted(_distances(part)):
        first, after = _longest_run(part[distance:] == part[:-distance])
        covered = after - first + distance
        if after - first >= distance and (best is None or covered * _NEAR > best[1] - best[0]):
            best = begin + first, begin + first + covered, distance
    return best


def _distances(part: np.ndarray) -> set[int]:
    """Distances at which many nodes, and many stretches of nodes, find their like, short and
    long ones.
    """
    chosen = {1}
    for length in _WINDOWS:
        if len(part) < 2 * length:
            break
        numbers = part if length == 1 else _numbered(part, length)
        by_kind = np.argsort(numbers, kind="stable")
        again = numbers[by_kind[1:]] == numbers[by_kind[:-1]]
        gaps = (by_kind[1:] - by_kind[:-1])[again]
        votes = np.bincount(gaps[gaps <= len(part) // 2], minlength=2)
        far = votes * np.arange(len(votes))
        chosen.update(
            int(one)
            for count in (votes, far)
            for one in np.argsort(-count, kind="stable")[:_CANDIDATES]
            if count[one]
        )
    return chosen


def _numbered(part: np.ndarray, length: int) -> np.ndarray:
    """For each stretch of so many nodes a number, equal for equal ones: made of the numbers of
    its two halves, again and again.
    """
    numbers, size = part, 1
    while size < length:
        pairs = numbers[:-size] * (int(numbers.max()) + 1) + numbers[size:]
        numbers, size = np.unique(pairs, return_inverse=True)[1].astype(np.int64), 2 * size
    return numbers


def _longest_run(equal: np.ndarray) -> tuple[int, int]:
    """The longest stretch of True: where it begins, and the position after it."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
    if not len(edges):
        return 0, 0
    begins, ends = edges[::2], edges[1::2]
    at = int(np.argmax(ends - begins))
    return int(begins[at]), int(ends[at])


def _cut(begin: int, end: int, length: int, last_use: np.ndarray) -> Repeat:
    """Whole copies, cut where the fewest values cross from one to the next; where several cuts
    are as good, most copies, then the first.
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
    """Before each position of a stretch, how many values cross that are made in it and taken
    within two copies.
    """
    positions = np.arange(begin, end)
    until = last_use[begin:end]
    near = (until > positions) & (until - positions <= 2 * length)
    change = np.zeros(end - begin + 1, np.int64)
    np.add.at(change, positions[near] - begin + 1, 1)
    np.add.at(change, np.minimum(until[near] - begin + 1, end - begin), -1)
    return np.asarray(np.cumsum(change)[: end - begin])
