"""Derivatives of the category movement."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    Row("Broadcast", ((2, 1), np.array([3, 2, 4])), {"mode": "numpy"}),
    Row("Broadcast", ((2, 3), np.array([2, 1])), {"mode": "bidirectional"}),
    Row("Broadcast", ((2, 3), np.array([2, 4, 3]), np.array([0, 2])), {"mode": "explicit"}),
)
