"""When each operation of a loop could have run: its earliest tick with so many workers and iterations under way at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from engine.explain.dependences import CarriedValues, Dependences, Node


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Each operation at a tick of its own, from 0 on."""

    ticks: tuple[int, ...]
    """By node; of a joint the first tick at which what waits for it may run."""
    length: int
    """Ticks in all."""


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a carried value that the condition is computed from got ahead of one that it is not."""

    leader: str
    follower: str
    iterations: int
    """0: they go side by side."""


def schedule(found: Dependences, window: int, workers: int | None) -> Schedule:
    """The earliest ticks when every operation takes one, ``workers`` run one each (None: any number), and an iteration waits until
    the one ``window`` before it, and all before that, are done.

    Of the operations that are ready those run first that the longest chain of others waits behind; of equal ones the earlier.
    """
    needs = _with_window(found, window)
    behind = _chains_behind(found, needs)
    after: list[list[Node]] = [[] for _ in needs]
    missing = [len(one) for one in needs]
    for node, before in enumerate(needs):
        for one in before:
            after[one].append(node)
    ticks = [0] * len(needs)
    ready: list[tuple[int, Node]] = []
    free = [node for node, left in enumerate(missing) if not left]
    tick = 0
    while free or ready:
        _release(found, free, after, missing, ticks, tick, behind, ready)
        running = [heappop(ready)[1] for _ in range(len(ready) if workers is None else min(workers, len(ready)))]
        for node in running:
            ticks[node] = tick
            free += _freed(node, after, missing)
        tick += bool(running)
    return Schedule(tuple(ticks), tick)


def _with_window(found: Dependences, window: int) -> list[Sequence[Node]]:
    needs: list[Sequence[Node]] = list(found.needs)
    for iteration in range(window, len(found.begins)):
        begin = found.begins[iteration]
        needs[begin] = (*needs[begin], found.ends[iteration - window])
    return needs


def _chains_behind(found: Dependences, needs: Sequence[Sequence[Node]]) -> list[int]:
    """The length of the longest chain of operations that begins with each node."""
    behind = [0] * len(needs)
    for node in range(len(needs) - 1, -1, -1):
        behind[node] += found.operations[node] is not None
        for one in needs[node]:
            behind[one] = max(behind[one], behind[node])
    return behind


def _release(
    found: Dependences,
    free: list[Node],
    after: Sequence[Sequence[Node]],
    missing: list[int],
    ticks: list[int],
    tick: int,
    behind: Sequence[int],
    ready: list[tuple[int, Node]],
) -> None:
    """What waits for nothing any more: joints are passed at once, operations become ready."""
    while free:
        node = free.pop()
        if found.operations[node] is None:
            ticks[node] = tick
            free += _freed(node, after, missing)
        else:
            heappush(ready, (-behind[node], node))


def _freed(node: Node, after: Sequence[Sequence[Node]], missing: list[int]) -> list[Node]:
    """Those that have waited for nothing but a node."""
    found = []
    for one in after[node]:
        missing[one] -= 1
        if not missing[one]:
            found.append(one)
    return found


def leads(found: Dependences, made: Schedule) -> tuple[Lead, ...]:
    """For each carried value that something computes, and that the condition does not need: how far those that it needs got ahead."""
    leaders = [one for one in found.carried if one.decides and _finishes(one, found, made)]
    others = [one for one in found.carried if not one.decides and _finishes(one, found, made)]
    return tuple(Lead(leader.name, other.name, _ahead(leader, other, found, made)) for leader in leaders[:1] for other in others)


def _ahead(leader: CarriedValues, other: CarriedValues, found: Dependences, made: Schedule) -> int:
    """Whenever the other ends an iteration: by how many the last one that the leader has ended is later, at most."""
    ended = _finishes(leader, found, made)
    return max(0, *(bisect_right(ended, tick) - 1 - number for number, tick in enumerate(_finishes(other, found, made))))


def _finishes(one: CarriedValues, found: Dependences, made: Schedule) -> list[int]:
    """The tick after which each iteration's value is there; empty where not every iteration computes one."""
    nodes = [node for node in one.nodes if node is not None]
    return [made.ticks[node] + (found.operations[node] is not None) for node in nodes] if len(nodes) == len(one.nodes) else []
