"""Random quantized tensors with their scales and zero points."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.ops.byte_limits import limits


class Dice:
    """Draws from one seed, so that a table is the same in each run."""

    def __init__(self, seed: int) -> None:
        self._dice = np.random.default_rng(seed)

    def whole(self, dtype: Any, *shape: int) -> np.ndarray:
        """All that a type holds and the runtime multiplies exactly."""
        return np.asarray(self._dice.integers(*limits(dtype), shape, endpoint=True)).astype(dtype)

    def reals(self, *shape: int) -> np.ndarray:
        return np.asarray(self._dice.normal(size=shape)).astype(np.float32)

    def scales(self, *shape: int, most: float = 0.1) -> np.ndarray:
        return np.asarray(self._dice.random(shape) * most * 0.9 + most * 0.1).astype(np.float32)

    def sums(self, *shape: int) -> np.ndarray:
        return np.asarray(self._dice.integers(-9999, 9999, shape)).astype(np.int32)


def number(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)
