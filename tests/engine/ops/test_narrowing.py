"""Rounding to narrower types: as numpy's and ml_dtypes' conversions, and whole multiples of one
scale for each row or group.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from loopscope.ops.quantization import GROUP, NARROWER, round_to

FLOATS = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}
INTEGERS = {"int8": (127, 300), "int4": (7, GROUP)}
"""The largest multiple of a scale, and how many numbers share one in a row of 300."""


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_floats_are_converted_there_and_back(to: str, dtype: Any) -> None:
    data = np.random.default_rng(0).standard_normal((5, 7)).astype(dtype)
    given = round_to(data, to=to)
    assert given.dtype == data.dtype
    np.testing.assert_array_equal(given, data.astype(np.float32).astype(FLOATS[to]).astype(dtype))


@pytest.mark.parametrize("to", INTEGERS)
def test_integers_are_multiples_of_a_scale(to: str) -> None:
    most, sharing = INTEGERS[to]
    data = np.random.default_rng(1).standard_normal((4, 300)) * np.array([[1e-3], [1], [1e3], [0]])
    given = round_to(data, to=to)
    for row, rounded in zip(data, given, strict=True):
        for begin in range(0, 300, sharing):
            part = row[begin : begin + sharing]
            scale = np.abs(part).max() / most
            assert np.all(np.abs(part - rounded[begin : begin + sharing]) <= scale * 0.5000001)
            multiples = rounded[begin : begin + sharing] / (scale or 1)
            np.testing.assert_allclose(multiples, np.rint(multiples), atol=1e-9)
            assert np.abs(multiples).max() <= most * (1 + 1e-12)


@pytest.mark.parametrize("to", NARROWER)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,)])
def test_every_shape_keeps_it(to: str, shape: tuple[int, ...]) -> None:
    assert round_to(np.ones(shape, np.float32), to=to).tolist() == np.ones(shape).tolist()


@pytest.mark.parametrize("to", NARROWER)
@pytest.mark.parametrize("dtype", [np.int64, np.complex64, ml_dtypes.int2])
def test_other_tensors_stay_as_they_are(to: str, dtype: Any) -> None:
    data = np.ones(1000, dtype)
    assert round_to(data, to=to) is data


def test_a_row_with_nan_becomes_nan_alone() -> None:
    given = round_to(np.array([[1, np.nan], [1, 2]], np.float32), to="int8")
    assert np.isnan(given[0]).all()
    assert np.isfinite(given[1]).all()
