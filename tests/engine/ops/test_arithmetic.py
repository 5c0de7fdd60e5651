"""Arithmetic against OpenVINO, the spec's words, and plain Python numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import BroadcastableShapes, mutually_broadcastable_shapes

from loopscope.ir.element_type import ElementType
from loopscope.ops.kernel_arithmetic import COMPUTED, COMPUTED_FLOATS, COMPUTED_INTEGERS
from tests.draws import draws
from tests.engine.ops.oracle import agree, ours, references

RANDOM = np.random.default_rng(7)
BINARY = (
    "Add",
    "Divide",
    "FloorMod",
    "Maximum",
    "Minimum",
    "Mod",
    "Multiply",
    "Power",
    "SquaredDifference",
    "Subtract",
)
SHAPES = [
    ((2, 3), (2, 3)),
    ((), ()),
    ((), (2,)),
    ((2, 1, 3), (4, 1)),
    ((0, 3), (3,)),
    ((1,), (2, 0)),
    ((5,), ()),
]
UNARY = [
    ("Abs", 1, -9, 9),
    ("Acos", 1, -1, 1),
    ("Acosh", 4, 1, 9),
    ("Asin", 1, -1, 1),
    ("Asinh", 4, -9, 9),
    ("Atan", 1, -9, 9),
    ("Atanh", 4, -0.9, 0.9),
    ("Ceiling", 1, -9, 9),
    ("Cos", 1, -9, 9),
    ("Cosh", 1, -5, 5),
    ("Erf", 1, -3, 3),
    ("Floor", 1, -9, 9),
    ("Log", 1, 0.1, 9),
    ("Negative", 1, -9, 9),
    ("Sign", 1, -9, 9),
    ("Sin", 1, -9, 9),
    ("Sinh", 1, -5, 5),
    ("Sqrt", 1, 0, 9),
    ("Tan", 1, -1.4, 1.4),
    ("Tanh", 1, -9, 9),
]


def numbers(
    shape: tuple[int, ...], dtype: np.dtype | type, least: float = 1, most: float = 7
) -> np.ndarray:
    return RANDOM.uniform(least, most, shape).astype(dtype)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_shapes(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    agree(name, 1, [numbers(shape, np.float32) for shape in shapes])


@settings(max_examples=draws(40), deadline=None, derandomize=True)
@given(
    st.sampled_from(BINARY),
    mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0),
    st.sampled_from([np.float32, np.int32]),
)
def test_drawn_shapes_broadcast_as_in_openvino(
    name: str, shapes: BroadcastableShapes, dtype: type[np.generic]
) -> None:
    agree(name, 1, [numbers(shape, dtype) for shape in shapes.input_shapes])


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.int8, np.uint8], ids=lambda dtype: dtype.__name__
)
@pytest.mark.parametrize("name", BINARY)
def test_binary_integers(name: str, dtype: type[np.generic]) -> None:
    left, right = np.array([7, 3, 5, 1], dtype), np.array([2, 3, 1, 1], dtype)
    if name == "SquaredDifference" and dtype in (np.int8, np.uint8):
        # The CPU plugin gives 0 for every pair of 8-bit integers.
        np.testing.assert_array_equal(
            ours(name, 1, [left, right])[0], np.array([25, 0, 16, 0], dtype)
        )
    else:
        agree(name, 1, [left, right])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "element_type", sorted(COMPUTED_FLOATS - {ElementType.F8E8M0}, key=str), ids=str
)
def test_binary_small_floats_are_rounded_once(name: str, element_type: ElementType) -> None:
    left = np.array([1, 2, 3, 0.5, -2], np.float32).astype(element_type.dtype)
    right = np.array([1, 3, 2, 2, 4], np.float32).astype(element_type.dtype)
    exact = ours(name, 1, [left.astype(np.float64), right.astype(np.float64)])[0]
    np.testing.assert_array_equal(
        ours(name, 1, [left, right])[0].astype(np.float64),
        exact.astype(element_type.dtype).astype(np.float64),
    )


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("element_type", [ElementType.I4, ElementType.U4, ElementType.U2], ids=str)
def test_binary_small_integers_stay_in_their_type(name: str, element_type: ElementType) -> None:
    left, right = np.array([3, 1, 2], np.int8), np.array([1, 1, 2], np.int8)
    exact = ours(name, 1, [left, right])[0]
    got = ours(name, 1, [left.astype(element_type.dtype), right.astype(element_type.dtype)])[0]
    assert got.dtype == element_type.dtype
    np.testing.assert_array_equal(got, exact.astype(element_type.dtype))


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("Divide", {}, [-4, 3, 3, -4, -3, -2, 0, -1]),
        ("Divide", {"m_pythondiv": False}, [-3, 3, 3, -3, -2, -2, 0, 0]),
        ("Mod", {}, [-1, -1, 1, 1, -2, 0, 1, 1]),
        ("FloorMod", {}, [1, -1, 1, -1, 1, 0, 1, -4]),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8], ids=lambda dtype: dtype.__name__)
def test_signs_of_integer_division(
    name: str, attributes: dict[str, object], expected: list[int], dtype: type[np.generic]
) -> None:
    """The CPU plugin truncates even where m_pythondiv asks for the floor; spec and core round
    down, and so do we.
    """
    left, right = (
        np.array([-7, -7, 7, 7, -8, 6, 1, 1], dtype),
        np.array([2, -2, 2, -2, 3, -3, 5, -5], dtype),
    )
    texts = {key: str(value).lower() for key, value in attributes.items()}
    np.testing.assert_array_equal(ours(name, 1, [left, right], texts)[0], np.array(expected, dtype))
    for index in range(len(left)):
        assert ours(name, 1, [left[index], right[index]], texts)[0] == expected[index]
    if dtype is not np.int8:
        np.testing.assert_array_equal(references(name, 1, [left, right], attributes)[0], expected)


@pytest.mark.parametrize("name", ["Divide", "Mod", "FloorMod"])
def test_integer_division_by_zero_is_refused(name: str) -> None:
    """The spec leaves it undefined; OpenVINO's core raises for Divide and ends the process for
    Mod.
    """
    with pytest.raises(ValueError, match="1 of 2 divisors are 0"):
        ours(name, 1, [np.array([1, 2], np.int32), np.array([0, 1], np.int32)])


@pytest.mark.parametrize("name", ["Mod", "FloorMod"])
def test_float_remainders_have_python_signs(name: str) -> None:
    left, right = [5.5, -5.5, 5.5, -5.5, 1.0], [2.0, 2.0, -2.0, -2.0, 0.1]
    python = [math.fmod(a, b) if name == "Mod" else a % b for a, b in zip(left, right, strict=True)]
    np.testing.assert_allclose(
        ours(name, 1, [np.array(left), np.array(right)])[0], python, rtol=1e-12
    )


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0, 0.0], ids=str)
def test_power_of_a_constant_exponent(exponent: float) -> None:
    agree("Power", 1, [numbers((3, 4), np.float32), np.array(exponent, np.float32)])
    agree("Power", 1, [numbers((4,), np.float32), np.full((1, 1), exponent, np.float32)])


def test_integer_powers() -> None:
    got = ours(
        "Power",
        1,
        [np.array([2, -2, 3, -1, 1, 2], np.int32), np.array([3, 3, -1, -3, -2, 0], np.int32)],
    )[0]
    np.testing.assert_array_equal(got, np.array([8, -8, 0, -1, 1, 1], np.int32))
    with pytest.raises(ValueError, match="0 to a negative power"):
        ours("Power", 1, [np.array([0], np.int32), np.array([-1], np.int32)])


@pytest.mark.parametrize("name", BINARY)
def test_nan_is_kept(name: str) -> None:
    """The CPU plugin's Maximum and Minimum drop a NaN on one side only; numpy, ONNX and PyTorch
    keep it, and so do we.
    """
    got = ours(name, 1, [np.array([np.nan, 2.0], np.float32), np.array([2.0, np.nan], np.float32)])[
        0
    ]
    assert np.isnan(got).all()


@pytest.mark.parametrize("name", BINARY)
def test_broadcast_modes(name: str) -> None:
    left, right = numbers((2, 3), np.float32), numbers((3,), np.float32)
    whole = np.broadcast_to(right, (2, 3)).copy()
    expected = ours(name, 1, [left, whole])[0]
    np.testing.assert_array_equal(
        ours(name, 1, [left, whole], {"auto_broadcast": "none"})[0], expected
    )
    with pytest.raises(ValueError, match="auto_broadcast is 'none'"):
        ours(name, 1, [left, right], {"auto_broadcast": "none"})
    with pytest.raises(ValueError, match="'pdpd'"):
        ours(name, 1, [left, right], {"auto_broadcast": "pdpd"})


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 3), (1, 3), (3, 3, 3), ()], ids=str)
def test_pdpd_begins_with_the_first_axis(shape: tuple[int, ...]) -> None:
    """The CPU plugin lets them end with the same one where the operation does not commute."""
    agree(
        "Subtract",
        1,
        [numbers((3, 3, 3), np.float32), numbers(shape, np.float32)],
        {"auto_broadcast": "pdpd"},
        oracle=references,
    )


@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (1, 5, 1)], ids=str)
@pytest.mark.parametrize(("name", "version", "least", "most"), UNARY)
def test_unary(name: str, version: int, least: float, most: float, shape: tuple[int, ...]) -> None:
    agree(name, version, [numbers(shape, np.float32, least, most)], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "element_type", sorted(COMPUTED_FLOATS - {ElementType.F8E8M0}, key=str), ids=str
)
@pytest.mark.parametrize(("name", "version", "least", "most"), UNARY)
def test_unary_small_floats_are_rounded_once(
    name: str, version: int, least: float, most: float, element_type: ElementType
) -> None:
    data = numbers((20,), np.float32, least, most).astype(element_type.dtype)
    exact = ours(name, version, [data.astype(np.float64)])[0].astype(element_type.dtype)
    got = ours(name, version, [data])[0]
    assert got.dtype == element_type.dtype
    tolerance = 1e-6 if element_type is ElementType.F32 else 0.0
    np.testing.assert_allclose(
        got.astype(np.float64),
        exact.astype(np.float64),
        rtol=max(tolerance, 2e-3 if element_type is ElementType.F16 else tolerance),
    )


@pytest.mark.parametrize(
    ("name", "version", "data"),
    [
        ("Abs", 1, [-5, 0, 7]),
        ("Acos", 1, [-1, 0, 1, 5]),
        ("Acosh", 4, [-5, 1, 2, 7]),
        ("Asinh", 4, [-5, -1, 0, 7]),
        ("Atan", 1, [-5, 0, 3]),
        ("Ceiling", 1, [-5, 0, 7]),
        ("Cos", 1, [-5, -2, 0, 3]),
        ("Cosh", 1, [-5, 0, 3]),
        ("Erf", 1, [-5, 0, 1]),
        ("Floor", 1, [-5, 0, 7]),
        ("Log", 1, [-5, 0, 1, 2, 7]),
        ("Negative", 1, [-5, 0, 7]),
        ("Sign", 1, [-5, 0, 7]),
        ("Sin", 1, [-5, -2, 0, 1, 3]),
        ("Sinh", 1, [-5, 0, 3]),
        ("Sqrt", 1, [-5, 0, 2, 7, 9]),
        ("Tan", 1, [-5, -2, 0, 1, 7]),
        ("Tanh", 1, [-5, 0, 1]),
    ],
)
def test_unary_integers(name: str, version: int, data: list[int]) -> None:
    """The spec does not say how fractions become integers: the CPU rounds to the nearest."""
    agree(name, version, [np.array(data, np.int32)])


def test_every_computed_type_is_taken_by_every_unary_operation() -> None:
    for name, version, _, _ in UNARY:
        for element_type in COMPUTED:
            data = np.array([1, 1], np.float32).astype(element_type.dtype)
            assert ours(name, version, [data])[0].dtype == element_type.dtype, (name, element_type)


def test_large_integers_keep_their_digits() -> None:
    data = np.array([2**62 + 1, -(2**62) - 1], np.int64)
    for name in ("Abs", "Floor", "Ceiling"):
        np.testing.assert_array_equal(
            ours(name, 1, [data])[0], np.abs(data) if name == "Abs" else data
        )
    assert ours("Round", 5, [data])[0].tolist() == data.tolist()


@pytest.mark.parametrize("mode", ["half_to_even", "half_away_from_zero"])
def test_round(mode: str) -> None:
    """The CPU turns 0.49999997 into 1 when halves go away from zero; core and spec give 0."""
    data = np.array([-2.5, -1.5, -0.5, -0.3, 0.5, 1.5, 2.5, 0.7, np.inf, np.nan], np.float32)
    agree("Round", 5, [data], {"mode": mode})
    assert ours("Round", 5, [np.array([0.49999997], np.float32)], {"mode": mode})[0][0] == 0


def test_erfinv_is_the_inverse_of_erf() -> None:
    data = np.linspace(-0.99, 0.99, 41)
    np.testing.assert_allclose(
        ours("Erf", 1, ours("ErfInv", 17, [data]))[0], data, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(
        ours("ErfInv", 17, [np.array([-1.0, 0.0, 1.0])])[0], [-np.inf, 0.0, np.inf]
    )
    agree("ErfInv", 17, [data.astype(np.float32)], rtol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4,), 0), ((2, 3), 1), ((2, 3), -2), ((2, 0, 3), 2), ((1, 1), 0)], ids=str
)
def test_cumulative_sum(shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    attributes = {"exclusive": exclusive, "reverse": reverse}
    agree("CumSum", 3, [numbers(shape, np.float32), np.array(axis)], attributes, constant=[1])
    agree(
        "CumSum", 3, [numbers(shape, np.int32), np.array(axis, np.int32)], attributes, constant=[1]
    )


def test_cumulative_sum_of_small_types_stays_in_its_type() -> None:
    for element_type in COMPUTED_INTEGERS | {ElementType.BF16, ElementType.F16}:
        got = ours("CumSum", 3, [np.ones(3, np.int8).astype(element_type.dtype), np.array([0])])[0]
        assert got.dtype == element_type.dtype
    with pytest.raises(ValueError, match="axis 1 is out of range"):
        ours("CumSum", 3, [np.ones(3, np.float32), np.array(1)])
