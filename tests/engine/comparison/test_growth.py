"""What an error does over the iterations, from series whose growth is known."""

from __future__ import annotations

import numpy as np
import pytest

from loopscope.comparison.matched_slots import growth

N = np.arange(64)
NOISE = np.exp(np.random.default_rng(0).normal(0, 0.1, 64))


@pytest.mark.parametrize(
    ("errors", "shape"),
    [
        (np.full(64, 0.1), "at once"),
        (np.full(64, 1e-5), "flat"),
        (1e-4 * 1.07**N, "grows"),
        (1e-4 * 1.07**N * NOISE, "grows"),
        (1e-4 * (N + 1), "grows"),
        (0.02 * (1 - 0.8 ** (N + 1)), "saturates"),
        (0.02 * (1 - 0.8 ** (N + 1)) * NOISE, "saturates"),
        (np.where(N < 40, 1e-7, 0.5), "at once"),  # a defect from iteration 40 on
        (np.where(N < 4, 0, 0.1), "at once"),
    ],
)
def test_shapes(errors: np.ndarray, shape: str) -> None:
    found = growth(errors, 1e-3)
    assert found is not None
    assert found.shape == shape


@pytest.mark.parametrize("factor", [1.5, 1.07, 1.004])
def test_the_factor_is_fitted(factor: float) -> None:
    found = growth(1e-4 * factor ** np.arange(400) if factor < 1.1 else 1e-4 * factor**N, 1e-3)
    assert found is not None
    assert found.factor == pytest.approx(factor, rel=1e-6)
    assert found.words == f"grows {factor:.{3 if factor == 1.004 else 2}f} times per iteration"


@pytest.mark.parametrize("errors", [[], [0.1, 0.1, 0.1], [0.0] * 20, [np.inf] * 20])
def test_of_too_few_errors_nothing_is_said(errors: list[float]) -> None:
    assert growth(np.array(errors), 1e-3) is None
