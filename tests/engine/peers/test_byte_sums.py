"""Where ONNX Runtime sums products of bytes in 16 bits, a comparison says so beside the
difference, and nowhere else.
"""

from __future__ import annotations

import pytest

from loopscope.peers import inexact_products
from loopscope.peers.other_runtimes import Patience
from loopscope.peers.report import ValueDifference
from tests.engine.checks.test_byte_weights import model, product
from tests.engine.ops.byte_limits import pairs_saturate

_PATIENCE = Patience(60)
_THERE = ValueDifference("main/MatMulInteger_0", 1, "64770", "65534")


def test_the_processor_is_asked() -> None:
    assert inexact_products.sums_in_16_bits(_PATIENCE) is pairs_saturate()


@pytest.mark.parametrize(
    ("weights", "first", "saturates", "told"),
    [
        ((1, 127), _THERE, True, True),
        ((1, 127), None, True, True),
        ((1, 63), _THERE, True, False),
        ((1, 127), ValueDifference("main/other", 1, "1", "2"), True, False),
        ((1, 127), _THERE, False, False),
    ],
    ids=["at the product", "at an output", "7 bits", "elsewhere", "exact sums"],
)
def test_the_cause_is_told_of_weights_that_matter(
    weights: tuple[int, ...],
    first: ValueDifference | None,
    saturates: bool,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inexact_products, "sums_in_16_bits", lambda _: saturates)
    found = inexact_products.byte_sums_sentence(model(product(*weights)), first, _PATIENCE)
    assert ("as in MatMulInteger_0, in 16 bits" in found) is told
    assert bool(found) is told


@pytest.mark.parametrize("label", ["MatMul_2", "Add_3", "QuantizeLinear_4", "DequantizeLinear_5"])
def test_the_cause_is_told_of_what_is_rounded_after_a_product(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime joins the operations between DequantizeLinear and QuantizeLinear, so that the
    rounded value differs first.
    """
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    main (uint8[1,2] x) => (float[1,1] y) <int8[2,1] w = {1, 100}, float a = {1.0}, uint8 z = {0}, float b = {1.0}, int8 n = {0}> {
      left = DequantizeLinear (x, a, z)
      right = DequantizeLinear (w, b, n)
      product = MatMul (left, right)
      sum = Add (product, b)
      rounded = QuantizeLinear (sum, a, z)
      y = DequantizeLinear (rounded, a, z)
    }"""
    monkeypatch.setattr(inexact_products, "sums_in_16_bits", lambda _: True)
    found = inexact_products.byte_sums_sentence(
        model(text), ValueDifference(f"main/{label}", 1, "1", "2"), _PATIENCE
    )
    assert "as in MatMul_2, in 16 bits" in found
