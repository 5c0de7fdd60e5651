"""A tensor as it is taken away: a file that every numpy reads, a line of code that makes it
again.
"""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope_app.describe import tensor_summary

NARROW = [one for one in ElementType if one is not ElementType.STRING and one.dtype.isbuiltin == 2]
ARRAYS = [
    *[np.array([1, 0, 1], one.dtype) for one in NARROW],
    np.array([[True, False]]),
    np.zeros((0, 4), np.float32),
    np.zeros((2, 0, 3), np.bool_),
    np.array(np.inf, np.float16),
    np.array([1e-8, np.nan, -np.inf]),
    np.array([[0.1, 1 / 3]], np.float32),
    np.array(2**64 - 1, np.uint64),
    np.arange(2000, dtype=np.int16),
    np.array(["one", "it's\ntwo"], object),
]


def equal(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind in "OU":
        return bool(one.tolist() == other.tolist())
    return np.array_equal(one.astype(np.float64), other.astype(np.float64), equal_nan=True)


@pytest.mark.parametrize(
    "array", ARRAYS, ids=lambda array: f"{array.dtype.name}{list(array.shape)}"
)
def test_a_tensor_that_is_taken_away_comes_back(array: np.ndarray) -> None:
    read = np.load(io.BytesIO(tensor_summary.npy(array)), allow_pickle=False)
    assert read.dtype.isbuiltin == 1 or read.dtype.kind == "U"
    assert read.shape == array.shape
    assert equal(read, array)
    made = eval(tensor_summary.as_code(array), {"np": np, "ml_dtypes": ml_dtypes})
    assert made.dtype == array.dtype
    assert made.shape == array.shape
    assert equal(made, array)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, 3], "min 1, max 3, mean 2, std 1"),
        ([1, np.inf, 3], "min 1, max 3, mean 2, std 1, NaN 0, infinite 1"),
        ([np.inf, -np.inf], "NaN 0, infinite 2"),
        ([np.nan], "NaN 1, infinite 0"),
    ],
)
def test_statistics_tell_no_number_of_elements_that_are_not_there(
    values: list[float], told: str
) -> None:
    """Two infinities had a least and a mean of NaN, beside a count of no NaN."""
    found = tensor_summary.statistics(np.array(values, np.float32))
    assert found is not None
    assert ", ".join(f"{name} {number}" for name, number in found.cells()) == told
