"""Earliest ticks under dependences, a window and workers: held against a simulation tick by
tick, and against known loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import AddressError, ValueUnavailable
from loopscope.executor.plan.plan import Program
from loopscope.executor.plan.slots import ProgramIndex
from loopscope.explain.dependences import Dependences, OperationExecution, dependences
from loopscope.explain.provenance import ProvenanceWalk, SlotPart
from loopscope.explain.schedule import Lead, Schedule, leads, schedule
from loopscope.ir.model import LayerId, Node
from loopscope.ir.rt_info import USUAL_WINDOW, window_of
from tests.engine.drafts import BOOL, F32, I64, Draft, loop
from tests.engine.explain.runs import begun, finished

WINDOWS, WORKERS = (1, 2, 3, 10), (1, 2, 3, None)


# -- any graph of dependences: against a simulation
# ---------------------------------------------------------------------


@some.composite
def drawn(draw: Any) -> Dependences:
    """Iterations of a few operations each, which wait for any nodes before them."""
    program = Program("main", ProgramIndex(0), None)
    operations: list[OperationExecution | None] = [None]
    needs: list[tuple[int, ...]] = [()]
    begins, ends = [0], list[int]()
    for iteration in range(draw(some.integers(1, 6))):
        if iteration:
            begins.append(len(operations))
            operations.append(None)
            needs.append((begins[-2], *draw(_some_of(range(begins[-2] + 1, len(operations) - 1)))))
        for number in range(draw(some.integers(0, 5))):
            needs.append((begins[-1], *draw(_some_of(range(len(operations))))))
            operations.append(
                None
                if draw(some.integers(0, 4)) == 0
                else OperationExecution(program, iteration, number, iteration)
            )
        needs.append((*range(begins[-1], len(operations)), *ends[-1:]))
        ends.append(len(operations))
        operations.append(None)
    return Dependences(
        operations=tuple(operations),
        needs=tuple(needs),
        begins=tuple(begins),
        ends=tuple(ends),
        carried=(),
        iterations=len(begins),
        is_cut=False,
        window=USUAL_WINDOW,
    )


def _some_of(nodes: range) -> some.SearchStrategy[list[int]]:
    return some.lists(some.sampled_from(nodes), max_size=3) if nodes else some.just([])


def cost(operation: OperationExecution) -> int:
    """Drawn operations take one to three ticks."""
    return 1 + operation.number % 3


def simulated(found: Dependences, window: int, workers: int | None) -> dict[int, int]:
    """The tick of each operation, by looking at every operation anew at every tick."""
    needs = {node: set(before) for node, before in enumerate(found.needs)}
    costs = [0 if one is None else cost(one) for one in found.operations]
    for iteration, begin in enumerate(found.begins):
        needs[begin] |= {found.ends[iteration - window]} if iteration >= window else set()

    @cache
    def chain(node: int) -> int:
        return costs[node] + max((chain(one) for one in needs if node in needs[one]), default=0)

    chains = {node: chain(node) for node in needs}
    ticks: dict[int, int] = {}
    done: set[int] = set()
    tick = 0
    while len(done) < len(needs):
        done |= {node for node, begun in ticks.items() if begun + costs[node] <= tick}
        while joints := {
            node
            for node in needs.keys() - done
            if found.operations[node] is None and needs[node] <= done
        }:
            done |= joints
        waiting = needs.keys() - done - ticks.keys()
        ready = sorted(
            (node for node in waiting if needs[node] <= done),
            key=lambda node: (-chains[node], node),
        )
        busy = len(ticks.keys() - done)
        ticks.update(dict.fromkeys(ready if workers is None else ready[: workers - busy], tick))
        tick += 1
    return ticks


@given(drawn(), some.sampled_from(WINDOWS), some.sampled_from(WORKERS))
def test_ticks_are_those_of_a_simulation(
    found: Dependences, window: int, workers: int | None
) -> None:
    made = schedule(found, window, workers, cost)
    ticks = operations_of(found, made)
    assert ticks == simulated(found, window, workers)
    assert made.length == max((tick + made.costs[node] for node, tick in ticks.items()), default=0)


@given(drawn(), some.sampled_from(WINDOWS))
def test_with_any_number_of_workers_a_wider_window_and_more_workers_never_cost_a_tick(
    found: Dependences, window: int
) -> None:
    free = schedule(found, window, None, cost)
    assert schedule(found, window + 1, None, cost).length <= free.length
    assert all(
        free.length <= schedule(found, window, workers, cost).length for workers in (1, 2, 3)
    )
    assert schedule(found, window, 1, cost).length == free.work


def operations_of(found: Dependences, made: Schedule) -> dict[int, int]:
    return {node: made.ticks[node] for node, one in enumerate(found.operations) if one is not None}


# -- known loops
# ----------------------------------------------------------------------------------------------------------


def run(model: loopscope.Model, *inputs: Any) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, inputs)
    debugger.run()
    return debugger


def example_4(n: int, **arguments: Any) -> Dependences:
    """Of the page tf.while_loop: a counter, and a vector that needs it only for the condition."""
    graph = builder.Graph("example 4")

    def body(i: Any, x: Any) -> Any:
        return builder.Print(i + 1, [i]), builder.Print(x + 1, [i], "x:")

    i, out = builder.while_loop(
        lambda i, x: i < n, body, (0, graph.constant(np.arange(n))), **arguments
    )
    return dependences(run(graph.model([i, out])), "main/while")


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("workers", WORKERS)
def test_the_counter_may_run_ahead_of_x_but_never_behind(window: int, workers: int | None) -> None:
    """The page: "The counter thread may get ahead of the other thread, but not the other way
    around".
    """
    found = example_4(30)
    made = schedule(found, window, workers)
    counter, x = (one.nodes for one in found.carried)
    for before, after in zip(counter, x[1:], strict=False):
        assert before is not None
        assert after is not None
        assert made.ticks[after] > made.ticks[before]
    (lead,) = leads(found, made)
    assert (lead.leader, lead.follower) == ("i", "x")
    assert 0 <= lead.iterations < window


def test_one_worker_lets_the_counter_run_as_far_ahead_as_the_window_allows() -> None:
    """The page's own lines are 9 iterations apart: "[9996] x:[9987]"."""
    found = example_4(30)
    assert found.window == 10
    assert leads(found, schedule(found, 10, 1)) == (Lead("i", "x", 9),)
    assert schedule(found, 10, 1).length == 150
    assert [schedule(found, 10, workers).length for workers in (2, 3, None)] == [90, 90, 90]


def squares(count: int, **arguments: Any) -> loopscope.Model:
    """A chain of three operations for each number, which nothing carries on."""
    graph = builder.Graph("squares")
    kept = builder.Collected("kept")

    def body(i: Any) -> Any:
        kept.extend(ops.unsqueeze(ops.sqrt(ops.convert(i, destination_type="f32") * 2.0), [0]))
        return i + 1

    builder.while_loop(lambda i: i < count, body, [0], **arguments)
    return graph.model(kept.tensor)


def test_independent_work_of_iterations_overlaps() -> None:
    """Convert, Multiply, Sqrt, Unsqueeze after one another; Add and Less are the chain from
    iteration to iteration.
    """
    found = dependences(run(squares(6)), "main/while")
    lengths = {window: schedule(found, window, None).length for window in (1, 2, 3, 6)}
    assert lengths == {1: 24, 2: 14, 3: 14, 6: 14}
    assert schedule(found, 6, 1).length == 36


def test_the_window_is_what_the_loop_says() -> None:
    assert dependences(run(squares(3, parallel_iterations=4)), "main/while").window == 4
    assert dependences(finished("for_loop"), "main/for_each_year").window == USUAL_WINDOW


@pytest.mark.parametrize(
    ("said", "window"),
    [
        ({"value": "3"}, 3),
        ("3", 3),
        ({"value": "0"}, 1),
        ({"value": "9" * 40}, 10),
        ({"value": "-1"}, 10),
        ({"value": {"a": "b"}}, 10),
        (None, 10),
    ],
)
def test_a_window_that_a_file_says_is_not_trusted(said: object, window: int) -> None:
    assert (
        window_of(Node(LayerId(0), "l", "Loop", "opset5", rt_info={"parallel_iterations": said}))
        == window
    )


def counted(trips: int) -> loopscope.Model:
    """A Loop that nothing but its trip count ends: its iterations know from the start that they
    run.
    """
    body = Draft()
    part = body.parameter("part", F32, (1,))
    again, kept = (
        body.result(body.const(True, BOOL)),
        body.result(body.op("Sqrt", body.op("Exp", part))),
    )
    main = Draft()
    x = main.parameter("x", F32, (1,))
    made = loop(
        main,
        body,
        main.const(trips, I64),
        main.const(True, BOOL),
        again=again,
        invariants=[(x, part)],
        last=[kept],
        name="l",
    )
    main.result(made)
    return main.model()


def test_iterations_that_need_nothing_of_each_other_run_at_once() -> None:
    found = dependences(run(counted(7), np.zeros(1, np.float32)), "main/l")
    assert [schedule(found, window, None).length for window in (1, 3, 7)] == [14, 6, 2]
    assert schedule(found, 7, 2).length == 7


def test_draws_of_one_generator_keep_their_order() -> None:
    graph = builder.Graph("random")
    kept = builder.Collected("kept")

    def body(i: Any, v: Any) -> Any:
        kept.extend(ops.random_uniform([1], 0.0, 1.0, output_type="f32", op_seed=3))
        return v

    builder.for_loop(5, body, [graph.constant(0)])
    found = dependences(run(graph.model(kept.tensor)), "main/for")
    assert schedule(found, 5, None).length == 5


# -- loops of the samples: what a value was made from came before it
# --------------------------------------------------------


SAMPLES = (
    "beam_search",
    "collatz",
    "count_primes",
    "decoder",
    "growing_sequence",
    "keras_gru",
    "map_with_cond",
    "records_scan",
)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_a_value_was_made_from_has_an_earlier_tick(name: str) -> None:
    debugger = finished(name)
    address = next(
        one.address for one in debugger.control_flow if one.kind not in ("If", "Function")
    )
    found = dependences(debugger, address)
    made = schedule(found, 10, None)
    ticks = {
        (one.program.index, one.row, one.number): made.ticks[node]
        for node, one in enumerate(found.operations)
        if one is not None
    }
    walk = ProvenanceWalk(debugger)
    checked = 0
    for node, one in enumerate(found.operations):
        for slot in one.program.instructions[one.number].outputs if one is not None else ():
            assert one is not None
            for before in _operations_behind(walk, SlotPart(one.program, one.row, slot)):
                if before in ticks:
                    checked += 1
                    assert ticks[before] < made.ticks[node]
    assert checked


def _operations_behind(walk: ProvenanceWalk, place: SlotPart) -> Iterator[tuple[int, int, int]]:
    """The operations that computed what a value was made from, through Parameters, branches and
    loops.
    """
    waiting, seen = [one for one, _ in walk.links(place)], set[SlotPart]()
    while waiting:
        one = waiting.pop()
        number = one.program.producer.get(one.slot)
        if one in seen:
            continue
        seen.add(one)
        if number is not None and one.program.instructions[number].region is None:
            yield one.program.index, one.row, number
        else:
            waiting += [inner for inner, _ in walk.links(one)]


@pytest.mark.parametrize("name", [*SAMPLES, "swap"])
def test_every_operation_of_the_loop_is_there_once(name: str) -> None:
    debugger = finished(name)
    address = next(
        one.address for one in debugger.control_flow if one.kind not in ("If", "Function")
    )
    found = dependences(debugger, address)
    there = [
        (one.program.address, one.row, one.number) for one in found.operations if one is not None
    ]
    expected = [
        (program.address, row, number)
        for program in debugger.plan.programs
        if program.address.startswith(f"{address}/")
        for row in range(debugger.timeline.executions.rows[program.index])
        for number, instruction in enumerate(program.instructions)
        if instruction.region is None
    ]
    assert sorted(there) == sorted(expected)


# -- bounds
# -----------------------------------------------------------------------------------------------------------------


def test_of_a_long_loop_there_are_the_first_iterations() -> None:
    debugger = run(squares(5000))
    found = dependences(debugger, "main/while", 1000)
    assert (found.iterations, len(found.begins), found.is_cut) == (5000, 125, False)
    assert len(found.operations) <= 1001
    assert {one.iteration for one in found.operations if one is not None} == set(range(125))
    assert len(found.carried[0].nodes) == 125


def test_of_an_iteration_that_is_too_long_there_are_the_first_operations() -> None:
    found = dependences(finished("count_primes"), "main/for_each_candidate", 5)
    assert (len(found.begins), found.is_cut) == (1, True)
    assert schedule(found, 1, 1).length == sum(one is not None for one in found.operations)


def test_a_run_that_has_not_ended_has_what_has_run() -> None:
    debugger = begun("for_loop")
    with pytest.raises(ValueUnavailable):
        dependences(debugger, "main/for_each_year")
    for _ in range(6):
        debugger.step()
    found = dependences(debugger, "main/for_each_year")
    assert 0 < sum(one is not None for one in found.operations) < 6


@pytest.mark.parametrize(
    "address", ["main/if_divides", "main/for_each_candidate[0]/body/if_divides"]
)
def test_only_loops_are_scheduled(address: str) -> None:
    with pytest.raises(AddressError):
        dependences(finished("count_primes"), address)
