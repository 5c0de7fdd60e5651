"""TensorIterator-1, If-8, deep nesting, failures: what they give and what they say."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.executor.machine import regions
from loopscope.executor.plan.body_ports import Concatenated, Sliced
from loopscope.executor.plan.slots import Slot
from loopscope.ir.model import LOOP, TENSOR_ITERATOR, LayerId
from loopscope.ir.shape import PartialShape
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, Slice, branch, loop, tensor_iterator


@pytest.mark.parametrize(
    ("start", "end", "stride", "visited"),
    # spec/ir-format: both ends included, negative ones counted from the end; OpenVINO's CPU ignores
    # start
    [
        (0, -1, 1, [0, 1, 2, 3, 4]),
        (0, -2, 1, [0, 1, 2, 3]),
        (-1, 0, -1, [4, 3, 2, 1, 0]),
        (-1, 1, -1, [4, 3, 2, 1]),
        (1, -1, 1, [1, 2, 3, 4]),
        (-2, 1, -1, [3, 2, 1]),
        (1, 3, 1, [1, 2, 3]),
        (2, 2, -1, [2]),
    ],
)
def test_parts_that_a_tensor_iterator_visits(
    start: int, end: int, stride: int, visited: list[int]
) -> None:
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, (5, 1))
    part = body.parameter("part", F32, (1, 1))
    out = body.result(part)
    made = tensor_iterator(
        outer,
        body,
        sliced=[(x, part, {"axis": 0, "start": start, "end": end, "stride": stride})],
        joined=[(out, {})],
    )
    outer.result(made)
    result = loopscope.run(outer.model(), [np.arange(5, dtype=np.float32).reshape(5, 1)])
    assert result.outputs[0].reshape(-1).tolist() == visited
    assert (result.control_flow[0].kind, result.control_flow[0].iterations) == (
        "TensorIterator",
        len(visited),
    )
    assert result.control_flow[0].ended_by == "slices_exhausted"


@pytest.mark.parametrize(
    ("kind", "start", "stride", "begins"),
    [
        (LOOP, 0, 1, [0, 2, 4]),
        (LOOP, 0, -1, [4, 2, 0]),
        (TENSOR_ITERATOR, 1, 1, [1, 3, 5]),
        (TENSOR_ITERATOR, -1, -1, [4, 2, 0]),
    ],
)
def test_where_parts_of_two_elements_begin(
    kind: str, start: int, stride: int, begins: list[int]
) -> None:
    sliced = Sliced(
        parameter=Slot(1),
        source=Slot(0),
        axis=0,
        start=start,
        end=0,
        stride=stride,
        part_size=2,
        layer=LayerId(0),
    )
    region: Any = SimpleNamespace(kind=kind)
    assert [regions.part_begin(region, sliced, 6, number) for number in range(3)] == begins


@pytest.mark.parametrize(("axis", "shape"), [(0, (0, 2, 3)), (-1, (2, 3, 0)), (-2, (2, 0, 3))])
def test_stacking_no_iterations_adds_an_axis_of_length_0(axis: int, shape: tuple[int, ...]) -> None:
    output = Concatenated(
        slot=Slot(1), result=Slot(0), axis=axis, reverse=False, stacked=True, layer=LayerId(0)
    )
    joined = regions.empty_join(output, PartialShape.of([2, 3]), np.dtype(np.float32))
    assert joined.shape == shape


def test_a_concatenated_output_counts_the_iterations_without_slices() -> None:
    outer, body = Draft(), Draft()
    x, pair = outer.parameter("x", F32, (2,)), body.parameter("pair", F32, (2,))
    out = body.result(pair)
    bounds: Slice = {"axis": 0, "start": 0, "end": 5, "part_size": 2}
    outer.result(tensor_iterator(outer, body, carried=[(x, pair, out)], joined=[(out, bounds)]))
    result = loopscope.run(outer.model(), [np.array([1, 2], np.float32)])
    assert result.outputs[0].tolist() == [1, 2] * 3


def test_slices_of_different_lengths_are_told() -> None:
    outer, body = Draft(), Draft()
    x, y = outer.parameter("x", F32, (-1, 1)), outer.parameter("y", F32, (-1, 1))
    left, right = body.parameter("left", F32, (1, 1)), body.parameter("right", F32, (1, 1))
    out = body.result(body.op("Add", left, right))
    made = tensor_iterator(
        outer, body, sliced=[(x, left, {"axis": 0}), (y, right, {"axis": 0})], joined=[(out, {})]
    )
    outer.result(made)
    with pytest.raises(loopscope.RunStopped, match="2, 3 parts: they must agree"):
        loopscope.run(outer.model(), [np.ones((2, 1), np.float32), np.ones((3, 1), np.float32)])


def deciding() -> loopscope.Model:
    """then: x + 1; else: x reshaped into what it cannot be."""
    outer = Draft()
    c, x = outer.parameter("c", BOOL, ()), outer.parameter("x", F32, (3,))
    then, otherwise = Draft(), Draft()
    t = then.parameter("t", F32, (3,))
    then_out = then.result(then.op("Add", t, then.const([1.0])))
    e = otherwise.parameter("e", F32, (-1,))
    wrong = otherwise.op(
        "Reshape",
        e,
        otherwise.op("ShapeOf", otherwise.op("Concat", e, e, axis="0"), opset=3),
        special_zero="false",
        name="wrong",
    )
    else_out = otherwise.result(wrong)
    made = outer.region(
        "If",
        [c, x],
        [
            branch("then", then, [(1, t)], [then_out]),
            branch("else", otherwise, [(1, e)], [else_out]),
        ],
        1,
        name="choose",
        opset=8,
    )
    outer.result(made)
    return outer.model()


def test_the_branch_not_taken_does_not_run() -> None:
    result = loopscope.run(deciding(), {"c": True, "x": [1.0, 2.0, 3.0]})
    assert result.outputs[0].tolist() == [2, 3, 4]
    (record,) = result.control_flow
    assert (record.address, record.kind, record.iterations, record.ended_by, record.branch) == (
        "main/choose",
        "If",
        None,
        None,
        "then",
    )


def test_a_failure_names_its_place_and_keeps_what_was_before() -> None:
    with pytest.raises(loopscope.RunStopped) as stopped:
        loopscope.run(deciding(), {"c": False, "x": [1.0, 2.0, 3.0]})
    error = stopped.value
    assert (error.cause, error.address) == ("error", "main/choose/else/wrong")
    assert "Reshape-1 failed" in str(error)
    assert "f32[3] = [1.0, 2.0, 3.0]" in str(error)
    assert error.result.control_flow[0].branch == "else"
    with pytest.raises(loopscope.ValueUnavailable):
        error.result.outputs  # noqa: B018 - asking is the test


@pytest.mark.parametrize("depth", [1, 30, 400])
def test_nesting_deep(depth: int) -> None:
    """Built in memory: the machine, the plan and the checks know no recursion."""
    body = Draft()
    innermost = body.parameter("x", F32, ())
    out = body.op("Add", innermost, body.const(1.0))
    for _ in range(depth):
        again, result = body.result(body.const(True, BOOL)), body.result(out)
        outer = Draft()
        x = outer.parameter("x", F32, ())
        made = loop(
            outer,
            body,
            outer.const(1, I64),
            outer.const(True, BOOL),
            again=again,
            carried=[(x, Ref(0), result)],
            last=[result],
        )
        body, out = outer, made
    body.result(out)
    model = body.model()
    ran = loopscope.run(model, [np.float32(1)])
    assert ran.outputs[0] == 2
    assert len(ran.control_flow) == depth
    debugger = loopscope.Debugger(model, [np.float32(1)])
    assert debugger.run().kind == "finished"
    deepest = ran.control_flow[-1].address
    assert debugger.value(f"{deepest}[0]/body/Add_2") == 2
    assert debugger.seek(debugger.steps // 2).step == debugger.steps // 2


@pytest.mark.measured
def test_a_run_can_be_stopped_from_another_thread() -> None:
    outer, body = Draft(), Draft()
    x = outer.parameter("x", F32, ())
    state = body.parameter("state", F32, ())
    more = body.op("Add", state, body.const(1.0))
    again, out = body.result(body.op("GreaterEqual", more, body.const(0.0))), body.result(more)
    number = body.parameter("number", I64, ())
    made = loop(
        outer,
        body,
        outer.const(-1, I64),
        outer.const(True, BOOL),
        again=again,
        carried=[(x, state, out)],
        last=[out],
        iteration=number,
    )
    outer.result(made)
    debugger = loopscope.Debugger(outer.model(), [np.float32(0)])
    asked: list[float] = []

    def stop() -> None:
        asked.append(time.perf_counter())
        debugger.stop()

    timer = threading.Timer(0.3, stop)
    timer.start()
    debugger.run()
    late = time.perf_counter() - asked[0]
    assert debugger.state == "paused"
    assert late < 1.0  # the bar is 100 ms on a quiet machine
    before = debugger.steps
    assert before > 1000
    assert debugger.step().step == before + 1
