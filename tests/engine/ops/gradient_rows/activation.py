"""Derivatives of the category activation."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import ABOUT_ZERO, Row

ROWS = (
    Row("Exp", ((2, 3),), within=ABOUT_ZERO),
    Row("Sigmoid", ((2, 3),), within=ABOUT_ZERO),
    Row("ReLU", (np.array([[-1.5, 0.5], [2.0, -0.25]]),)),
)
