"""Errors of rows, held against the formulas element by element."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loopscope.comparison.deviation import Deviations

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("one", "other", "absolute", "relative", "cosine"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0, 0, 1),
        ([3.0, 4.0], [3.0, 5.0], 1, 0.2, 29 / (5 * 34**0.5)),
        ([1.0, 0.0], [0.0, 1.0], 1, 1, 0),
        ([1.0, 0.0], [-1.0, 0.0], 2, 2, -1),
        ([0.0, 0.0], [0.0, 0.0], 0, 0, 1),
        ([0.0, 0.0], [0.0, 1e-9], 1e-9, 1, NAN),
        ([NAN, 1.0], [NAN, 1.0], 0, 0, 1),
        ([INF, 1.0], [INF, 1.0], 0, 0, 1),
        ([NAN, 1.0], [1.0, 1.0], INF, INF, 1 / 2**0.5),
        ([INF, 1.0], [-INF, 1.0], INF, INF, 1),
        ([1e-200, 0.0], [1e-200, 1e-200], 1e-200, 1, 1 / 2**0.5),
        ([1e200, 1e200], [1e200, 0.0], 1e200, 1, 1 / 2**0.5),
    ],
)
def test_rows(
    one: list[float], other: list[float], absolute: float, relative: float, cosine: float
) -> None:
    found = Deviations.of(np.array([one]), np.array([other]))
    np.testing.assert_allclose(
        [found.absolute[0], found.relative[0], found.cosine[0]],
        [absolute, relative, cosine],
        rtol=1e-12,
    )


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float16, ml_dtypes.bfloat16])
def test_every_type_of_numbers(dtype: type) -> None:
    found = Deviations.of(
        np.array([[1, 1], [1, 0]]).astype(dtype), np.array([[1, 0], [1, 0]]).astype(dtype)
    )
    assert found.absolute.tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_large_rows_are_as_the_whole_is(dtype: type) -> None:
    """Computed piece by piece; the last piece is a short one, and holds the largest distance."""
    random = np.random.default_rng(5)
    one: np.ndarray = random.standard_normal((2, 50_001)).astype(dtype)
    other: np.ndarray = (one + 0.01 * random.standard_normal(one.shape)).astype(dtype)
    other[1, -1] += 7
    here, there = one.astype(np.float64), other.astype(np.float64)
    found = Deviations.of(one, other)
    distance = np.abs(here - there).max(axis=1)
    np.testing.assert_array_equal(found.absolute, distance)
    np.testing.assert_array_equal(
        found.relative, distance / np.maximum(np.abs(here), np.abs(there)).max(axis=1)
    )
    lengths = np.linalg.norm(here, axis=1) * np.linalg.norm(there, axis=1)
    np.testing.assert_allclose(found.cosine, (here * there).sum(axis=1) / lengths, rtol=1e-12)
    one[0, 3] = np.nan
    assert Deviations.of(one, other).absolute.tolist() == [np.inf, distance[1]]


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="expected the same"):
        Deviations.of(np.zeros((2, 3)), np.zeros((3, 2)))


def test_rows_with_what_is_not_finite_are_as_others_without() -> None:
    """One row that is not finite sends all of them another way, which gives the same."""
    one, other = np.random.default_rng(2).standard_normal((2, 6, 9)).astype(np.float32)
    plain = Deviations.of(one, other)
    odd = Deviations.of(
        np.concatenate([one, np.full((1, 9), np.nan, np.float32)]),
        np.concatenate([other, other[:1]]),
    )
    for mine, theirs in (
        (plain.absolute, odd.absolute),
        (plain.relative, odd.relative),
        (plain.cosine, odd.cosine),
    ):
        np.testing.assert_allclose(theirs[:6], mine, rtol=1e-12)


FINITE = st.floats(-1e6, 1e6, width=32)


@given(arrays(np.float32, (7, 5), elements=FINITE), arrays(np.float32, (7, 5), elements=FINITE))
def test_it_is_the_same_from_both_sides(one: np.ndarray, other: np.ndarray) -> None:
    forth, back = Deviations.of(one, other), Deviations.of(other, one)
    np.testing.assert_array_equal(
        forth.absolute, np.abs(one.astype(np.float64) - other).max(axis=1)
    )
    for mine, theirs in (
        (forth.absolute, back.absolute),
        (forth.relative, back.relative),
        (forth.cosine, back.cosine),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    assert np.all(forth.relative <= 2)
