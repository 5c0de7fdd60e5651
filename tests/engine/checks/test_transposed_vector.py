"""The rule about transposed matrices and vectors agrees with what ONNX Runtime computes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import loopscope

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
STEP = "b (int64 i, bool c, float[2] p) => (bool k, float[2] u) {{ k = Identity (c) {} q = MatMul (t, p) u = MatMul (a, q) }}"
T = "t = Transpose <perm = [1, 0]> (a)"
MAIN = "main (float[2,3] a, float[2] v) => (y)"

CASES = {
    # model: the number of warnings
    "matrix": (f"{MAIN} {{ {T} y = MatMul (t, v) }}", 1),
    "all axes": (f"{MAIN} {{ t = Transpose (a) y = MatMul (t, v) }}", 1),
    "batch": (
        "main (float[2,3,4] b, float[3] w) => (y) { t = Transpose <perm = [0, 2, 1]> (b) y = MatMul (t, w) }",
        1,
    ),
    "f64": (
        "main (double[2,3] a64, double[2] v64) => (y) { t = Transpose <perm = [1, 0]> (a64) y = MatMul (t, v64) }",
        1,
    ),
    "lengths unknown": (f"main (float[m,n] a, float[k] v) => (y) {{ {T} y = MatMul (t, v) }}", 1),
    "two products": (
        f"{MAIN} {{ {T} p = MatMul (t, v) w = Neg (v) q = MatMul (t, w) y = Sub (p, q) }}",
        2,
    ),
    "another reader": (f"{MAIN} {{ {T} p = MatMul (t, v) q = ReduceSum (t) y = Sub (p, q) }}", 1),
    "scaled": (f"{MAIN} <float h = {{2}}> {{ {T} s = Mul (t, h) y = MatMul (s, v) }}", 1),
    "divided": (f"{MAIN} <float h = {{2}}> {{ {T} s = Div (t, h) y = MatMul (s, v) }}", 1),
    "handed on": (f"{MAIN} {{ {T} s = Identity (t) y = MatMul (s, v) }}", 1),
    "in a loop": (
        f"main (float[2,3] a, float[2] v, int64 n) => (y) {{ y = Loop (n, , v) <body = {STEP.format(T)}> }}",
        1,
    ),
    "fused in the file": (f"{MAIN} {{ y = com.microsoft.FusedMatMul <transA = 1> (a, v) }}", 1),
    "f16": (
        "main (float16[2,3] a16, float16[2] v16) => (y) { t = Transpose <perm = [1, 0]> (a16) y = MatMul (t, v16) }",
        0,
    ),
    "vector first": (
        "main (float[3,2] c, float[2] v) => (y) { t = Transpose <perm = [1, 0]> (c) y = MatMul (v, t) }",
        0,
    ),
    "column": (f"{MAIN} <int64[1] x = {{1}}> {{ {T} w = Unsqueeze (v, x) y = MatMul (t, w) }}", 0),
    "constant matrix": (
        f"main (float[2] v) => (y) <float[2,3] a = {{0, 1, 2, 3, 4, 5}}> {{ {T} y = MatMul (t, v) }}",
        0,
    ),
    "matrix is an output": (f"{MAIN.replace('(y)', '(y, t)')} {{ {T} y = MatMul (t, v) }}", 0),
    "other axes": (
        "main (float[2,3,4] b, float[4] w) => (y) { t = Transpose <perm = [1, 0, 2]> (b) y = MatMul (t, w) }",
        0,
    ),
    "another operation": (f"{MAIN} {{ {T} s = Relu (t) y = MatMul (s, v) }}", 0),
    "outside a loop": (
        f"main (float[2,3] a, float[2] v, int64 n) => (y) {{ {T} y = Loop (n, , v) <body = {STEP.format('')}> }}",
        0,
    ),
}
MATRIX = np.arange(6.0).reshape(2, 3)
VALUES = {
    "a": MATRIX.astype(np.float32),
    "a64": MATRIX,
    "a16": MATRIX.astype(np.float16),
    "c": MATRIX.reshape(3, 2).astype(np.float32),
    "b": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "n": np.array(2),
}


def _value(name: str, length: int) -> np.ndarray:
    vector = np.arange(1, length + 1)
    return (
        VALUES[name]
        if name in VALUES
        else vector.astype({"v64": np.float64, "v16": np.float16}.get(name, np.float32))
    )


@pytest.mark.parametrize(("text", "count"), CASES.values(), ids=CASES.keys())
def test_products_are_warned_of_where_the_runtime_is_wrong(text: str, count: int) -> None:
    proto = parser.parse_model(HEAD + text)
    dims = {
        one.name: [dim.dim_value for dim in one.type.tensor_type.shape.dim]
        for one in proto.graph.input
    }
    feeds = {name: _value(name, (lengths or [2])[-1] or 2) for name, lengths in dims.items()}
    model = proto.SerializeToString()
    loaded = loopscope.read_model(model)
    mine = loopscope.run(loaded, feeds).outputs[0]
    theirs = onnxruntime.InferenceSession(model).run(None, feeds)[0]
    assert len([one for one in loopscope.check(loaded).diagnostics if one.code == "LS924"]) == count
    if onnxruntime.__version__.startswith(("1.31.", "1.32.")):
        assert np.array_equal(mine, theirs) is (count == 0)
