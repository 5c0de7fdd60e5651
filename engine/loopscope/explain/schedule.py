"""The earliest tick of each operation of a loop, for a number of workers and of iterations under
way at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from loopscope.explain.dependences import CarriedValues, Dependences, Node, OperationExecution
from loopscope.ir.parallel_iterations import ticks_of as ticks_of_node

TicksOf = Callable[[OperationExecution], int]


def operation_ticks(operation: OperationExecution) -> int:
    """Return the ticks that the model gives to an operation, 1 where it does not say it."""
    return ticks_of_node(operation.program.instructions[operation.number].node)


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The tick at which each operation begins, from 0 on."""

    ticks: tuple[int, ...]
    """By node; of a joint the first tick at which what waits for it may run."""
    costs: tuple[int, ...]
    """The number of ticks that each node takes: 0 for a joint."""
    length: int
    """Ticks in all."""

    @property
    def work(self) -> int:
        """The ticks of all operations, one after the other."""
        return sum(self.costs)


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a carried value that the condition is computed from got ahead of one that it is
    not.
    """

    leader: str
    follower: str
    iterations: int
    """0: they go side by side."""
    is_complete: bool = False
    """The leader ended its last iteration before the follower ended its first."""


def schedule(
    found: Dependences, window: int, workers: int | None, ticks_of: TicksOf = operation_ticks
) -> Schedule:
    """Return the earliest ticks, with ``workers`` operations at a time (None: any number).

    An iteration waits until the one ``window`` before it, and all before that, have ended. Of the
    operations that are ready, the one with the most ticks in the chain behind it begins first, of
    equal ones the earlier.
    """
    needs = _with_window(found, window)
    costs = tuple(0 if one is None else max(1, ticks_of(one)) for one in found.operations)
    behind = _chains_behind(costs, needs)
    after: list[list[Node]] = [[] for _ in needs]
    missing = [len(one) for one in needs]
    for node, before in enumerate(needs):
        for one in before:
            after[one].append(node)
    ticks = [0] * len(needs)
    ready: list[tuple[int, Node]] = []
    busy: list[tuple[int, Node]] = []
    free = [node for node, left in enumerate(missing) if not left]
    tick = 0
    while free or ready or busy:
        _release(found, free, after, missing, ticks, tick, behind, ready)
        while ready and (workers is None or len(busy) < workers):
            node = heappop(ready)[1]
            ticks[node] = tick
            heappush(busy, (tick + costs[node], node))
        if busy:
            tick = busy[0][0]
        while busy and busy[0][0] == tick:
            free += _freed(heappop(busy)[1], after, missing)
    return Schedule(tuple(ticks), costs, tick)


def _with_window(found: Dependences, window: int) -> list[Sequence[Node]]:
    needs: list[Sequence[Node]] = list(found.needs)
    for iteration in range(window, len(found.begins)):
        begin = found.begins[iteration]
        needs[begin] = (*needs[begin], found.ends[iteration - window])
    return needs


def _chains_behind(costs: Sequence[int], needs: Sequence[Sequence[Node]]) -> list[int]:
    """The ticks of the longest chain of operations that begins with each node."""
    behind = [0] * len(needs)
    for node in range(len(needs) - 1, -1, -1):
        behind[node] += costs[node]
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
    """For each carried value that something computes, and that the condition does not need: how
    far those that it needs got ahead.
    """
    leaders = [one for one in found.carried if one.decides and _finishes(one, found, made)]
    others = [one for one in found.carried if not one.decides and _finishes(one, found, made)]
    return tuple(_lead(leader, other, found, made) for leader in leaders[:1] for other in others)


def _lead(leader: CarriedValues, other: CarriedValues, found: Dependences, made: Schedule) -> Lead:
    """The largest lead of the leader at the ticks at which the other ends an iteration."""
    ended, following = _finishes(leader, found, made), _finishes(other, found, made)
    most = max(
        0, *(bisect_right(ended, tick) - 1 - number for number, tick in enumerate(following))
    )
    return Lead(leader.name, other.name, most, len(ended) > 1 and ended[-1] < following[0])


def _finishes(one: CarriedValues, found: Dependences, made: Schedule) -> list[int]:
    """The tick after which each iteration's value is there; empty where not every iteration
    computes one.
    """
    nodes = [node for node in one.nodes if node is not None]
    return (
        [made.ticks[node] + made.costs[node] for node in nodes]
        if len(nodes) == len(one.nodes)
        else []
    )
