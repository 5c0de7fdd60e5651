"""Derivatives of the category condition."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    Row("Select", (np.array([[True, False, True]]), (2, 3), (2, 1)), {"auto_broadcast": "numpy"}),
)
