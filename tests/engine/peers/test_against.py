"""Our runs against the runtimes themselves: they agree, and where one side computes something
else, the first such value is named.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder.tensor import Tensor
from loopscope.debug.inputs import Inputs
from loopscope.ir import readable
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.peers import against
from loopscope_samples import FOLDER
from tests.benchmarks import loop_models

onnx = pytest.importorskip("onnx")
ov = pytest.importorskip("openvino")
opset6 = pytest.importorskip("openvino.opset6")
pytest.importorskip("onnxruntime")


def finished(
    model: loopscope.Model, inputs: Inputs, catalogue: Catalogue = CATALOGUE
) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, inputs, catalogue=catalogue)
    debugger.run()
    return debugger


def nest(trips: int = 3) -> loopscope.Model:
    """A loop in a loop, with an If inside whose branches multiply and add; an If outside, whose
    branch has a loop.
    """
    graph = builder.Graph("nest")
    x = graph.parameter("x", "f32", [2])

    def inner(j: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return j + 1, builder.cond(
            builder.ops.reduce_max(v, [0]) > 2.0, lambda: v * 0.5, lambda: v + 1.0
        )

    def outer(i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        _, after = builder.while_loop(lambda j, _: j < 4, inner, [graph.constant(0), v])
        return i + 1, after - 0.25

    _, last = builder.while_loop(lambda i, _: i < trips, outer, [graph.constant(0), x])

    def again() -> Tensor:
        _, doubled = builder.while_loop(
            lambda k, _: k < 3, lambda k, v: (k + 1, v * 2.0), [graph.constant(0), last]
        )
        return cast(Tensor, doubled)

    return graph.model(builder.cond(builder.ops.reduce_max(last, [0]) > -9.0, again, lambda: last))


def wrong(above: float) -> Catalogue:
    """A catalogue in which products are one too large where a factor lies above a bound."""
    found = CATALOGUE.find("Multiply", "opset1")
    assert found is not None

    def kernel(one: np.ndarray, other: np.generic, **_: Any) -> np.ndarray:
        product = np.multiply(one, other)
        return np.asarray(product + product.dtype.type(bool(np.max(one) > above)))

    return CATALOGUE.with_operations(
        [replace(found, kernel=kernel, symbol="", float_symbol="")], replace=True
    )


def test_every_value_of_a_nest_agrees() -> None:
    debugger = finished(nest(), [np.array([0, 1], np.float32)])
    report = against(debugger, [np.array([0, 1], np.float32)])
    assert report.agrees, report.sentence
    assert report.first is None
    assert not report.refused
    assert report.sentence.startswith("All outputs agree with OpenVINO 20")
    assert not report.left_out
    # 12 inner iterations of at least four values each, with those in the branches.
    assert report.values > 60


def first_apart(one: loopscope.Debugger, other: loopscope.Debugger) -> str:
    """The first operation, step by step, after which two runs hold different values."""
    for step in range(one.steps):
        cursor = one.seek(step)
        assert other.seek(step).address == cursor.address
        if cursor.kind == "operation" and not np.array_equal(
            one.value(cursor.address), other.value(cursor.address)
        ):
            return cursor.address
    raise AssertionError("the runs are equal")


@pytest.mark.parametrize("above", [2.0, 2.2, 2.9])
def test_the_first_wrong_value_is_named(above: float) -> None:
    model, feed = nest(), [np.array([0, 1], np.float32)]
    good, bad = finished(model, feed), finished(model, feed, wrong(above))
    report = against(bad, feed)
    assert report.first is not None
    assert report.first.address == first_apart(good, bad)
    assert readable(report.first.address) in report.sentence
    assert not report.agrees


@pytest.mark.parametrize(
    ("make", "constant", "address"),
    [
        (loop_models.scalars, "add", "main/Loop_0[0]/body/Add_0"),
        (loop_models.nested, "add", "main/Loop_0[0]/body/Loop_0[0]/body/If_1/then/Add_0"),
        (
            loop_models.cell,
            "weights",
            "main/Loop_0[1]/body/MatMul_0",
        ),  # in the first iteration they meet zeros
    ],
)
def test_onnx_models_are_compared_with_onnx_runtime(
    make: Callable[..., Any], constant: str, address: str, tmp_path: Path
) -> None:
    case = make(9)
    path = tmp_path / "model.onnx"
    onnx.save(case.onnx(9), str(path))
    debugger = finished(loopscope.read_model(path), case.inputs)
    report = against(debugger, case.inputs)
    assert report.agrees, report.sentence
    assert "ONNX Runtime" in report.runtime
    assert report.values >= 9 * 4
    # The file is another one now: a constant of the body is larger.
    changed = case.onnx(9)
    body = changed.graph.node[0].attribute[0].g
    while any(node.op_type == "Loop" for node in body.node):
        body = next(node for node in body.node if node.op_type == "Loop").attribute[0].g
    (number,) = [one for one in body.initializer if one.name == constant]
    number.CopyFrom(
        onnx.numpy_helper.from_array(
            onnx.numpy_helper.to_array(number) + np.float32(0.125), constant
        )
    )
    onnx.save(changed, str(path))
    report = against(debugger, case.inputs)
    assert report.first is not None
    assert report.first.address == address


def test_values_without_elements_are_compared(tmp_path: Path) -> None:
    """None of the loop's own values has an element, so that they say nothing about how often it
    ran.
    """
    kind, value = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
    body = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Add", ["v", "v"], ["twice"]),
            onnx.helper.make_node("Identity", ["go"], ["again"]),
        ],
        "body",
        [
            value("i", onnx.TensorProto.INT64, []),
            value("go", onnx.TensorProto.BOOL, []),
            value("v", kind, [0, 2]),
        ],
        [value("again", onnx.TensorProto.BOOL, []), value("twice", kind, [0, 2])],
    )
    trips = onnx.helper.make_tensor("trips", onnx.TensorProto.INT64, [], [3])
    loop = onnx.helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    graph = onnx.helper.make_graph(
        [loop], "g", [value("x", kind, [0, 2])], [value("y", kind, [0, 2])], [trips]
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=9),
        str(tmp_path / "empty.onnx"),
    )
    feed = [np.zeros((0, 2), np.float32)]
    report = against(finished(loopscope.read_model(tmp_path / "empty.onnx"), feed), feed)
    assert report.agrees, report.sentence
    assert report.values >= 6


@pytest.mark.parametrize(
    "folder", ["beam_search", "count_primes", "keras_gru", "records_scan", "walking_backwards"]
)
def test_samples_agree(folder: str) -> None:
    model = loopscope.read_model(FOLDER / folder / "model.xml")
    stored = sorted((FOLDER / folder / "inputs").glob("*.npz"))[-1]
    with np.load(stored, allow_pickle=False) as arrays:
        inputs = {name: arrays[name] for name in arrays.files}
    report = against(finished(model, inputs), inputs)
    assert report.agrees, report.sentence
    assert not report.refused
    assert report.values


def test_a_count_that_differs_is_told(tmp_path: Path) -> None:
    case = loop_models.scalars(9)
    path = tmp_path / "model.onnx"
    onnx.save(case.onnx(9), str(path))
    debugger = finished(loopscope.read_model(path), case.inputs)
    onnx.save(case.onnx(12), str(path))
    report = against(debugger, case.inputs)
    assert report.outputs
    assert report.first is not None
    assert (report.first.here, report.first.there) == ("in 9 iterations", "in 12 iterations")
    assert "[8]" in report.first.address


def test_what_cannot_be_compared_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = [np.array([0, 1], np.float32)]
    debugger = finished(nest(), feed)
    with pytest.raises(loopscope.EngineError, match="only a run that has finished"):
        against(loopscope.Debugger(nest(), feed), feed)
    with pytest.raises(
        loopscope.EngineError, match=r"OpenVINO did not run the model within 0\.01 seconds"
    ):
        against(debugger, feed, seconds=0.01)
    changed = loopscope.Debugger(
        nest(), feed, changes={"main/while[1]/body/Subtract": np.array([3, 3], np.float32)}
    )
    changed.run()
    with pytest.raises(loopscope.EngineError, match="whose values were edited"):
        against(changed, feed)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(loopscope.EngineError, match="install openvino: pip install openvino"):
        against(debugger, feed)


@pytest.mark.measured
def test_nobody_has_to_wait_for_another_runtime() -> None:
    debugger = finished(nest(), [np.array([1, 2], np.float32)])
    looks: list[float] = []

    def stopped() -> bool:
        looks.append(time.monotonic())
        return len(looks) > 1

    with pytest.raises(
        loopscope.EngineError, match="OpenVINO was stopped before it had run the model"
    ):
        against(debugger, [np.array([1, 2], np.float32)], stopped=stopped)
    assert looks[1] - looks[0] < 5


def test_the_values_inside_a_stateful_model_are_compared(tmp_path: Path) -> None:
    """An Assign is a sink in OpenVINO: it has an output in the file, and none that can be asked
    for.
    """
    x = opset6.parameter([1, 3], np.float32, name="x")
    start = opset6.constant(np.zeros((1, 3), np.float32))
    state = opset6.read_value(start, "state", np.float32, [1, 3], name="state")
    total = opset6.add(state, x, name="total")
    keep = opset6.assign(total, "state", name="keep")
    model = ov.Model([opset6.result(opset6.tanh(total))], [keep], [x], "stateful")
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    inputs = {"x": np.array([[1, 2, 3]], np.float32)}
    report = against(finished(loopscope.read_model(tmp_path / "model.xml"), inputs), inputs)
    assert report.agrees
    assert report.refused == ""
    assert report.places >= 4, "the state, the sum, what keeps it, and the output"


def uneven(first: int) -> loopscope.Model:
    """A loop in a loop, whose count grows by 1 from ``first`` on."""
    graph = builder.Graph("uneven")
    x = graph.parameter("x", "f32", [2])

    def outer(i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        _, after = builder.while_loop(
            lambda j, _: j < i, lambda j, w: (j + 1, w * 1.5), [graph.constant(0), v]
        )
        return i + 1, after - 0.25

    return graph.model(
        builder.while_loop(lambda i, _: i < first + 4, outer, [graph.constant(first), x])[1]
    )


@pytest.mark.parametrize("first", [0, 2])
def test_loops_of_counts_that_vary_are_compared(first: int) -> None:
    """An execution of the inner loop without any iteration too."""
    feed = [np.array([1, 2], np.float32)]
    report = against(finished(uneven(first), feed), feed)
    assert report.agrees, report.sentence
    assert report.left_out == {}
    good, bad = finished(uneven(first), feed), finished(uneven(first), feed, wrong(3.5))
    report = against(bad, feed)
    assert report.first is not None
    assert report.first.address == first_apart(good, bad)


def test_onnx_loops_of_counts_that_vary_are_compared() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    main (int64 n, float[2] x) => (float[2] y) {
      yes = Constant <value = bool {1}> ()
      y = Loop (n, yes, x) <body = outer (int64 i, bool c, float[2] a) => (bool c2, float[2] a3) {
        c2 = Identity (c)
        a2 = Loop (i, c, a) <body = inner (int64 j, bool d, float[2] v) => (bool d2, float[2] v2) {
          d2 = Identity (d)
          v2 = Mul (v, v)
        }>
        a3 = Sub (a2, x)
      }>
    }"""
    document = onnx.parser.parse_model(text).SerializeToString()
    inputs = {"n": np.int64(4), "x": np.array([0.5, 0.25], np.float32)}
    debugger = finished(loopscope.read_model(document), inputs)
    report = against(debugger, inputs, document=document)
    assert report.agrees, report.sentence
    assert report.left_out == {}
    assert report.values == 1 + 4 * 5 + 6 * 4, (
        "the loop and the constant, the outer body in 4 iterations, the inner one in 6"
    )


def test_texts_are_compared() -> None:
    graph = builder.Graph("texts")
    texts = graph.parameter("texts", "string", [3])
    begins, ends, symbols = builder.ops.string_tensor_unpack(texts)
    model = graph.model(builder.ops.string_tensor_pack(begins, ends, symbols))
    feed = [np.array(["a", "", "bcd é"], object)]
    report = against(finished(model, feed), feed)
    assert report.agrees, report.sentence
