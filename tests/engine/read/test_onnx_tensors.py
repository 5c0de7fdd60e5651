"""The data of ONNX tensors is what onnx itself makes of it, however the file writes it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper

from loopscope.read.onnx.tensors_and_types import ExternalData, array, constant

KINDS: dict[int, st.SearchStrategy[float]] = {
    TensorProto.FLOAT: st.floats(width=32),
    TensorProto.DOUBLE: st.floats(),
    TensorProto.INT32: st.integers(-(2**31), 2**31 - 1),
    TensorProto.INT64: st.integers(-(2**63), 2**63 - 1),
    TensorProto.INT8: st.integers(-128, 127),
    TensorProto.BOOL: st.integers(0, 1),
    TensorProto.UINT64: st.integers(0, 2**64 - 1),
    TensorProto.FLOAT16: st.integers(0, 2**16 - 1),
}
FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT64: "uint64_data",
}
NOWHERE = ExternalData(None, None)


def listed(kind: int, numbers: list[float], dims: list[int]) -> TensorProto:
    """A tensor that says its numbers one by one."""
    tensor = TensorProto(data_type=kind, dims=dims)
    getattr(tensor, FIELDS.get(kind, "int32_data")).extend(numbers)
    return tensor


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), length=st.sampled_from((0, 1, 2, 63, 64, 65, 200)))
def test_numbers_one_by_one_are_those_of_onnx(kind: int, data: st.DataObject, length: int) -> None:
    few = data.draw(st.lists(KINDS[kind], min_size=1, max_size=3))
    tensor = listed(kind, (few * length)[:length], [length])
    mine, theirs = array(constant(tensor, NOWHERE)), numpy_helper.to_array(tensor)
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("numbers", [[], [1.0], [1.0, 2.0, 3.0]])
def test_too_few_or_too_many_numbers_are_refused(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match=r"not a tensor of shape \[2\]"):
        constant(listed(TensorProto.FLOAT, numbers, [2]), NOWHERE)


def test_a_part_of_a_tensor_is_refused() -> None:
    tensor = listed(TensorProto.FLOAT, [1.0, 2.0], [2])
    tensor.segment.end = 1
    with pytest.raises(ValueError, match="segment"):
        constant(tensor, NOWHERE)


def test_one_number_is_a_scalar() -> None:
    assert np.array_equal(
        array(constant(listed(TensorProto.INT64, [-1], []), NOWHERE)), np.int64(-1)
    )
