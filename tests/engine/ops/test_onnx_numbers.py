"""Numbers in ONNX models: what division and casts give, as the specification's tables and ONNX Runtime have it."""

from __future__ import annotations

import numpy as np
import onnxruntime
import openvino as ov
import pytest

from engine.errors import EngineError
from tests.engine.ops.test_onnx_older import model, ran

SIGNED = [np.int8, np.int16, np.int32, np.int64]


@pytest.mark.parametrize("opset", [7, 13, 14])
@pytest.mark.parametrize("dtype", [*SIGNED, np.uint8, np.uint64], ids=lambda dtype: dtype.__name__)
def test_whole_numbers_are_divided_towards_zero(dtype: type[np.integer], opset: int) -> None:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    pairs = [(7, 2), (6, 3), (0, 5), (high, 3), (1, high), (low, 3), (low, low or 1)]
    if low:
        pairs += [(-7, 2), (7, -2), (-7, -2), (-6, 3), (0, -5), (-1, high), (1, low), (-1, low), (high, low), (low, high), (high, -1)]
    one, other = (np.array(side, dtype) for side in zip(*pairs, strict=True))
    data = model("Div", opset, [one, other])
    (mine,) = ran(data, [one, other])
    assert mine.dtype == dtype
    # In Python's own numbers: before opset 14 ONNX Runtime divides no narrow and no unsigned ones.
    assert mine.tolist() == [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    if opset >= 14 or (np.dtype(dtype).itemsize >= 4 and low < 0):
        (theirs,) = onnxruntime.InferenceSession(data).run(None, {"x0": one, "x1": other})
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", SIGNED[1:], ids=lambda dtype: dtype.__name__)
def test_what_openvino_makes_of_the_division_of_whole_numbers(dtype: type[np.integer]) -> None:
    """It writes m_pythondiv true, which asks for the floor, whatever ONNX says.

    Its CPU plugin truncates all the same (but for i8 and u8, which it rounds to the nearest where a length is not fixed). So a converted
    file gives the floor here, as the page of Divide-1 says, while the ONNX file itself gives what ONNX says.
    """
    one, other = np.array([7, -7, 7, -7], dtype), np.array([2, 2, -2, -2], dtype)
    converted = ov.Core().read_model(model("Div", 14, [one, other]))
    (divide,) = (node for node in converted.get_ops() if node.get_type_name() == "Divide")
    assert divide.get_attributes()["m_pythondiv"] is True
    got = ov.Core().compile_model(converted, "CPU")([one, other])[0]
    assert got.tolist() == [3, -3, -3, 3]


@pytest.mark.parametrize("opset", [6, 14])
def test_a_whole_number_divided_by_zero_is_refused(opset: int) -> None:
    one, other = np.array([1, 2]), np.array([0, 1])
    with pytest.raises(EngineError, match="integer division by zero: 1 of 2 divisors are 0"):
        ran(model("Div", opset, [one, other]), [one, other])
    if opset >= 7:
        with pytest.raises(Exception, match="Integer division by zero"):
            onnxruntime.InferenceSession(model("Div", opset, [one, other])).run(None, {"x0": one, "x1": other})
