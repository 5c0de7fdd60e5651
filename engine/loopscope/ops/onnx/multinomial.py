"""ONNX's Multinomial, which the onnx package does not compute."""

from __future__ import annotations

from typing import Any

import numpy as np


def multinomial(
    logits: np.ndarray,
    /,
    *,
    state: int,
    sample_size: int = 1,
    dtype: int = 6,
    seed: float | None = None,
) -> Any:
    """Draw classes from unnormalised log-probabilities, [batch, sample_size]. Return them and the
    next state.
    """
    random = np.random.RandomState(int(seed) % 2**32 if seed is not None else state % 2**32)
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    edges = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1)
    drawn = random.uniform(size=(len(logits), sample_size))
    classes = np.array(
        [
            np.searchsorted(row, points, side="right")
            for row, points in zip(edges, drawn, strict=True)
        ]
    )
    return np.minimum(classes, logits.shape[-1] - 1).astype(
        np.int64 if dtype == 7 else np.int32
    ), int(random.randint(2**31))
