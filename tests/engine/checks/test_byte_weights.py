"""Weights of 8 bits: the rule names them where ONNX Runtime multiplies bytes, and where it is
silent the runtime is exact everywhere.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import loopscope
from loopscope.checks.check import check
from loopscope.checks.diagnostic import Severity
from loopscope.checks.rules import onnxruntime_results
from loopscope.checks.rules.onnxruntime_results import SEVEN_BITS
from loopscope.ops.catalogue import CATALOGUE

_HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
_SCALES = "float a = {0.5}, float b = {0.5}, uint8 z = {3}, int8 n = {0}"


def product(*weights: int, kind: str = "int8") -> str:
    given = ", ".join(map(str, weights))
    constant = f"<{kind}[{len(weights)},1] w = {{{given}}}>"
    return f"{_HEAD}\nmain (uint8[1,{len(weights)}] x) => (int32[1,1] y) {constant} {{ y = MatMulInteger (x, w) }}"


_DEQUANTIZED = f"""{_HEAD}
main (uint8[1,2] x) => (float[1,1] y) <int8[2,1] w = {{1, 100}}, {_SCALES}> {{
  left = DequantizeLinear (x, a, z)
  right = DequantizeLinear (w, b, n)
  y = MatMul (left, right)
}}"""
_HALF_DEQUANTIZED = f"""{_HEAD}
main (float[1,2] x) => (float[1,1] y) <int8[2,1] w = {{1, 100}}, {_SCALES}> {{
  right = DequantizeLinear (w, b, n)
  y = MatMul (x, right)
}}"""
_IN_A_LOOP = f"""{_HEAD}
main (uint8[1,2] x) => (float[1,2] y) <int8[2,2] w = {{1, 100, 2, 3}}, float b = {{0.5}}, int64 m = {{2}}, bool g = {{1}}> {{
  s = Cast <to = 1> (x)
  y = Loop (m, g, s) <body = step (int64 i, bool go, float[1,2] v) => (bool again, float[1,2] o) {{
    again = Identity (go)
    o = com.microsoft.DynamicQuantizeMatMul (v, w, b)
  }}>
}}"""
CASES = {
    "all 8 bits": (product(1, 127), 1),
    "the least": (product(-128, 5), 1),
    "7 bits": (product(*SEVEN_BITS), 0),
    "unsigned": (product(1, 255, kind="uint8"), 0),
    "given in each run": (
        f"{_HEAD}\nmain (uint8[1,2] x, int8[2,1] w) => (int32[1,1] y) {{ y = MatMulInteger (x, w) }}",
        0,
    ),
    "dequantized on both sides": (_DEQUANTIZED, 1),
    "dequantized on one side": (_HALF_DEQUANTIZED, 0),
    "in a loop": (_IN_A_LOOP, 1),
}


def model(text: str) -> loopscope.Model:
    return loopscope.read_model(onnx.parser.parse_model(text).SerializeToString())


@pytest.mark.parametrize(("text", "found"), CASES.values(), ids=CASES.keys())
def test_signed_weights_beyond_seven_bits_are_named(text: str, found: int) -> None:
    assert [
        one.code for one in check(model(text), CATALOGUE).diagnostics if one.code == "LS921"
    ] == ["LS921"] * found


@pytest.mark.parametrize(("lacks", "severity"), [(True, Severity.WARNING), (False, Severity.NOTE)])
def test_it_is_a_warning_on_a_processor_without_the_instructions(
    monkeypatch: pytest.MonkeyPatch, lacks: bool, severity: Severity
) -> None:
    monkeypatch.setattr(onnxruntime_results, "lacks_vnni", lambda: lacks)
    (finding,) = (
        one for one in check(model(product(1, 127)), CATALOGUE).diagnostics if one.code == "LS921"
    )
    assert finding.severity is severity
    assert ("This processor has no VNNI" in finding.message) is lacks


@pytest.mark.parametrize("weight", SEVEN_BITS)
def test_the_runtime_is_exact_where_the_rule_is_silent(weight: int) -> None:
    """On any processor; with 127 in place of 63 it gives 65534 for 129540 on x64 without VNNI."""
    data = onnx.parser.parse_model(product(*[weight] * 4)).SerializeToString()
    highest = {"x": np.full((1, 4), 255, np.uint8)}
    (theirs,) = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(
        None, highest
    )
    (ours,) = loopscope.run(loopscope.read_model(data), highest).outputs
    assert theirs.item() == ours.item() == 4 * 255 * weight
