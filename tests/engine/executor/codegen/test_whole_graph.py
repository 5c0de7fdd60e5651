"""Whole graphs as generated functions, held to stepping: values, records, errors, limits, memory."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.parser import parse_model

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.debug.progress import start
from loopscope.debug.result import RunStopped
from loopscope.executor import drive
from loopscope.executor.codegen import whole_graph
from loopscope.executor.machine.limits import Limits, Paused
from loopscope.executor.machine.machine import Failure, Machine
from loopscope.executor.plan.plan import Plan
from loopscope.executor.plan.planner import plan_of
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import NOTHING, LoopTable
from loopscope.ir.replace import replace
from tests.draws import draws
from tests.engine.drawn.agreement import WITHOUT_SHRINKING
from tests.engine.drawn.models import drawn_model, same_bits

_NEVER = 10**9


def _run(plan: Plan, feeds: list[Any], limits: Limits | None = None) -> tuple[Machine, str]:
    """Return the machine at the end of a run of outputs only, and the message of its pause."""
    machine = start(
        Overrides(plan),
        dict(zip(plan.main.parameters.values(), feeds, strict=True)),
        limits or Limits(),
        NOTHING,
        1,
        keeps=False,
    )
    try:
        drive.run(machine)
    except Paused as pause:
        return machine, pause.message
    except Failure:
        pass
    return machine, ""


def _moment(machine: Machine) -> list[tuple[str, int, int]]:
    return [(frame.program.address, frame.position, frame.iteration) for frame in machine.frames]


def _logs(machine: Machine) -> list[Any]:
    return [
        (table.counts, table.endings) if isinstance(table, LoopTable) else bytes(table.branches)
        for table in machine.recording.tables
    ]


@settings(max_examples=draws(40), deadline=None, phases=WITHOUT_SHRINKING)
@given(
    seed=st.integers(0, 2**40),
    iterations=st.sampled_from([None, None, 1, 3, 7]),
    memory=st.sampled_from([None, None, 40, 400]),
)
def test_generated_graphs_do_what_stepping_does(
    seed: int, iterations: int | None, memory: int | None
) -> None:
    model, feed_sets = drawn_model(seed)
    stepped_plan, generated_plan = plan_of(replace(model)), plan_of(replace(model))
    limits = Limits(iterations=iterations or 2000, memory_bytes=memory)
    for feeds in [*feed_sets, feed_sets[0]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(whole_graph, "STEPPED_RUNS", _NEVER)
            stepped, message = _run(stepped_plan, feeds, limits)
        generated, other_message = _run(generated_plan, feeds, limits)
        if "bytes is reached" in message + other_message:
            break  # what loops collect is checked between chunks, whose length depends on time
        assert (generated.state, generated.failure, other_message) == (
            stepped.state,
            stepped.failure,
            message,
        )
        assert _moment(generated) == _moment(stepped)
        assert _logs(generated) == _logs(stepped)
        assert generated.control.iterations == stepped.control.iterations
        for slot in stepped_plan.main.producer:
            left, right = generated.values[slot], stepped.values[slot]
            assert (left is None) == (right is None), slot
            assert right is None or same_bits(left, right), slot
    if generated_plan.main.instructions and whole_graph.can_generate(generated_plan):
        assert whole_graph.functions(generated_plan)


def _quotients() -> loopscope.Model:
    """Return a model that divides by an input in a branch, and adds a sum of constants."""
    graph = builder.Graph("quotients")
    n = graph.parameter("n", "i64", [])
    five = ops.add(graph.constant(2, "i64"), graph.constant(3, "i64"))
    result = builder.cond(n > -10, lambda: graph.constant(60, "i64") // n, lambda: -n)
    return graph.model({"y": result + five})


def test_a_failure_in_a_branch_leaves_the_machine_there() -> None:
    plan = plan_of(_quotients())
    machine, _ = _run(plan, [np.int64(12)])
    assert machine.values[next(iter(plan.main.results.values()))] == 10
    failed, _ = _run(plan, [np.int64(0)])
    assert failed.state == "failed"
    assert "inputs: i64[] = 60; i64[] = 0" in failed.failure
    assert [frame.program.branch_name for frame in failed.frames] == ["main", "then"]
    with pytest.raises(RunStopped, match="main/cond/then/"):
        loopscope.run(plan.model, [np.int64(0)])


def test_constants_are_folded_once_their_results_are_stored() -> None:
    plan = plan_of(_quotients())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_graph, "STEPPED_RUNS", 1)
        _run(plan, [np.int64(3)])
        assert whole_graph.functions(plan) == []
        machine, _ = _run(plan, [np.int64(3)])
    assert machine.state == "finished"
    (function,) = whole_graph.functions(plan)
    assert not any("known" in line.partition("=")[0] for line in function.text.splitlines())
    assert "known_" in function.text


def _chain(operations: int) -> loopscope.Model:
    graph = builder.Graph("chain")
    value = graph.parameter("x", "f32", [None])
    for _ in range(operations):
        value = ops.relu(value)
    return graph.model({"y": value})


def test_values_that_nothing_reads_are_deleted() -> None:
    """Twenty values of 2 MB, of which two at a time are needed."""
    plan, x = plan_of(_chain(20)), np.ones(500_000, np.float32)
    _run(plan, [x])
    tracemalloc.start()
    _run(plan, [x])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6_500_000


def test_a_large_result_counts_towards_the_memory_limit() -> None:
    """Stepping computes large results, also in later runs."""
    plan, x = plan_of(_chain(20)), np.ones(2_000_000, np.float32)
    limits = Limits(memory_bytes=20_000_000)
    machine, _ = _run(plan, [x], limits)
    assert "more than the limit of 20,000,000" in machine.failure
    assert machine.frames[0].position == 1
    machine, _ = _run(plan, [x])
    assert machine.state == "finished"
    machine, _ = _run(plan, [x[:3]])
    assert machine.state == "finished"


@pytest.mark.parametrize("operation", ["Add", "Div", "Max", "Less", "Pow", "Mean"])
@pytest.mark.parametrize("earlier_runs", [0, 1])
def test_a_declared_shape_of_onnx_does_not_allow_a_larger_result(
    operation: str, earlier_runs: int
) -> None:
    """A file may declare 4 x 4 elements, and inputs may broadcast to 64 million."""
    element = "bool" if operation == "Less" else "float"
    model = loopscope.read_model(
        parse_model(
            f"""<ir_version: 9, opset_import: ["" : 18]>
            main (float[N, 1] x, float[1, M] y) => ({element}[4, 4] z) {{ z = {operation} (x, y) }}
            """
        ).SerializeToString()
    )
    plan, row = plan_of(model), np.ones((1, 8192), np.float32)
    for _ in range(earlier_runs):
        assert _run(plan, [row[:, :4].T, row[:, :4]])[0].state == "finished"
    tracemalloc.start()
    machine, _ = _run(plan, [row.T, row], Limits(memory_bytes=1 << 24))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "the result would have 67108864 elements" in machine.failure
    assert peak < 1 << 20


def test_known_element_types_make_expressions_of_kernels() -> None:
    """Types follow through an If."""
    graph = builder.Graph("typed")
    x, yes = graph.parameter("x", "f32", [None]), graph.parameter("yes", "boolean", [])
    chosen = builder.cond(yes, lambda: ops.relu(x), lambda: ops.tanh(x))
    plan = plan_of(graph.model({"y": ops.sigmoid(chosen) + x}))
    data = np.array([-1, 2], np.float32)
    machine, _ = _run(plan, [data, np.bool_(True)])
    result = machine.values[next(iter(plan.main.results.values()))]
    expected = 1 / (1 + np.exp(-np.maximum(data, 0))) + data
    assert same_bits(result, expected)
    (function,) = whole_graph.functions(plan)
    assert "kernel" not in function.text


def test_each_combination_of_input_types_has_its_function() -> None:
    graph = builder.Graph("any")
    x = graph.parameter("x", "f32", None)
    plan = plan_of(graph.model({"y": ops.relu(x + x)}))
    for value in (
        np.float32(-1),
        np.ones(3, np.float32),
        np.float32(2),
        np.ones((1, 2), np.float32),
    ):
        machine, _ = _run(plan, [value])
        result = machine.values[next(iter(plan.main.results.values()))]
        assert same_bits(result, np.maximum(value + value, 0))
    assert len(whole_graph.functions(plan)) == 2


def test_a_stop_request_pauses_between_two_operations() -> None:
    plan = plan_of(_chain(3))
    _run(plan, [np.ones(3, np.float32)])
    machine = start(
        Overrides(plan),
        {slot: np.ones(3, np.float32) for slot in plan.main.parameters.values()},
        Limits(),
        NOTHING,
        1,
        keeps=False,
    )
    machine.control.stop.set()
    with pytest.raises(Paused, match="stopped"):
        drive.run(machine)
    drive.run(machine)
    assert machine.state == "finished"


def test_functions_go_with_their_plan() -> None:
    model = _chain(3)
    _run(plan_of(model), [np.ones(3, np.float32)])
    plan = weakref.ref(plan_of(model))
    del model
    gc.collect()
    assert plan() is None
