"""Where the time of a run goes: operations by their addresses, every iteration, and what is not
told said so.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import loopscope
from loopscope import builder
from loopscope.errors import EngineError
from loopscope.peers import clock, operation_times
from loopscope.peers.operation_times import Clock, Clocked, Iterations
from loopscope_app import cli
from loopscope_samples import FOLDER

_NESTED = """<ir_version: 8, opset_import: ["" : 17]>
nested (int64 count, float[3] x) => (float[3] y) {
  y = Loop (count, , x) <body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
    again = Identity (go)
    three = Constant <value_int = 3> ()
    u = Loop (three, , v) <body = inner (int64 j, bool on, float[3] a) => (bool more, float[3] b) {
      more = Identity (on)
      e = Exp (a)
      b = Softmax (e)
    }>
    w = Softmax (u)
  }>
}"""
INPUTS = {"count": np.array(4), "x": np.ones(3, np.float32)}


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    file = tmp_path / "nested.onnx"
    file.write_bytes(parser.parse_model(_NESTED).SerializeToString())
    return file


def test_onnxruntime_tells_of_every_iteration(nested: Path) -> None:
    found = clock(loopscope.read_model(nested), INPUTS)
    assert found.runtime.startswith("ONNX Runtime ")
    by_address = {one.address: one for one in found.operations if one.address}
    runs = {address: one.runs for address, one in by_address.items()}
    assert runs["main/Loop_0"] == 1
    assert runs["main/Loop_0/body/Loop_2"] == 4
    assert {runs[address] for address in runs if "/body/Loop_2/body/" in address} == {12}
    assert all(
        len(one.times) == one.runs and sum(one.times) == one.microseconds
        for one in found.operations
    )
    loops = {one.address: one for one in found.loops}
    assert loops["main/Loop_0"].there == (4,)
    assert loops["main/Loop_0/body/Loop_2"].there == (3, 3, 3, 3)
    assert [len(loops[address].times) for address in loops] == [4, 12]
    assert not any(one.here for one in found.loops)


def test_weights_in_another_file_are_found(tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.eye(64, dtype=np.float32), "w")
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        outside (float[2,64] x) => (float[2,64] y) { y = MatMul (x, w) }"""
    )
    model.graph.initializer.append(weights)
    file = tmp_path / "outside.onnx"
    onnx.save(model, str(file), save_as_external_data=True, location="weights", size_threshold=0)
    found = clock(loopscope.read_model(file), {"x": np.ones((2, 64), np.float32)})
    assert "main/MatMul_0" in {one.address for one in found.operations}


def test_the_innermost_time_is_part_of_what_is_around_it(nested: Path) -> None:
    found = clock(loopscope.read_model(nested), INPUTS)
    cost = {one.address: one.microseconds for one in found.operations}
    inner = sum(
        lasted for address, lasted in cost.items() if address.startswith("main/Loop_0/body/Loop_2/")
    )
    assert inner <= cost["main/Loop_0/body/Loop_2"] <= cost["main/Loop_0"] <= found.microseconds


def test_executions_of_an_inner_loop_stay_in_their_order(nested: Path) -> None:
    """Two iterations of the outer loop, in which those of the inner one take 1, 2, 3 and then 4,
    5, 6.
    """
    events: list[dict[str, object]] = []

    def ended(name: str, kind: str, began: float, lasted: float) -> None:
        events.append(
            {"name": name, "kind": kind, "began": began, "lasted": lasted, "is_node": bool(kind)}
        )

    now = 0.0
    for execution in ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)):
        begun = now
        for lasted in execution:
            ended("inner", "", now, lasted)
            now += lasted
        ended("ls1", "Loop", begun, now - begun)
        ended("step", "", begun, now - begun)
    ended("ls0", "Loop", 0.0, now)
    ended("model_run", "", 0.0, now)
    names = {"ls0": ("main/Loop_0", "y"), "ls1": ("main/Loop_0/body/Loop_2", "u")}
    found = operation_times.clock(
        loopscope.read_model(nested),
        {**INPUTS, "count": np.array(2)},
        "ONNX Runtime 1",
        events,
        names,
        10,
    )
    assert {one.address: one.times for one in found.loops} == {
        "main/Loop_0": (6.0, 15.0),
        "main/Loop_0/body/Loop_2": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    }
    assert found.loops[0].there == (2,)
    assert not any(one.here for one in found.loops)


def test_our_steps_have_iterations_too(nested: Path) -> None:
    found = clock(loopscope.read_model(nested), INPUTS, runtime="loopscope")
    loops = {one.address: one for one in found.loops}
    assert loops["main/Loop_0"].there == (4,)
    assert loops["main/Loop_0/body/Loop_2"].there == (3, 3, 3, 3)
    outer, inner = loops["main/Loop_0"].times, loops["main/Loop_0/body/Loop_2"].times
    assert len(inner) == 12
    assert all(
        sum(inner[3 * number : 3 * number + 3]) < whole for number, whole in enumerate(outer)
    )
    with pytest.raises(EngineError, match="stopped"):
        clock(loopscope.read_model(nested), INPUTS, runtime="loopscope", stopped=lambda: True)


def test_the_time_of_a_loop_is_shared_out_where_it_is_known_of_what() -> None:
    inside = Clocked("main/l/body/a", "Add", "a", 3, 50.0)
    assert Clock("", 100.0, (Clocked("main/l", "Loop", "l", 1, 90.0), inside)).shares == {
        "main/l/body/a": 50.0
    }
    assert Clock("", 100.0, (Clocked("main/l", "Loop", "l", 1, 90.0),)).shares == {"main/l": 90.0}


def test_openvino_has_a_row_for_a_loop() -> None:
    found = clock(loopscope.read_model(FOLDER / "collatz" / "model.xml"), [27])
    assert found.operations[0].address == "main/while_not_one"
    assert found.note == "OpenVINO does not report operations inside loops and branches."
    assert found.loops == ()


def test_our_executor_stops_at_the_time_limit_and_reports_failures(nested: Path) -> None:
    found = clock(loopscope.read_model(nested), INPUTS, runtime="loopscope", seconds=0.0)
    assert found.note.startswith("Only the first 0 steps were timed.")
    graph = builder.Graph("failing")
    x, shape = graph.parameter("x", "f32", [3]), graph.parameter("shape", "i64", [2])
    model = graph.model({"y": builder.ops.reshape(x, shape, special_zero=False)})
    inputs = {"x": np.ones(3, np.float32), "shape": np.array([2, 2])}
    with pytest.raises(EngineError, match="the run fails: "):
        clock(model, inputs, runtime="loopscope")


def test_our_executor_is_timed_step_by_step() -> None:
    found = clock(loopscope.read_model(FOLDER / "collatz" / "model.xml"), [3], runtime="loopscope")
    assert {one.address: one.runs for one in found.operations}[
        "main/while_not_one/body/floor_mod"
    ] == 7
    assert "unwatched, loops run faster" in found.note


def test_the_sentence() -> None:
    rows = (
        Clocked("main/l", "Loop", "l", 1, 90.0, [90.0]),
        Clocked("main/l/body/a", "Add", "a", 3, 50.0, [10.0, 20.0, 20.0]),
    )
    found = Clock(
        "A runtime 1", 100.0, rows, (Iterations("main/l", (3,), (4,), (20.0, 45.0, 25.0)),)
    )
    assert found.sentence == (
        "In A runtime 1 the costliest operation is 'a' (Add): 50.0 µs in 3 runs, 50% of the run. "
        "The costliest iteration is number 1 of l: 45.0 µs. l ran 3 iterations there, 4 iterations here."
    )


def test_a_loop_that_nothing_is_known_of_is_the_costliest_operation() -> None:
    rows = (Clocked("main/l", "Loop", "l", 1, 75.0), Clocked("main/a", "Add", "a", 1, 25.0))
    assert (
        Clock("A runtime 1", 100.0, rows).sentence
        == "In A runtime 1 the costliest operation is 'l' (Loop): 75.0 µs in one run, 75% of the run."
    )


def test_a_loop_that_takes_most_of_the_time_itself_is_the_costliest_operation() -> None:
    """What is left beside a Scan, or what its body computes in a part of its time, is not."""
    rows = (
        Clocked("main/scan", "Scan", "scan", 1, 900.0),
        Clocked("main/m", "MatMul", "m", 1, 60.0),
        Clocked("main/scan/body/a", "Add", "a", 9, 90.0),
    )
    told = "In A runtime 1 the costliest operation is 'scan' (Scan): 810.0 µs in one run, 81% of the run beside what is inside."
    assert Clock("A runtime 1", 1000.0, rows).sentence == told


def test_a_runtime_of_another_format_is_refused() -> None:
    with pytest.raises(
        EngineError, match="onnxruntime does not run this model: OpenVINO does, or Loopscope itself"
    ):
        clock(loopscope.read_model(FOLDER / "collatz" / "model.xml"), [27], runtime="onnxruntime")


def test_command(nested: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", count=INPUTS["count"], x=INPUTS["x"])
    words = ["clock", str(nested), "--inputs", str(tmp_path / "in.npz")]
    assert cli.main(words) == 0
    assert "the costliest operation is" in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["loops"][0]["there"] == [4]
    assert cli.main([*words, "--runtime", "openvino", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["operations"] is None
