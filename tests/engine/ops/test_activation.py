"""Activations against OpenVINO and the spec's formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import AttributeProblem
from loopscope.ops.kernel_arithmetic import COMPUTED_FLOATS
from tests.engine.ops.oracle import agree, ours

SPREAD = np.array([-100, -8, -3.5, -1, -0.25, -0.0, 0.3, 1, 2.5, 3, 7, 90], np.float32)
SIMPLE = [
    ("Elu", 1, {"alpha": 1.0}),
    ("Elu", 1, {"alpha": 0.3}),
    ("Exp", 1, {}),
    ("Gelu", 2, {}),
    ("Gelu", 7, {}),
    ("Gelu", 7, {"approximation_mode": "TANH"}),
    ("HSigmoid", 5, {}),
    ("HSwish", 4, {}),
    ("Identity", 16, {}),
    ("Mish", 4, {}),
    ("ReLU", 1, {}),
    ("Sigmoid", 1, {}),
    ("SoftPlus", 4, {}),
    ("SoftSign", 9, {}),
    ("Swish", 4, {}),
    ("Clamp", 1, {"min": -1.5, "max": 2.25}),
]
SHAPES = [(12,), (3, 4), (2, 1, 6), (1,), (), (0,), (2, 0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "version", "attributes"), SIMPLE, ids=str)
def test_elementwise(
    name: str, version: int, attributes: dict[str, object], shape: tuple[int, ...]
) -> None:
    agree(name, version, [np.resize(SPREAD, shape)], attributes, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("name", "version", "attributes"), [one for one in SIMPLE if one[0] != "Exp"], ids=str
)
def test_no_product_on_the_way_overflows(
    name: str, version: int, attributes: dict[str, object]
) -> None:
    """OpenVINO's CPU gives infinity for an exact Gelu of these."""
    most = np.array([np.finfo(np.float32).max, 2e38, -2e38, -np.finfo(np.float32).max], np.float32)
    texts = {key: str(value) for key, value in attributes.items()}
    exact = ours(name, version, [most.astype(np.float64)], texts)[0]
    np.testing.assert_allclose(ours(name, version, [most], texts)[0], exact, rtol=1e-6)


@pytest.mark.parametrize(
    "element_type", sorted(COMPUTED_FLOATS - {ElementType.F8E8M0}, key=str), ids=str
)
@pytest.mark.parametrize(("name", "version", "attributes"), SIMPLE, ids=str)
def test_small_floats_are_rounded_once(
    name: str, version: int, attributes: dict[str, object], element_type: ElementType
) -> None:
    data = np.clip(SPREAD, -5, 5).astype(element_type.dtype)
    texts = {key: str(value) for key, value in attributes.items()}
    exact = (
        ours(name, version, [data.astype(np.float64)], texts)[0]
        .astype(element_type.dtype)
        .astype(np.float64)
    )
    got = ours(name, version, [data], texts)[0]
    assert got.dtype == element_type.dtype
    step = {
        ElementType.F64: 1e-14,
        ElementType.F32: 2e-6,
        ElementType.F16: 1e-3,
        ElementType.BF16: 8e-3,
    }.get(element_type, 0.3)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=step, atol=step)


@pytest.mark.parametrize(
    ("name", "version"),
    [("Elu", 1), ("Exp", 1), ("HSigmoid", 5), ("HSwish", 4), ("ReLU", 1), ("Sigmoid", 1)],
)
def test_integers_are_rounded_as_on_the_cpu(name: str, version: int) -> None:
    agree(
        name,
        version,
        [np.array([-5, -2, -1, 0, 1, 2, 3, 7], np.int32)],
        {"alpha": 1.0} if name == "Elu" else {},
    )


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.uint8, np.int8], ids=lambda dtype: dtype.__name__
)
@pytest.mark.parametrize(("least", "most"), [(1.2, 5.8), (-1e30, 1e30), (0.0, 4.0), (2.5, 300.0)])
def test_clamp_rounds_its_bounds_inwards_for_integers(
    dtype: type[np.generic], least: float, most: float
) -> None:
    """The CPU plugin cuts the bounds of 8-bit integers off towards zero; the note of the spec
    says ceil and floor.
    """
    data = np.array([0, 1, 2, 5, 6, 7, 100], dtype)
    expected = [min(max(item, least), most) for item in data.tolist()]
    inwards = [math.ceil(item) if item == least else math.floor(item) for item in expected]
    texts = {"min": str(least), "max": str(most)}
    np.testing.assert_array_equal(ours("Clamp", 1, [data], texts)[0], np.array(inwards, dtype))
    if dtype in (np.int32, np.int64):
        agree("Clamp", 1, [data], {"min": least, "max": most})


def test_clamp_keeps_nan_and_obeys_the_greater_bound_last() -> None:
    got = ours(
        "Clamp", 1, [np.array([np.nan, 5.0, -5.0], np.float32)], {"min": "-1", "max": "inf"}
    )[0]
    np.testing.assert_array_equal(got, np.array([np.nan, 5, -1], np.float32))


@pytest.mark.parametrize(
    ("data", "slope"),
    [
        ((4,), (1,)),
        ((4,), (4,)),
        ((2, 3), (3,)),
        ((2, 3, 4), (3,)),
        ((2, 3, 4), (1,)),
        ((2, 3, 4, 5), (3,)),
        ((2, 3, 4), (3, 1)),
        ((2, 3, 4), (2, 1, 4)),
    ],
    ids=str,
)
def test_prelu(data: tuple[int, ...], slope: tuple[int, ...]) -> None:
    generator = np.random.default_rng(3)
    agree(
        "PReLU",
        1,
        [
            generator.normal(size=data).astype(np.float32),
            generator.normal(size=slope).astype(np.float32),
        ],
        constant=[1],
    )


def test_prelu_of_a_square_takes_the_slope_by_channel() -> None:
    """With data (2, 3, 3) and slope (3) the note of the spec decides for the second dimension,
    not for numpy's last.
    """
    got = ours("PReLU", 1, [-np.ones((2, 3, 3), np.float32), np.array([1, 2, 3], np.float32)])[0]
    np.testing.assert_array_equal(got[0], [[-1, -1, -1], [-2, -2, -2], [-3, -3, -3]])
    with pytest.raises(ValueError, match="does not fit"):
        ours("PReLU", 1, [np.ones(3, np.float32), np.ones((2, 3), np.float32)])


def test_operations_with_scalar_inputs() -> None:
    def scalar(value: float) -> np.ndarray:
        return np.array(value, np.float32)

    agree("HardSigmoid", 1, [SPREAD, scalar(0.2), scalar(0.5)], constant=[1, 2])
    agree("Selu", 1, [SPREAD, scalar(1.6733), scalar(1.0507)], constant=[1, 2])
    agree(
        "Selu",
        1,
        [SPREAD, np.array([1.6733], np.float32), np.array([1.0507], np.float32)],
        constant=[1, 2],
    )
    agree("Swish", 4, [SPREAD, scalar(1.7)], constant=[1])
    with pytest.raises(ValueError, match="one element"):
        ours("Selu", 1, [SPREAD, np.ones(2, np.float32), scalar(1)])


@pytest.mark.parametrize("scale", [1.0, 50.0])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((4, 5), 1), ((4, 5), 0), ((2, 3, 4), 1), ((1, 1), 1), ((2, 3, 4, 5), 3)],
    ids=str,
)
def test_softmax(shape: tuple[int, ...], axis: int, scale: float) -> None:
    data = (np.random.default_rng(5).normal(size=shape) * scale).astype(np.float32)
    agree("SoftMax", 1, [data], {"axis": axis})
    for signed in (axis, axis - len(shape)):
        agree("SoftMax", 8, [data], {"axis": signed})
        agree("LogSoftmax", 5, [data], {"axis": signed}, rtol=1e-4, atol=1e-5)


def test_softmax_corners() -> None:
    assert ours("SoftMax", 8, [np.zeros((2, 0), np.float32)], {"axis": "1"})[0].shape == (2, 0)
    np.testing.assert_array_equal(
        ours("SoftMax", 1, [np.zeros((2, 4), np.float32)])[0], np.full((2, 4), 0.25, np.float32)
    )
    np.testing.assert_array_equal(
        ours("SoftMax", 8, [np.array([[-np.inf, 0.0]], np.float32)], {"axis": "-1"})[0], [[0, 1]]
    )
    with pytest.raises(ValueError, match="axis 2 is out of range"):
        ours("SoftMax", 8, [np.zeros((2, 4), np.float32)], {"axis": "2"})
    with pytest.raises(AttributeProblem, match="'axis'"):
        ours("SoftMax", 1, [np.zeros((2, 4), np.float32)], {"axis": "-1"})
    with pytest.raises(AttributeProblem, match="'alpha'"):
        ours("Elu", 1, [SPREAD])
    with pytest.raises(AttributeProblem, match="erf, tanh"):
        ours("Gelu", 7, [SPREAD], {"approximation_mode": "sin"})
