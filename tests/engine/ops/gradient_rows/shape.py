"""Derivatives of the category shape."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    Row("Squeeze", ((2, 1, 3), np.array([1]))),
    Row("Squeeze", ((2, 1, 3), np.array([-2])), version=1),
    Row("Unsqueeze", ((2, 3), np.array([0, 2]))),
    Row("Reshape", ((2, 6), np.array([3, 4])), {"special_zero": False}),
    Row("Reshape", ((2, 6), np.array([0, -1, 2])), {"special_zero": True}),
)
