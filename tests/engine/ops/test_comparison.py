"""Comparisons, logic and bits against OpenVINO and the worked examples of the spec."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ops.kernel_arithmetic import COMPUTED, COMPUTED_FLOATS
from tests.engine.ops.oracle import agree, ours

COMPARISONS = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
    "Less": operator.lt,
    "LessEqual": operator.le,
}
SHAPES = [((2, 3), (2, 3)), ((), ()), ((2, 1), (3,)), ((0, 3), (3,)), ((3,), ())]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.int32, np.int64, np.uint8, np.bool_], ids=lambda dtype: dtype.__name__
)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(
    name: str, dtype: type[np.generic], shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    generator = np.random.default_rng(1)
    agree(name, 1, [generator.integers(0, 3, shape).astype(dtype) for shape in shapes])


@pytest.mark.parametrize("element_type", sorted(COMPUTED - {ElementType.F8E8M0}, key=str), ids=str)
@pytest.mark.parametrize(("name", "function"), COMPARISONS.items())
def test_comparisons_of_every_type(
    name: str, function: Callable[[object, object], bool], element_type: ElementType
) -> None:
    left, right = [0, 1, 1, 2], [1, 1, 0, 2]
    expected = [function(a, b) for a, b in zip(left, right, strict=True)]
    arrays = [np.array(values, np.float32).astype(element_type.dtype) for values in (left, right)]
    got = ours(name, 1, arrays)[0]
    assert got.dtype == np.bool_
    assert got.tolist() == expected
    scalar = ours(name, 1, [arrays[0][0], arrays[1][0]])[0]
    assert scalar.dtype == np.bool_
    assert bool(scalar) == expected[0]


@pytest.mark.parametrize(("name", "function"), COMPARISONS.items())
def test_nan_compares_as_ieee_has_it(name: str, function: Callable[[object, object], bool]) -> None:
    """The CPU plugin calls NaN greater than NaN; the core and IEEE 754 do not."""
    nan = float("nan")
    got = ours(name, 1, [np.array([nan, nan, 1.0]), np.array([nan, 1.0, nan])])[0]
    assert got.tolist() == [function(nan, nan), function(nan, 1.0), function(1.0, nan)]


FLOATS = np.array([np.nan, np.inf, -np.inf, 0.0, -1.5], np.float32)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("IsNaN", {}),
        ("IsFinite", {}),
        ("IsInf", {}),
        ("IsInf", {"detect_negative": False}),
        ("IsInf", {"detect_positive": False}),
        ("IsInf", {"detect_negative": False, "detect_positive": False}),
    ],
    ids=str,
)
def test_kinds_of_floats(name: str, attributes: dict[str, object]) -> None:
    agree(name, 10, [FLOATS], attributes)
    agree(name, 10, [np.zeros((0, 2), np.float32)], attributes)


@pytest.mark.parametrize("element_type", sorted(COMPUTED_FLOATS, key=str), ids=str)
@pytest.mark.parametrize("name", ["IsNaN", "IsFinite", "IsInf"])
def test_kinds_of_small_floats(name: str, element_type: ElementType) -> None:
    data = FLOATS.astype(element_type.dtype)
    assert (
        ours(name, 10, [data])[0].tolist() == ours(name, 10, [data.astype(np.float32)])[0].tolist()
    )


@pytest.mark.parametrize("name", ["LogicalAnd", "LogicalOr", "LogicalXor"])
def test_logic(name: str) -> None:
    version = 2 if name == "LogicalXor" else 1
    left, right = np.array([[True], [False]]), np.array([True, False])
    agree(name, version, [left, right], opset=5)
    agree(name, version, [left[0, 0].reshape(()), right], opset=5)
    agree(name, version, [np.zeros((0, 1), np.bool_), right], opset=5)


def test_logical_not_and_the_old_xor() -> None:
    agree("LogicalNot", 1, [np.array([True, False])])
    agree("Xor", 1, [np.array([True, False, True]), np.array([True, True, False])])
    assert ours("LogicalNot", 1, [np.bool_(True)])[0].dtype == np.bool_


@pytest.mark.parametrize(
    "dtype",
    [np.int32, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.bool_],
    ids=lambda dtype: dtype.__name__,
)
@pytest.mark.parametrize("name", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bits(name: str, dtype: type[np.generic]) -> None:
    agree(
        name,
        13,
        [
            np.array([[21], [120], [0], [255]]).astype(dtype),
            np.array([3, 37, 0, 128]).astype(dtype),
        ],
    )


@pytest.mark.parametrize(
    "dtype",
    [np.int32, np.int8, np.uint8, np.int16, np.uint16, np.bool_],
    ids=lambda dtype: dtype.__name__,
)
def test_bitwise_not(dtype: type[np.generic]) -> None:
    agree("BitwiseNot", 13, [np.array([0, 1, 3, 255]).astype(dtype)])


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.uint8, np.int8], ids=lambda dtype: dtype.__name__
)
def test_shifts(dtype: type[np.generic]) -> None:
    data, shifts = np.array([1, 5, 0, 40]).astype(dtype), np.array([2, 1, 7, 0]).astype(dtype)
    assert ours("BitwiseLeftShift", 15, [data, shifts])[0].tolist() == [4, 10, 0, 40]
    assert ours("BitwiseRightShift", 15, [data, shifts])[0].tolist() == [0, 2, 0, 40]
    if dtype is np.int32:
        agree("BitwiseLeftShift", 15, [data, shifts])
        agree("BitwiseRightShift", 15, [np.array([-8, 9, 0, 40], np.int32), shifts])


def test_bits_of_narrow_integers_stay_in_their_type() -> None:
    i4, u4 = ElementType.I4.dtype, ElementType.U4.dtype
    left, right = np.array([7, -8, 5], np.int8), np.array([3, -1, 1], np.int8)
    for name, function in (
        ("BitwiseAnd", np.bitwise_and),
        ("BitwiseOr", np.bitwise_or),
        ("BitwiseXor", np.bitwise_xor),
    ):
        got = ours(name, 13, [left.astype(i4), right.astype(i4)])[0]
        assert got.dtype == i4
        assert got.astype(np.int8).tolist() == function(left, right).tolist()
    inverted = ours("BitwiseNot", 13, [np.array([0, 1, 15], np.uint8).astype(u4)])[0]
    assert inverted.dtype == u4
    assert inverted.astype(np.uint8).tolist() == [15, 14, 0]
