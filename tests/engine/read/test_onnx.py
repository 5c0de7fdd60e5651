"""ONNX models open as they are, run as ONNX Runtime runs them, and show their captures as
bindings.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import loopscope
from loopscope.checks.check import check
from loopscope.checks.diagnostic import InvalidModel
from loopscope.errors import ValueUnavailable
from loopscope.explain.export import computed
from loopscope.explain.pattern import pattern
from loopscope.explain.provenance import provenance
from loopscope.explain.verdict import verdict
from loopscope.ir.address import graphs
from loopscope.ir.model import InputMap, Model
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.read.onnx_models import (
    CASES,
    HEADER,
    LOOP,
    NESTED_IFS,
    NO_LIMIT,
    SCAN,
    SEQUENCE,
    Case,
    X,
    read,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_runs_as_onnx_runtime_does(case: Case) -> None:
    data = case.model().SerializeToString()
    expected = onnxruntime.InferenceSession(data).run(None, case.inputs)
    model = loopscope.read_model(data)
    for given in (loopscope.run(model, case.inputs).outputs, _stepped(model, case.inputs)):
        for mine, theirs in zip(given, expected, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)


def _stepped(model: Model, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    debugger = loopscope.Debugger(model, inputs)
    while debugger.state == "paused":
        debugger.step()
    assert debugger.state == "finished", debugger.failure
    return debugger.result.outputs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_rules_of_openvino_are_not_asked(case: Case) -> None:
    report = check(loopscope.read_model(case.model().SerializeToString()), CATALOGUE)
    assert report.ok, report


def test_names_types_and_opsets_are_those_of_the_file() -> None:
    model = read(LOOP)
    loop = next(node for node in model.graph.nodes if node.type == "Loop")
    assert (model.dialect, loop.opset) == ("onnx", "ai.onnx 17")
    assert [one.name for one in model.inputs] == ["x", "trips", "start"]
    assert [one.name for one in model.outputs] == ["last", "all", "numbers"]
    assert [str(one.shape) for one in model.inputs] == ["[3]", "[]", "[]"]
    assert [port.names for port in loop.outputs] == [("last",), ("all",), ("numbers",)]


def test_a_captured_value_is_an_input_of_the_loop_and_a_parameter_of_its_body() -> None:
    loop = next(node for node in read(LOOP).graph.nodes if node.type == "Loop")
    body = loop.body("body")
    names = {node.id: node.name for node in body.graph.parameters}
    assert [port.names for port in loop.inputs] == [
        ("trips",),
        ("start",),
        ("x",),
        ("one",),
        ("x",),
    ]
    assert [(entry.external, names[entry.internal]) for entry in body.inputs] == [
        (-1, "i"),
        (1, "go"),
        (2, "v"),
        (3, "one"),
        (4, "x"),
    ]
    assert body.inputs[0] == InputMap(-1, body.graph.parameters[0].id, purpose="current_iteration")


def test_captured_constants_have_their_types() -> None:
    """No part of a file has to declare the type of an initializer, or of what a Constant gives."""
    step = "b (int64 i, bool c, float[2] v) => (bool k, float[2] u) { k = Identity (c) t = Add (v, w) s = Mul (t, q) u = Sub (s, z) }"
    nodes = f"q = Constant <value = float {{3}}> () z = Constant <value_float = 2.0> () y = Loop (n, , x) <body = {step}>"
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    text = (
        f"{head} main (int64 n, float[2] x) => (float[2] y) <float[2] w = {{1, 2}}> {{ {nodes} }}"
    )
    model = loopscope.read_model(parser.parse_model(text).SerializeToString())
    (loop,) = (node for node in model.graph.nodes if node.bodies)
    types = {
        node.name: f"{node.outputs[0].element_type}{node.outputs[0].shape}"
        for node in loop.body("body").graph.parameters
    }
    assert types == {
        "i": "i64[]",
        "c": "boolean[]",
        "v": "f32[2]",
        "w": "f32[2]",
        "q": "f32[]",
        "z": "f32[]",
    }


def test_captures_go_through_every_graph_between() -> None:
    places = {place.address: place for place in graphs(read(NESTED_IFS))}
    for address in ("main/If_2/then", "main/If_2/then/If_0/then", "main/If_2/then/If_0/else"):
        if address in places:
            assert "twice" in {node.name for node in places[address].graph.parameters}
    assert len(places) == 5


def test_control_flow_says_why_a_loop_ended() -> None:
    model = read(LOOP)
    endings = {}
    for trips, start in ((5, True), (100, True), (0, True), (-1, True), (5, False)):
        result = loopscope.run(
            model, {**X, "trips": np.array(trips, np.int64), "start": np.array(start)}
        )
        record = result.control_flow[0]
        endings[trips, start] = (record.kind, record.iterations, record.ended_by)
    assert endings == {
        (5, True): ("Loop", 5, "trip_count"),
        (100, True): ("Loop", 8, "condition"),
        (0, True): ("Loop", 0, "zero_trip_count"),
        (-1, True): ("Loop", 0, "zero_trip_count"),
        (5, False): ("Loop", 0, "initial_condition"),
    }


def test_the_verdict_says_what_a_negative_trip_count_means() -> None:
    debugger = loopscope.Debugger(read(LOOP), {**X, "trips": np.array(-1), "start": np.array(True)})
    debugger.run()
    assert "which means no iteration in ONNX" in verdict(debugger, "main/Loop_1").sentence


def test_every_value_of_every_case_can_be_traced_back() -> None:
    for case in CASES:
        debugger = loopscope.Debugger(
            loopscope.read_model(case.model().SerializeToString()), case.inputs
        )
        debugger.run()
        for address in computed(debugger):
            assert provenance(debugger, address)
        for record in debugger.control_flow:
            if record.iterations is not None:
                assert verdict(debugger, record.address).sentence
                assert pattern(debugger, re.sub(r"\[\d+\]", "", record.address)).name


def test_a_negative_trip_count_is_told() -> None:
    text = LOOP.replace("int64 trips, ", "").replace(
        "one = Constant", "trips = Constant <value_int = -1> ()\n  one = Constant"
    )
    codes = [diagnostic.code for diagnostic in check(read(text), CATALOGUE).diagnostics]
    assert "LS910" in codes


def test_a_body_may_look_at_the_condition_that_is_left_out() -> None:
    debugger = loopscope.Debugger(read(NO_LIMIT), X)
    debugger.run()
    assert debugger.value("main/Loop_0[0]/body/go") == np.True_
    assert debugger.value("main/Loop_0[3]/body/i") == 3


def test_values_of_every_iteration_of_a_scan() -> None:
    inputs = next(case.inputs for case in CASES if case.text == SCAN)
    debugger = loopscope.Debugger(read(SCAN), inputs)
    debugger.run()
    np.testing.assert_array_equal(debugger.value("main/Scan_0[0]/body/b"), inputs["sideways"][:, 2])
    np.testing.assert_array_equal(debugger.value("main/Scan_0[2]/body/a"), inputs["forward"][2])
    assert debugger.control_flow[0].ended_by == "slices_exhausted"


def test_sequences_can_be_looked_at() -> None:
    debugger = loopscope.Debugger(read(SEQUENCE), X)
    debugger.run()
    grown: object = debugger.value("main/SequenceInsert_3")
    assert isinstance(grown, tuple)
    assert [one.tolist() for one in grown] == [[1, 4, 9], [1, 2, 3], [1, 4, 9]]
    assert [(one.kind, one.iterations) for one in debugger.control_flow] == [("SequenceMap", 3)]


def test_functions_are_regions() -> None:
    case = next(case for case in CASES if case.name == "functions")
    debugger = loopscope.Debugger(loopscope.read_model(case.model().SerializeToString()), X)
    debugger.run()
    addresses = [record.address for record in debugger.control_flow]
    assert addresses == [
        "main/scaled_0",
        "main/twice_1",
        "main/twice_1/body/scaled_0",
        "main/twice_1/body/scaled_1",
    ]
    assert debugger.value("main/twice_1/body/scaled_0/body/Constant_0") == 3


def _random(type: str, **attributes: float) -> bytes:
    node = helper.make_node(type, [], ["y"], shape=[4])
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["more"]), node],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [4]),
        ],
    )
    trips = helper.make_node("Constant", [], ["trips"], value_int=20)
    loop = helper.make_node("Loop", ["trips", ""], ["all"], body=body)
    output = helper.make_tensor_value_info("all", TensorProto.FLOAT, [None, 4])
    graph = helper.make_graph([trips, loop], "random", [], [output])
    made: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)]
    ).SerializeToString()
    return made


@pytest.mark.parametrize("type", ["RandomNormal", "RandomUniform"])
def test_random_numbers_repeat_when_replayed(type: str) -> None:
    model = loopscope.read_model(_random(type))
    debugger = loopscope.Debugger(model, {}, seed=5)
    debugger.run()
    (drawn,) = debugger.result.outputs
    assert len(np.unique(drawn)) == drawn.size
    for iteration in (13, 2, 19):
        np.testing.assert_array_equal(
            debugger.value(f"main/Loop_1[{iteration}]/body/{type}_1"), drawn[iteration]
        )
    np.testing.assert_array_equal(loopscope.run(model, {}, seed=5).outputs[0], drawn)


def test_an_unknown_operation_is_a_diagnostic() -> None:
    model = read("main (float[3] x) => (float[3] y) { y = Nonsense (x) }")
    with pytest.raises(InvalidModel):
        loopscope.run(model, X)
    assert check(model, CATALOGUE).diagnostics[0].code == "LS301"


def test_a_name_that_nothing_makes_is_a_diagnostic() -> None:
    report = check(read("main (float[3] x) => (float[3] y) { y = Add (x, nowhere) }"), CATALOGUE)
    assert not report.ok
    assert "nowhere" in str(report.diagnostics[0].message)


def test_nodes_that_are_not_in_order_run() -> None:
    data = parser.parse_model(
        HEADER + "main (float[3] x) => (float[3] y) { t = Neg (x) y = Abs (t) }"
    )
    first, second = data.graph.node[0], data.graph.node[1]
    swapped = onnx.ModelProto()
    swapped.CopyFrom(data)
    del swapped.graph.node[:]
    swapped.graph.node.extend([second, first])
    np.testing.assert_array_equal(
        loopscope.run(loopscope.read_model(swapped.SerializeToString()), X).outputs[0], [1, 2, 3]
    )


def test_attributes_are_typed_and_frozen() -> None:
    data = helper.make_model(
        helper.make_graph(
            [
                helper.make_node(
                    "ConstantOfShape",
                    ["s"],
                    ["y"],
                    value=numpy_helper.from_array(f := np.array([2.5], np.float32)),
                )
            ],
            "g",
            [helper.make_tensor_value_info("s", TensorProto.INT64, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    node = next(
        node
        for node in loopscope.read_model(data.SerializeToString()).graph.nodes
        if node.type == "ConstantOfShape"
    )
    value = node.attributes["value"]
    assert isinstance(value, np.ndarray)
    assert value == f
    assert not value.flags.writeable
    with pytest.raises(TypeError):
        node.attributes["value"] = 1  # type: ignore[index]  # that it cannot be written to is what is tested


def test_onnx_models_are_not_written_as_ir(tmp_path: Path) -> None:
    from loopscope.write import write_model

    with pytest.raises(loopscope.EngineError, match="ONNX model cannot be written"):
        write_model(read(LOOP), tmp_path / "m.xml")


def test_a_value_in_the_branch_not_taken_says_so() -> None:
    debugger = loopscope.Debugger(
        read(NESTED_IFS), {**X, "a": np.array(False), "b": np.array(True)}
    )
    debugger.run()
    with pytest.raises(ValueUnavailable, match="its condition chose else"):
        debugger.value("main/If_2/then/If_0")


BATCHED = """<ir_version: 4, opset_import: ["" : 8]>
main (int64[B] lengths, float[B, 2] start, float[B, T, 2] xs, float[B, T, 2] ys)
  => (float[B, 2] last, float[B, T, 2] all, float[B, T, 2] twice) {
  last, all, twice = Scan (LENGTHS, start, xs, ys) <num_scan_inputs: int = 2, directions: ints = DIRECTIONS,
    body = step (float[2] s, float[2] x, float[2] y) => (float[2] t, float[2] a, float[2] b) {
      u = Add (s, x)
      t = Mul (u, y)
      a = Sub (t, x)
      b = Add (y, y)
    }>
}"""


@pytest.mark.parametrize("lengths", ["", "lengths"])
@pytest.mark.parametrize("directions", ["[0, 0]", "[1, 0]", "[1, 1]"])
def test_a_scan_over_a_batch_runs_as_onnx_runtime_does(lengths: str, directions: str) -> None:
    data = parser.parse_model(
        BATCHED.replace("LENGTHS", lengths).replace("DIRECTIONS", directions)
    ).SerializeToString()
    random = np.random.default_rng(0)
    given = {
        "lengths": np.array([3, 5, 1]),
        **{name: random.random((3, 5, 2), np.float32) for name in ("xs", "ys")},
    }
    given["start"] = random.random((3, 2), np.float32)
    expected = onnxruntime.InferenceSession(data).run(None, given)
    debugger = loopscope.Debugger(loopscope.read_model(data), given)
    debugger.run()
    for mine, theirs in zip(debugger.result.outputs, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    trips = [
        record.iterations for record in debugger.control_flow if record.address.endswith("/scan")
    ]
    assert trips == ([3, 5, 1] if lengths else [5, 5, 5])


FLEX = """<ir_version: 13, opset_import: ["" : 26, "ai.onnx.preview" : 1]>
main (float[1, 1, 2, 2] q, float[1, 1, 2, 2] k, float[1, 1, 2, 2] v, float bias) => (float[1, 1, 2, 2] y) {
  y = ai.onnx.preview.FlexAttention (q, k, v) <
    score_mod = biased (float[1, 1, 2, 2] s) => (float[1, 1, 2, 2] t) { t = OPERATION (s, bias) }>
}"""


def test_graphs_that_an_operation_calls_can_be_looked_into_and_capture() -> None:
    q, k, v = (np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2) + number for number in range(3))
    model = loopscope.read_model(
        parser.parse_model(FLEX.replace("OPERATION", "Mul")).SerializeToString()
    )
    debugger = loopscope.Debugger(model, {"q": q, "k": k, "v": v, "bias": np.float32(0.25)})
    debugger.run()
    powers = np.exp(q @ np.swapaxes(k, 2, 3) / np.sqrt(2) * 0.25)
    np.testing.assert_allclose(
        debugger.result.outputs[0], powers / powers.sum(-1, keepdims=True) @ v, rtol=1e-5
    )
    assert [(one.address, one.kind) for one in debugger.control_flow] == [
        ("main/FlexAttention_0", "Function")
    ]


def test_graphs_that_nothing_would_run_are_told() -> None:
    text = FLEX.replace("OPERATION", "Mul").replace("ai.onnx.preview", "my.own")
    (found,) = check(
        loopscope.read_model(parser.parse_model(text).SerializeToString()), CATALOGUE
    ).errors
    assert "'FlexAttention' (my.own 1 with graphs) is unknown" in found.message


@pytest.mark.parametrize(
    ("nodes", "fed"),
    [
        ([("x", "a"), ("a", "b"), ("b", "y")], [0, 1, 2, 3]),
        ([("b", "y"), ("x", "a"), ("a", "b")], [3, 0, 2, 1]),  # not in order
        ([("x", "a"), ("a", "a"), ("a", "y")], [0, 1, 2, 3]),  # the last that makes a name before
        (
            [("a", "y"), ("x", "a"), ("a", "a")],
            [2, 0, 2, 1],
        ),  # or else the first that makes it later
        ([("x", "x"), ("x", "y")], [0, 1, 2]),
        ([("gone", "y")], [None, 1]),
        ([("", "y")], [None, 1]),
    ],
)
def test_an_input_comes_from_what_makes_its_name(
    nodes: list[tuple[str, str]], fed: list[int | None]
) -> None:
    """Layer 0 is the Parameter x; the last is the Result y."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    made = [helper.make_node("Neg", [one], [other]) for one, other in nodes]
    graph = loopscope.read_model(
        helper.make_model(helper.make_graph(made, "g", [x], [y])).SerializeToString()
    ).graph
    sources = [graph.sources[node.id][0] for node in graph.nodes[1:]]
    assert [None if source is None else source.layer for source in sources] == fed
