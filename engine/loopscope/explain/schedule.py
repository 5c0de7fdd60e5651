"""Earliest tick of each operation of a loop, for a number of workers and of parallel iterations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from loopscope.explain.dependences import CarriedValues, Dependences, Node, OperationExecution
from loopscope.ir.rt_info import ticks_of as ticks_of_node

TicksOf = Callable[[OperationExecution], int]


def operation_ticks(operation: OperationExecution) -> int:
    """Return the ticks that the model declares for an operation, 1 by default."""
    return ticks_of_node(operation.program.instructions[operation.number].node)


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Ticks (from 0) at which the operations begin."""

    ticks: tuple[int, ...]
    """Start tick of each node; for a joint, the first tick at which the nodes that wait for it may
    run.
    """
    costs: tuple[int, ...]
    """Number of ticks of each node, 0 for a joint."""
    length: int
    """Total number of ticks."""

    @property
    def work(self) -> int:
        """Sum of the ticks of all operations."""
        return sum(self.costs)


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead of a carried value that the condition needs over one that it does not need."""

    leader: str
    follower: str
    iterations: int
    """Lead in iterations; 0 if both advance together."""
    is_complete: bool = False
    """True if the leader finished its last iteration before the follower finished its first."""


def schedule(
    dependences: Dependences, window: int, workers: int | None, ticks_of: TicksOf = operation_ticks
) -> Schedule:
    """Return the earliest ticks, with at most ``workers`` operations at a time (None: unlimited).

    An iteration waits until the iteration ``window`` before it, and all earlier ones, have ended.
    Among the ready operations, the one with the longest chain of dependent ticks begins first; ties
    go to the earlier operation.
    """
    needs = _with_window(dependences, window)
    costs = tuple(0 if each is None else max(1, ticks_of(each)) for each in dependences.operations)
    chain_ticks = _chain_ticks(costs, needs)
    dependents: list[list[Node]] = [[] for _ in needs]
    missing = [len(nodes) for nodes in needs]
    for node, before in enumerate(needs):
        for needed in before:
            dependents[needed].append(node)
    ticks = [0] * len(needs)
    ready: list[tuple[int, Node]] = []
    busy: list[tuple[int, Node]] = []
    released = [node for node, count in enumerate(missing) if not count]
    tick = 0
    while released or ready or busy:
        _release(dependences, released, dependents, missing, ticks, tick, chain_ticks, ready)
        while ready and (workers is None or len(busy) < workers):
            node = heappop(ready)[1]
            ticks[node] = tick
            heappush(busy, (tick + costs[node], node))
        if busy:
            tick = busy[0][0]
        while busy and busy[0][0] == tick:
            released += _release_dependents(heappop(busy)[1], dependents, missing)
    return Schedule(tuple(ticks), costs, tick)


def _with_window(dependences: Dependences, window: int) -> list[Sequence[Node]]:
    needs: list[Sequence[Node]] = list(dependences.needs)
    for iteration in range(window, len(dependences.begins)):
        begin = dependences.begins[iteration]
        needs[begin] = (*needs[begin], dependences.ends[iteration - window])
    return needs


def _chain_ticks(costs: Sequence[int], needs: Sequence[Sequence[Node]]) -> list[int]:
    """Return for each node the ticks of the longest chain of dependent operations that begins with
    it.
    """
    chain_ticks = [0] * len(needs)
    for node in range(len(needs) - 1, -1, -1):
        chain_ticks[node] += costs[node]
        for needed in needs[node]:
            chain_ticks[needed] = max(chain_ticks[needed], chain_ticks[node])
    return chain_ticks


def _release(
    dependences: Dependences,
    released: list[Node],
    dependents: Sequence[Sequence[Node]],
    missing: list[int],
    ticks: list[int],
    tick: int,
    chain_ticks: Sequence[int],
    ready: list[tuple[int, Node]],
) -> None:
    """Mark released nodes: joints pass at once, operations become ready."""
    while released:
        node = released.pop()
        if dependences.operations[node] is None:
            ticks[node] = tick
            released += _release_dependents(node, dependents, missing)
        else:
            heappush(ready, (-chain_ticks[node], node))


def _release_dependents(
    node: Node, dependents: Sequence[Sequence[Node]], missing: list[int]
) -> list[Node]:
    """Return the nodes whose last missing dependence was ``node``."""
    released = []
    for dependent in dependents[node]:
        missing[dependent] -= 1
        if not missing[dependent]:
            released.append(dependent)
    return released


def leads(dependences: Dependences, result: Schedule) -> tuple[Lead, ...]:
    """Return the lead of a carried value that the condition needs over each one that it does not
    need.

    Only carried values that are computed in every iteration count.
    """
    leaders = [
        value
        for value in dependences.carried
        if value.decides and _finish_ticks(value, dependences, result)
    ]
    others = [
        value
        for value in dependences.carried
        if not value.decides and _finish_ticks(value, dependences, result)
    ]
    return tuple(
        _lead(leader, other, dependences, result) for leader in leaders[:1] for other in others
    )


def _lead(
    leader: CarriedValues, other: CarriedValues, dependences: Dependences, result: Schedule
) -> Lead:
    """Return the largest lead of ``leader``, in iterations, over all ticks at which ``other``
    finishes one.
    """
    leader_ticks = _finish_ticks(leader, dependences, result)
    other_ticks = _finish_ticks(other, dependences, result)
    largest = max(
        0,
        *(bisect_right(leader_ticks, tick) - 1 - number for number, tick in enumerate(other_ticks)),
    )
    return Lead(
        leader.name,
        other.name,
        largest,
        len(leader_ticks) > 1 and leader_ticks[-1] < other_ticks[0],
    )


def _finish_ticks(value: CarriedValues, dependences: Dependences, result: Schedule) -> list[int]:
    """Return the tick at which each iteration's value is available; empty if an iteration does not
    compute one.
    """
    nodes = [node for node in value.nodes if node is not None]
    return (
        [result.ticks[node] + result.costs[node] for node in nodes]
        if len(nodes) == len(value.nodes)
        else []
    )
