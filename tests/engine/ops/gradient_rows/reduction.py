"""Derivatives of the category reduction."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    *(
        Row("ReduceSum", ((2, 3, 4), np.array(axes, np.int64)), {"keep_dims": keep})
        for axes in ([0], [1, 2], [-1, 0], 1, [], [0, 1, 2])
        for keep in (False, True)
    ),
)
