"""What decided a condition in an ONNX model, whose logical operations have names and kernels of
their own.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope.explain.verdict import verdict
from tests.engine.read.onnx_models import read

ONNX = """
main (float x, float[3] v) => (float y) {
  zero = Constant <value_float = 0.0> ()
  two = Constant <value_float = 2.0> ()
  under = Less (x, two)
  over = Greater (x, zero)
  CONDITION
  y = If (c) <then_branch = yes () => (float a) { a = Identity (x) }, else_branch = no () => (float b) { b = Neg (x) }>
}
"""


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        (
            "c = And (under, over)",
            "then branch because `And_4` was true: `Less_2` tests `x` < 2, and `x` was 1; `Greater_3` tests `x` > 0, and `x` was 1",
        ),
        (
            "n = Not (over)  c = Or (n, under)",
            "then branch because `Or_5` was true: `Less_2` tests `x` < 2, and `x` was 1",
        ),
        (
            "c = Xor (under, over)",
            "else branch because `Xor_4` was false: `Less_2` tests `x` < 2, and `x` was 1; `Greater_3` tests `x` > 0, and `x` was 1",
        ),
        (
            "n = Not (over)  c = Where (under, n, over)",
            "else branch because `Where_5` was false: `Less_2` tests `x` < 2, and `x` was 1; `Greater_3` tests `x` > 0, and `x` was 1",
        ),
        (
            "i = Cast <to = 6> (over)  c = Cast <to = 9> (i)",
            "then branch because `Cast_5` was true: `Greater_3` tests `x` > 0, and `x` was 1",
        ),
        (
            "i = Identity (over)  c = Not (i)",
            "else branch because `Not_5` was false: `Greater_3` tests `x` > 0, and `x` was 1",
        ),
        (
            "u = Less (v, two)  i = Cast <to = 6> (u)  m = ReduceMin <keepdims = 0> (i)  c = Cast <to = 9> (m)",
            "else branch because `Cast_7` was false: `Less_4` tests `v`[1] < 2, and `v`[1] was 3",
        ),
    ],
)
def test_what_decided_in_onnx(condition: str, told: str) -> None:
    model = read(ONNX.replace("CONDITION", condition))
    debugger = loopscope.Debugger(model, {"x": np.float32(1), "v": np.array([1, 3, 1], np.float32)})
    debugger.run()
    address = next(one.address for one in debugger.control_flow)
    assert verdict(debugger, address).sentence == f"Took the {told}."


def test_a_question_about_several_elements_is_told_once() -> None:
    text = """
    main (float[4] v) => (float[N] y) {
      limit = Constant <value_float = 9.0> ()
      small = Less (v, limit)
      flags = Cast <to = 6> (small)
      all = ReduceMin <keepdims = 0> (flags)
      c = Cast <to = 9> (all)
      y = If (c) <then_branch = yes () => (float[4] a) { a = Identity (v) }, else_branch = no () => (float[4] b) { b = Neg (v) }>
    }"""
    debugger = loopscope.Debugger(read(text), {"v": np.array([1, 2, 3, 4], np.float32)})
    debugger.run()
    assert verdict(debugger, "main/If_5").sentence.count(" asks ") <= 1
