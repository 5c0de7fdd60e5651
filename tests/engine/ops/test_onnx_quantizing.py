"""ONNX's quantizing operations as its definition has them; ONNX Runtime is the oracle, and what
it does otherwise is said.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopscope
from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case, by_runtime

_DICE = np.random.default_rng(13)
BYTES = (np.uint8, np.int8)
WORDS = (*BYTES, np.uint16, np.int16)
FLOATS = (np.float32, np.float16)


def reals(*shape: int, scale: float = 8) -> np.ndarray:
    return (_DICE.normal(size=shape) * scale).astype(np.float32)


def steps(*shape: int) -> np.ndarray:
    return (_DICE.random(shape) * 0.1 + 0.02).astype(np.float32)


def whole(dtype: Any, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return _DICE.integers(limits.min, limits.max + 1, shape).astype(dtype)


def real(value: float | list[float], dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def node(
    type: str, inputs: list[np.ndarray | None], opset: int = 21, outputs: int = 1, **attributes: Any
) -> Case:
    return Case(type, inputs, attributes, (True,) * outputs, domain="", opset=opset)


CUBE = reals(3, 4, 6)
HALVES = np.arange(-600, 600, dtype=np.float32) / 2
FAR = np.array([1e10, -1e10, np.inf, -np.inf, np.nan, 3e38, 0, -0.0, 2.0**31, 127.5], np.float32)


def _quantizing() -> dict[str, Case]:
    cases = {}
    for dtype in WORDS:
        name, narrow = np.dtype(dtype).name, np.dtype(dtype).itemsize == 1
        for zero in (0, 3, 8):
            for opset in (10, 13, 19, 21, 23, 25) if narrow else (21, 25):
                cases[f"halves, {name} {zero}, {opset}"] = node(
                    "QuantizeLinear", [HALVES, real(1), np.array(zero, dtype)], opset
                )
                cases[f"far, {name} {zero}, {opset}"] = node(
                    "QuantizeLinear", [FAR, real(0.3), np.array(zero, dtype)], opset
                )
        for kind in FLOATS:
            data, of = CUBE.astype(kind), f"{name} of {np.dtype(kind).name}"
            cases[f"of {of}"] = node("QuantizeLinear", [data, real(0.1, kind), np.array(3, dtype)])
            for axis in (0, 1, -1):
                length = CUBE.shape[axis]
                parameters = [steps(length).astype(kind), whole(dtype, length)]
                cases[f"along {axis}, {of}"] = node(
                    "QuantizeLinear", [data, *parameters], axis=axis
                )
                cases[f"back along {axis}, {of}"] = node(
                    "DequantizeLinear", [whole(dtype, *CUBE.shape), *parameters], axis=axis
                )
                cases[f"back along {axis}, no zero points, {of}"] = node(
                    "DequantizeLinear", [whole(dtype, *CUBE.shape), parameters[0]], axis=axis
                )
            for axis, block in ((2, 2), (2, 4), (0, 2), (1, 3)):
                shape = [
                    -(-length // block) if place == axis else length
                    for place, length in enumerate(CUBE.shape)
                ]
                parameters = [steps(*shape).astype(kind), whole(dtype, *shape)]
                options = {"axis": axis, "block_size": block}
                cases[f"blocks of {block} along {axis}, {of}"] = node(
                    "QuantizeLinear", [data, *parameters], **options
                )
                cases[f"back by blocks of {block} along {axis}, {of}"] = node(
                    "DequantizeLinear", [whole(dtype, *CUBE.shape), *parameters], **options
                )
    return cases


DEEP = np.array([2**31 - 1, -(2**31), 2**24 + 1, 123456789, -7], np.int32)
QUANTIZING = {
    **_quantizing(),
    "i32 back": node("DequantizeLinear", [DEEP, real(1e-6)]),
    "i32 back, by places": node("DequantizeLinear", [DEEP, steps(5)], axis=0),
    "i32 back to f16": node("DequantizeLinear", [DEEP, real(1e-6, np.float16)]),
    "i16 far from its zero point": node(
        "DequantizeLinear", [whole(np.int16, 90), real(0.01), np.array(-32000, np.int16)]
    ),
    "a type that is named": node(
        "QuantizeLinear", [CUBE, real(0.1)], output_dtype=TensorProto.INT16
    ),
    "one scale in a list": node("QuantizeLinear", [CUBE, real([0.1]), np.array([3], np.uint8)], 13),
    "one scale in a list, back": node(
        "DequantizeLinear", [whole(np.uint8, 3, 4), real([0.1]), np.array([3], np.uint8)], 13
    ),
    "a number": node("QuantizeLinear", [real(4.6), real(0.1)], 13),
    "a number, back": node("DequantizeLinear", [np.array(7, np.int8), real(0.1)], 13),
    "nothing": node("QuantizeLinear", [reals(0, 3), real(0.1)], 13),
    **{
        f"by itself: {name}": node("DynamicQuantizeLinear", [data], 11, outputs=3)
        for name, data in {
            "any": CUBE,
            "above 0": np.abs(CUBE) + 3,
            "below 0": -np.abs(CUBE) - 3,
            "zeros": CUBE * 0,
            "one": CUBE[:1, :1, :1],
            "halves": np.array([0, 0.5, 1.5, 2.5, 3.5, 255, -0.0], np.float32),
            "tiny": CUBE * np.float32(1e-39),
            "without axes": real(-3),
        }.items()
    },
}


@pytest.mark.parametrize("case", QUANTIZING.values(), ids=QUANTIZING.keys())
def test_quanta_and_back_as_the_runtime(case: Case) -> None:
    case.agree()


POOLS: tuple[dict[str, Any], ...] = (
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [7, 7]},
    {"kernel_shape": [3, 2], "dilations": [2, 3], "count_include_pad": 1},
)


@pytest.mark.parametrize("opset", [11, 18, 19, 22])
@pytest.mark.parametrize("window", POOLS, ids=str)
def test_means_of_quanta_have_the_bits_of_the_runtime(window: dict[str, Any], opset: int) -> None:
    """Many lie half way between two quanta: the last bit of the sum decides to which one a
    quantizer rounds them.
    """
    data = (whole(np.uint8, 2, 8, 16, 15).astype(np.float32) - 14) * np.float32(0.02045273)
    case = node(
        "AveragePool",
        [data],
        opset,
        **{name: value for name, value in window.items() if name != "dilations" or opset >= 19},
    )
    np.testing.assert_array_equal(case.here()[0], case.there()[0])


NARROW = {
    "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "u2": ml_dtypes.uint2,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}


@pytest.mark.parametrize("zero", [None, 1])
@pytest.mark.parametrize("name", NARROW)
def test_types_narrower_than_a_byte_and_narrow_floats(name: str, zero: int | None) -> None:
    """There and back, in one model: Python knows no arrays of them as the runtime's inputs and
    outputs.
    """
    dtype = np.dtype(NARROW[name])
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    zero = 0 if zero and name.startswith("f") else zero
    initializers = [helper.make_tensor("s", TensorProto.FLOAT, [], [0.7])]
    initializers += [] if zero is None else [helper.make_tensor("z", kind, [], [zero])]
    parameters = ["s"] if zero is None else ["s", "z"]
    graph = helper.make_graph(
        [
            helper.make_node("QuantizeLinear", ["x", *parameters], ["q"], output_dtype=kind),
            helper.make_node("DequantizeLinear", ["q", *parameters], ["y"]),
        ],
        "there and back",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])],
        [onnx.ValueInfoProto(name="y")],
        initializers,
    )
    data = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13
    ).SerializeToString()
    feeds = {
        "x": np.concatenate([reals(40), np.array([1.05, 1.75, -0.35, 0, 6e4, -6e4], np.float32)])
    }
    (mine,) = loopscope.run(loopscope.read_model(data), feeds).outputs
    (theirs,) = by_runtime(data, feeds)
    np.testing.assert_array_equal(mine, theirs)
    (ends,) = loopscope.run(
        loopscope.read_model(data), {"x": np.array([1e10, -1e10, np.inf, -np.inf], np.float32)}
    ).outputs
    # Of u2 ONNX Runtime makes 0 of what is above 2**31, of the others the greatest.
    assert ends.tolist() == [mine.max(), mine.min()] * 2


def test_from_opset_23_the_type_of_the_scale_divides() -> None:
    """ONNX: "the type of y_scale determines the precision of the division", or ``precision``.
    ONNX Runtime goes on to divide in f32.
    """
    data, scale = np.array([5.1484375], np.float16), real(0.1, np.float16)
    exact = float(data[0]) / float(scale)
    assert round(exact) != round(float(data[0] / scale))
    assert node("QuantizeLinear", [data, scale], 21).here()[0] == round(exact)
    assert node("QuantizeLinear", [data, scale], 23).here()[0] == round(float(data[0] / scale))
    assert node("QuantizeLinear", [data, scale], 23, precision=TensorProto.FLOAT).here()[
        0
    ] == round(exact)


@pytest.mark.parametrize("dtype", WORDS)
def test_f16_out_of_range_saturates(dtype: Any) -> None:
    """ONNX Runtime makes the least number of an infinity above, of f16 only; ONNX says that it
    saturates.
    """
    data = np.array([np.inf, -np.inf, 6e4, -6e4], np.float16)
    (made,) = node("QuantizeLinear", [data, real(0.1, np.float16), np.array(3, dtype)]).here()
    limits = np.iinfo(dtype)
    assert made.tolist() == [limits.max, limits.min, limits.max, limits.min]


def test_what_is_no_number_stays_so_in_a_scale() -> None:
    """ONNX Runtime passes some over in small tensors; where its scale is no number either, its
    zero point is the greatest.
    """
    _, scale, zero_point = node(
        "DynamicQuantizeLinear", [np.array([1, np.nan], np.float32)], 11, outputs=3
    ).here()
    assert math.isnan(scale)
    assert zero_point == 255


REFUSED = {
    "scales of another length": (
        node("QuantizeLinear", [CUBE, steps(5)], axis=1),
        r"\[5\] scales or zero points, expected one, or the 4 of axis 1",
    ),
    "blocks of another shape": (
        node("DequantizeLinear", [whole(np.int8, 4, 6), steps(4, 4)], axis=1, block_size=2),
        r"\[4, 4\] scales or zero points, expected \[4, 3\]",
    ),
    "an axis that is not there": (node("QuantizeLinear", [CUBE, steps(4)], axis=3), "axis 3"),
    "two types": (
        node(
            "QuantizeLinear", [CUBE, real(1), np.array(0, np.int8)], output_dtype=TensorProto.UINT8
        ),
        "output_dtype is u8 and the zero point is i8",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        case.here()
