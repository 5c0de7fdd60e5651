"""Category quantization against OpenVINO and the formulas of its pages."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.draws import draws
from tests.engine.ops.oracle import Value, agree, openvinos, ours, references

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def formula(
    x: float, low: float, high: float, target_low: float, target_high: float, levels: int
) -> float:
    """The page's expression, in Python's numbers."""
    if x <= min(low, high):
        return target_low
    if x > max(low, high):
        return target_high
    return (
        round((x - low) / (high - low) * (levels - 1)) / (levels - 1) * (target_high - target_low)
        + target_low
    )


@pytest.mark.parametrize("levels", [2, 5, 256])
@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (3, 1, 1), (1,), (), (2, 3, 4, 5), (5,)], ids=str)
def test_fake_quantize(shape: tuple[int, ...], levels: int) -> None:
    limits = [numbers(*shape) - 2, numbers(*shape) + 2, numbers(*shape) - 2, numbers(*shape) + 2]
    agree(
        "FakeQuantize",
        1,
        [numbers(2, 3, 4, 5) * 3, *limits],
        {"levels": levels},
        constant=[1, 2, 3, 4],
        rtol=1e-4,
        atol=1e-5,
    )


DRAWN = st.integers(1, 10**4).map(lambda hundredths: hundredths / 100)


@given(
    low=DRAWN,
    high=DRAWN,
    target=st.none() | st.tuples(DRAWN, DRAWN),
    levels=st.sampled_from([2, 16, 255, 256]),
)
@settings(max_examples=draws(40))
def test_fake_quantize_bit_for_bit(
    low: float, high: float, target: tuple[float, float] | None, levels: int
) -> None:
    """Equal to OpenVINO's core; its CPU joins the factors of constant limits and rounds
    otherwise.
    """
    ranges = np.array(
        [-low, high, *((-low, high) if target is None else (-target[0], target[1]))], np.float32
    )
    data = np.concatenate([np.linspace(-1.2 * low, 1.2 * high, 999), [0.0, -0.0], ranges]).astype(
        np.float32
    )
    inputs: list[Value] = [data, *(np.array(limit) for limit in ranges)]
    got = ours("FakeQuantize", 1, inputs, {"levels": str(levels)})[0]
    expected = references("FakeQuantize", 1, inputs, {"levels": levels})[0]
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(
    "limits", [(-2.3196611, 2.3015387), (-1.0, 127 / 128), (0.0, 6.0), (-3.1, 0.0)], ids=str
)
def test_fake_quantize_of_zero(limits: tuple[float, float]) -> None:
    """Where 0 lies on the grid it stays 0, as in OpenVINO's CPU."""
    inputs: list[Value] = [np.zeros(1, np.float32), *(np.float32(limit) for limit in limits * 2)]
    got = ours("FakeQuantize", 1, inputs, {"levels": "256"})[0]
    np.testing.assert_array_equal(got, openvinos("FakeQuantize", 1, inputs, {"levels": 256})[0])
    if limits != (-3.1, 0.0):
        np.testing.assert_array_equal(got, [0])


@pytest.mark.parametrize(
    "limits", [(-1, 2, 0, 255), (2, -1, 0, 255), (0.5, 0.5, -1, 1), (-1, 1, 1, -1)], ids=str
)
def test_fake_quantize_by_the_formula(limits: tuple[float, float, float, float]) -> None:
    """Also with limits that change places, or are one: there OpenVINO's CPU differs from its
    page, which decides.
    """
    data = np.linspace(-3, 3, 49, dtype=np.float32)
    got = ours(
        "FakeQuantize", 1, [data, *(np.float32(limit) for limit in limits)], {"levels": "4"}
    )[0]
    np.testing.assert_allclose(
        got, [formula(float(x), *limits, 4) for x in data], rtol=1e-6, atol=1e-6
    )


def test_halves_go_to_the_even_level() -> None:
    got = ours(
        "FakeQuantize",
        1,
        [np.array([0.5, 1.5, 2.5], np.float32), *(np.float32(one) for one in (0, 4, 0, 4))],
        {"levels": "5"},
    )[0]
    np.testing.assert_array_equal(got, [0, 2, 2])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_fake_quantize_keeps_the_type(dtype: type[np.generic]) -> None:
    inputs = [numbers(3, 4) * 3, *(np.array(one, np.float32) for one in (-2, 2, -1, 1))]
    small = [one.astype(dtype) for one in inputs]
    wide = ours("FakeQuantize", 1, [one.astype(np.float32) for one in small], {"levels": "7"})[0]
    got = ours("FakeQuantize", 1, small, {"levels": "7"})[0]
    assert got.dtype == dtype
    np.testing.assert_allclose(
        got.astype(np.float64), wide.astype(dtype).astype(np.float64), rtol=1e-6
    )


def test_fake_quantize_refuses() -> None:
    inputs: list[Value] = [numbers(2, 3), *(np.float32(one) for one in (-2, 2, -1, 1))]
    with pytest.raises(ValueError, match="levels"):
        ours("FakeQuantize", 1, inputs, {"levels": "1"})
    with pytest.raises(ValueError, match="auto_broadcast"):
        ours("FakeQuantize", 1, inputs, {"levels": "4", "auto_broadcast": "none"})


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("destination", ["f8e4m3", "f8e5m2"])
def test_fake_convert(destination: str, dtype: type[np.generic]) -> None:
    spread = np.clip(numbers(2000) * np.exp(numbers(2000) * 6), -60000, 60000)
    # OpenVINO rounds what lies less than 1/4096 below half of f8e5m2's least number up to that
    # number; it is nearer to zero.
    spread = spread[np.abs(np.abs(spread) * 2.0**17 - 1) > 2.0**-11]
    edges = [0, -0.0, 448, 464, 465, 5e4, -5e4, 2**-9, 1.5 * 2**-10, 2**-10, 57344, 61440]
    agree(
        "FakeConvert",
        13,
        [np.concatenate([spread, edges]).astype(dtype), np.array([1], dtype)],
        {"destination_type": destination},
    )
    scale, shift = np.abs(numbers(3, 1)).astype(dtype), numbers(3, 1).astype(dtype)
    tolerance = 2e-3 if dtype is np.float16 else 1e-5
    agree(
        "FakeConvert",
        13,
        [numbers(3, 4).astype(dtype), scale, shift],
        {"destination_type": destination},
        rtol=tolerance,
        atol=tolerance,
    )


def test_fake_convert_keeps_nan() -> None:
    """OpenVINO's CPU makes the least number of it; a conversion to an 8-bit float, which has
    NaN, does not.
    """
    assert np.isnan(
        ours(
            "FakeConvert",
            13,
            [np.array([np.nan], np.float32), np.array([1], np.float32)],
            {"destination_type": "f8e4m3"},
        )[0][0]
    )
