"""Numbers in ONNX models: what division and casts give, as the specification's tables and ONNX
Runtime have it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import openvino as ov
import pytest
from onnx import TensorProto, helper

import loopscope
from loopscope.errors import EngineError
from tests.engine.ops.oracle import Value
from tests.engine.ops.test_onnx_older import model, ran

SIGNED = [np.int8, np.int16, np.int32, np.int64]


@pytest.mark.parametrize("opset", [7, 13, 14])
@pytest.mark.parametrize("dtype", [*SIGNED, np.uint8, np.uint64], ids=lambda dtype: dtype.__name__)
def test_whole_numbers_are_divided_towards_zero(dtype: type[np.integer], opset: int) -> None:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    pairs = [(7, 2), (6, 3), (0, 5), (high, 3), (1, high), (low, 3), (low, low or 1)]
    if low:
        pairs += [
            (-7, 2),
            (7, -2),
            (-7, -2),
            (-6, 3),
            (0, -5),
            (-1, high),
            (1, low),
            (-1, low),
            (high, low),
            (low, high),
            (high, -1),
        ]
    one, other = (np.array(side, dtype) for side in zip(*pairs, strict=True))
    data = model("Div", opset, [one, other])
    (mine,) = ran(data, [one, other])
    assert mine.dtype == dtype
    # In Python's own numbers: before opset 14 ONNX Runtime divides no narrow and no unsigned ones.
    assert mine.tolist() == [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    if opset >= 14 or (np.dtype(dtype).itemsize >= 4 and low < 0):
        (theirs,) = onnxruntime.InferenceSession(data).run(None, {"x0": one, "x1": other})
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize(
    "axis",
    [np.array(0), np.array([1]), np.array([-1], np.int32)],
    ids=["a scalar", "of shape [1]", "from the end"],
)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int32, np.int64], ids=lambda dtype: dtype.__name__
)
def test_sums_so_far_are_those_of_onnx_runtime(
    dtype: type[np.number], axis: np.ndarray, exclusive: int, reverse: int
) -> None:
    """The onnx package takes only a scalar for the axis; exporters of old wrote one of shape
    [1].
    """
    given = [np.random.default_rng(0).normal(0, 9, (3, 4)).astype(dtype), axis]
    data = model("CumSum", 14, given, exclusive=exclusive, reverse=reverse)
    (mine,) = ran(data, given)
    (theirs,) = onnxruntime.InferenceSession(data).run(None, {"x0": given[0], "x1": given[1]})
    assert mine.dtype == theirs.dtype
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", SIGNED[1:], ids=lambda dtype: dtype.__name__)
def test_what_openvino_makes_of_the_division_of_whole_numbers(dtype: type[np.integer]) -> None:
    """It writes m_pythondiv true, which asks for the floor, whatever ONNX says.

    Its CPU plugin truncates all the same (but for i8 and u8, which it rounds to the nearest where a
    length is not fixed). So a converted file gives the floor here, as the page of Divide-1 says,
    while the ONNX file itself gives what ONNX says.
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
            onnxruntime.InferenceSession(model("Div", opset, [one, other])).run(
                None, {"x0": one, "x1": other}
            )


NARROW = {
    # name: its number in TensorProto, numpy's type, bits of the fraction, exponent of the smallest
    # normal number
    "e4m3fn": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, 3, -6),
    "e4m3fnuz": (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz, 3, -7),
    "e5m2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2, 2, -14),
    "e5m2fnuz": (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz, 2, -15),
}
WIDE = {
    "f16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "f32": (TensorProto.FLOAT, np.float32),
    "f64": (TensorProto.DOUBLE, np.float64),
    "i32": (TensorProto.INT32, np.int32),
}


def cast_and_back(source: int, target: int, opset: int, saturate: int) -> bytes:
    nodes = [
        helper.make_node("Cast", ["x"], ["y"], to=target, saturate=saturate),
        helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT),
    ]
    ends = [
        helper.make_tensor_value_info("x", source, [None]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [None]),
    ]
    graph = helper.make_graph(nodes, "cast", ends[:1], ends[1:])
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
    ).SerializeToString()
    return data


def by_the_table(x: float, narrow: str, saturate: int) -> float:
    """The two tables of the specification's page of Cast."""
    _, dtype, fraction, smallest = NARROW[narrow]
    largest = float(ml_dtypes.finfo(dtype).max)
    if math.isnan(x):
        return math.nan
    if math.isinf(x):
        rounded = x
    else:
        exponent = max(math.frexp(x)[1] - 1, smallest) - fraction
        rounded = float(
            round(Fraction(x) / Fraction(2) ** exponent) * Fraction(2) ** exponent
        )  # ties to even
    if abs(rounded) > largest:
        beyond = largest if saturate else math.inf if narrow == "e5m2" else math.nan
        return math.copysign(beyond, x)
    return abs(rounded) if rounded == 0 and narrow.endswith("uz") else math.copysign(rounded, x)


def difficult(narrow: str, source: type) -> np.ndarray:
    """All that the type holds, all halfway points and their neighbours, what lies beyond, in
    both signs.
    """
    codes = np.arange(256, dtype=np.uint8).view(NARROW[narrow][1]).astype(np.float64)
    held = np.unique(np.abs(codes[np.isfinite(codes)]))
    halfway = (held[1:] + held[:-1]) / 2
    step = held[-1] - held[-2]
    beside = [halfway * (1 + sign * 2.0**-bits) for sign in (1, -1) for bits in (7, 10, 23, 40)]
    beyond = held[-1] + step * np.arange(1, 33) / 16
    both = np.concatenate(
        [
            held,
            halfway,
            *beside,
            beyond,
            [held[-1] * 2, 65000, np.inf, np.nan, held[1] / 2, held[1] / 4],
        ]
    )
    both = np.concatenate([both, -both])
    if np.dtype(source).kind == "i":
        return np.unique(np.rint(both[np.isfinite(both)])).astype(source)
    with np.errstate(over="ignore"):
        return both.astype(source)


def what_the_runtime_has_otherwise(
    x: np.ndarray, narrow: str, source: str, saturate: int
) -> np.ndarray:
    """It rounds f64 twice (first to f32); without saturation it keeps the largest e4m3fn for what
    is rounded to the next number of that width, and makes NaN where e5m2 has the infinity.
    """
    size = np.abs(x.astype(np.float64))
    beyond = {"e4m3fn": (size > 464) & (size < 496), "e5m2": (size >= 61440) & (size < 65536)}.get(
        narrow, np.zeros(x.shape, np.bool_)
    )
    twice = (
        (x != x.astype(np.float32)) & np.isfinite(x.astype(np.float64))
        if source == "f64"
        else np.zeros(x.shape, np.bool_)
    )
    return twice | (beyond if not saturate else np.zeros(x.shape, np.bool_))


def same(one: Value, other: Value) -> Any:
    return ((one == other) & (np.signbit(one) == np.signbit(other))) | (
        np.isnan(one) & np.isnan(other)
    )


@pytest.mark.parametrize("opset", [19, 21, 23])
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", WIDE)
@pytest.mark.parametrize("narrow", NARROW)
def test_casts_to_8_bits_follow_the_specification(
    narrow: str, source: str, saturate: int, opset: int
) -> None:
    number, dtype = WIDE[source]
    x = difficult(narrow, dtype)
    data = cast_and_back(number, NARROW[narrow][0], opset, saturate)
    (mine,) = loopscope.run(loopscope.read_model(data), {"x": x}).outputs
    table = np.array([by_the_table(float(one), narrow, saturate) for one in x], np.float32)
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(table))
    assert same(mine, table).all(), x[~same(mine, table)]
    given = (
        onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(x.view(np.uint16), number)
        if source == "bf16"
        else onnxruntime.OrtValue.ortvalue_from_numpy(x)
    )
    theirs = onnxruntime.InferenceSession(data).run_with_ort_values(["z"], {"x": given})[0].numpy()
    agreed = same(mine, theirs)
    assert (agreed | what_the_runtime_has_otherwise(x, narrow, source, saturate)).all(), x[~agreed]


@pytest.mark.parametrize("source", WIDE)
@pytest.mark.parametrize("narrow", NARROW)
def test_casts_to_the_type_of_another_are_casts(narrow: str, source: str) -> None:
    number, dtype = WIDE[source]
    x = difficult(narrow, dtype)
    other = helper.make_tensor("other", NARROW[narrow][0], [1], b"\0", raw=True)
    nodes = [
        helper.make_node("CastLike", ["x", "other"], ["y"]),
        helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT),
    ]
    ends = [
        helper.make_tensor_value_info("x", number, [None]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [None]),
    ]
    graph = helper.make_graph(nodes, "cast", ends[:1], ends[1:], [other])
    data = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9
    ).SerializeToString()
    (mine,) = loopscope.run(loopscope.read_model(data), {"x": x}).outputs
    (cast,) = loopscope.run(
        loopscope.read_model(cast_and_back(number, NARROW[narrow][0], 19, 1)), {"x": x}
    ).outputs
    assert same(mine, cast).all(), x[~same(mine, cast)]


@pytest.mark.parametrize("narrow", NARROW)
def test_single_numbers_are_cast_like_many(narrow: str) -> None:
    many = difficult(narrow, np.float64)
    nodes = [
        helper.make_node("Cast", ["x"], ["y"], to=NARROW[narrow][0]),
        helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.DOUBLE, []),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, []),
    ]
    single = loopscope.read_model(
        helper.make_model(helper.make_graph(nodes, "cast", ends[:1], ends[1:])).SerializeToString()
    )
    for one in many[:: len(many) // 20]:
        (mine,) = loopscope.run(single, {"x": np.float64(one)}).outputs
        assert same(mine, np.float32(by_the_table(float(one), narrow, 1)))


WINDOWS: list[tuple[int, dict[str, list[int]], str]] = [
    (3, {}, "a window of 4 does not fit in a length of 3 padded by 0 and 0"),
    (4, {}, ""),
    (3, {"pads": [1, 0]}, ""),
    (6, {"dilations": [2]}, "a window of 7 does not fit in a length of 6 padded by 0 and 0"),
    (7, {"dilations": [2], "strides": [3]}, ""),
]


@pytest.mark.parametrize(("length", "attributes", "refused"), WINDOWS)
def test_a_window_that_does_not_fit_is_told(
    length: int, attributes: dict[str, Any], refused: str
) -> None:
    arrays = [
        np.arange(length, dtype=np.float32).reshape(1, 1, length),
        np.ones((1, 1, 4), np.float32),
    ]
    data = model("Conv", 11, arrays, **attributes)
    if refused:
        with pytest.raises(EngineError, match=refused):
            ran(data, arrays)
    else:
        (theirs,) = onnxruntime.InferenceSession(data).run(
            None, {f"x{number}": one for number, one in enumerate(arrays)}
        )
        np.testing.assert_array_equal(ran(data, arrays)[0], theirs)
