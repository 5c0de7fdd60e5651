"""Loops of ONNX models with what recurrent cells and attention are made of: stepping and running
have the same bits, those of the runtime but for roundings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import loopscope

_DICE = np.random.default_rng(3)
_SIZE, _TRIPS = 288, 9


def node(type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """Names are separated by spaces; ``-`` is an input that is left out."""
    return helper.make_node(
        type,
        ["" if name == "-" else name for name in inputs.split()],
        outputs.split(),
        **attributes,
    )


def reals(*shape: int) -> np.ndarray:
    return (_DICE.standard_normal(shape) / 8).astype(np.float32)


def whole(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CELL = (
    [
        node("Gemm", "h weights bias", "gates", transB=1),
        node("Split", "gates", "gi gf gg", axis=-1, num_outputs=3),
        node("Sigmoid", "gi", "i"),
        node("Clip", "gf low high", "f"),
        node("Tanh", "gg", "g"),
        node("Mul", "i g", "new"),
        node("Mul", "f c", "kept"),
        node("Sum", "new kept", "c_out"),
        node("Relu", "c_out", "relu"),
        node("Max", "relu new kept", "h_out"),
    ],
    {
        "weights": reals(3 * _SIZE, _SIZE),
        "bias": reals(3 * _SIZE),
        "low": np.float32(0.1),
        "high": np.float32(0.6),
    },
)
ATTENTION = (
    [
        node("Reshape", "h heads", "rows"),
        node("Transpose", "rows", "columns", perm=[1, 0]),
        node("MatMul", "columns rows", "product"),
        node("Softmax", "product", "weights", axis=0),
        node("MatMul", "rows weights", "mixed"),
        node("Add", "mixed rows", "both_ways"),
        node("LayerNormalization", "both_ways scale", "normal", axis=-1),
        node("Shape", "h", "shape"),
        node("Reshape", "normal shape", "flat"),
        node("Slice", "flat starts ends axes", "half"),
        node("Concat", "half half", "both", axis=1),
        node("ReduceSum", "both axes", "total"),
        node("Gather", "both places", "picked", axis=1),
        node("Erf", "picked", "erf"),
        node("Sigmoid", "total", "share"),
        node("Div", "erf share", "h_out"),
        node("Unsqueeze", "c axes", "three"),
        node("Expand", "one c_shape", "ones"),
        node("Squeeze", "three axes", "two"),
        node("Min", "two ones", "least"),
        node("Sub", "least h_out", "c_out"),
    ],
    {
        "heads": whole(16, -1),
        "scale": reals(_SIZE // 16),
        "starts": whole(0),
        "ends": whole(_SIZE // 2),
        "axes": whole(1),
        "places": _DICE.permutation(_SIZE),
        "one": np.float32(1),
        "c_shape": whole(1, _SIZE),
    },
)


@pytest.mark.parametrize("body", [CELL, ATTENTION], ids=["cell", "attention"])
def test_stepping_and_running_agree_with_the_runtime(
    body: tuple[list[onnx.NodeProto], dict[str, np.ndarray]],
) -> None:
    nodes, constants = body
    state = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, _SIZE])
        for name in ("h", "c", "h_out", "c_out", "h_end", "c_end")
    ]
    counter = helper.make_tensor_value_info("i_", TensorProto.INT64, [])
    go, again = (
        helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go", "again")
    )
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    inner = helper.make_graph(
        [*nodes, node("Identity", "go", "again")],
        "body",
        [counter, go, *state[:2]],
        [again, *state[2:4]],
        held,
    )
    fixed = [
        numpy_helper.from_array(np.array(_TRIPS), "trips"),
        numpy_helper.from_array(np.array(True), "start"),
    ]
    names = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, _SIZE]) for name in ("x", "y")
    ]
    loop = helper.make_node("Loop", ["trips", "start", "x", "y"], ["h_end", "c_end"], body=inner)
    graph = helper.make_graph([loop], "main", names, state[4:], fixed)
    data = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    ).SerializeToString()
    feeds = {"x": reals(1, _SIZE), "y": reals(1, _SIZE)}
    model = loopscope.read_model(data)
    stepped = loopscope.Debugger(model, feeds)
    while stepped.state == "paused":
        stepped.step()
    session = loopscope.Session(model)
    expected = onnxruntime.InferenceSession(data).run(None, feeds)
    for run in (session.run(feeds), session.run(feeds)):
        for mine, slow, other in zip(run.outputs, stepped.result.outputs, expected, strict=True):
            np.testing.assert_array_equal(mine, slow)
            # Some hundred roundings in each of nine iterations, of numbers of about 1.
            np.testing.assert_allclose(mine, other, atol=1e-4)


def test_a_batched_scan_gives_back_a_slice() -> None:
    """Sequences of 2 and 3 elements; the state is the element before, and sums are collected."""
    step = "step (float[1] p, float[1] v) => (v, w) { w = Add (p, v) }"
    text = f"""<ir_version: 3, opset_import: ["" : 8]>
    main (int64[2] n, float[2,1] a, float[2,3,1] x) => (y, z) {{ y, z = Scan <num_scan_inputs = 1, body = {step}> (n, a, x) }}"""
    feeds = {
        "n": np.array([2, 3]),
        "a": np.ones((2, 1), np.float32),
        "x": np.arange(1, 7, dtype=np.float32).reshape(2, 3, 1),
    }
    last, sums = loopscope.run(
        loopscope.read_model(parser.parse_model(text).SerializeToString()), feeds
    ).outputs
    np.testing.assert_array_equal(last, [[2], [6]])
    np.testing.assert_array_equal(sums[..., 0], [[2, 3, 0], [5, 9, 11]])
