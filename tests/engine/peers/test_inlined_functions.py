"""Values inside functions of an ONNX model are compared with ONNX Runtime, wherever the call is."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope.peers import against

HEAD = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>'
SCALE = """<domain: "local", opset_import: ["" : 17]>
scale <by: float = 2.0> (v, unused) => (w) { factor = Constant <value_float: float = @by> () m = Mul (v, factor) w = Tanh (m) }"""
REPEAT = """<domain: "local", opset_import: ["" : 17, "local" : 1]>
repeat (v) => (w, same) {
  n = Constant <value_int = 3> ()
  w = Loop (n, , v) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) { c2 = Identity (c) t = Mul (s, v) s2 = Sqrt (t) }>
  same = Identity (v)
}"""
OUTER = """<domain: "local", opset_import: ["" : 17, "local" : 1]>
outer (v) => (w) { once = local.scale <by = 3.0> (v) w = local.scale (once) }"""
LOOP = (
    "<body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) {{ c2 = Identity (c) {} }}>"
)
CASES = {
    "a call": ("y = local.scale (x)", SCALE, 1),
    "two calls": ("a = local.scale <by = 0.5> (x) y = local.scale (a)", SCALE, 2),
    "a call in a loop": (
        f"n = Constant <value_int = 4> () y = Loop (n, , x) {LOOP.format('s2 = local.scale (s)')}",
        SCALE,
        4,
    ),
    "a loop in a call, beside a loop": (
        f"n = Constant <value_int = 2> () a = Loop (n, , x) {LOOP.format('s2 = Neg (s)')} y, z = local.repeat (a)",
        REPEAT,
        3,
    ),
    "a call in a call": ("y = local.outer (x)", f"{SCALE}\n{OUTER}", 2),
    "a call in a branch": (
        (
            "b = Constant <value = bool {1}> () y = If (b) <then_branch = t () => (float[2] p) { p = local.scale (x) },"
            " else_branch = e () => (float[2] q) { q = Neg (x) }>"
        ),
        SCALE,
        1,
    ),
}


@pytest.mark.parametrize(("text", "functions", "times"), CASES.values(), ids=CASES.keys())
def test_values_in_functions_are_compared(text: str, functions: str, times: int) -> None:
    document = parser.parse_model(
        f"{HEAD} main (float[2] x) => (float[2] y) {{ {text} }}\n{functions}"
    ).SerializeToString()
    inputs = {"x": np.array([0.5, 0.25], np.float32)}
    debugger = loopscope.Debugger(loopscope.read_model(document), inputs)
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    report = against(debugger, inputs, document=document)
    assert report.refused == ""
    assert report.agrees, report.sentence
    assert "in a function" not in report.left_out
    assert report.values >= 3 * times
