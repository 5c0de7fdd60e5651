"""Derivatives of the category reduction."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

_FAR_APART = np.array([[1.5, -0.5, 2.5], [0.25, -1.0, -2.0]])

ROWS = (
    *(
        Row(name, ((2, 3, 4), np.array(axes, np.int64)), {"keep_dims": keep})
        for name in ("ReduceSum", "ReduceMean")
        for axes in ([0], [1, 2], [-1, 0], 1, [], [0, 1, 2])
        for keep in (False, True)
    ),
    *(
        Row(name, (_FAR_APART, np.array(axes)), {"keep_dims": keep})
        for name in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")
        for axes in ([0], -1, [0, 1])
        for keep in (False, True)
    ),
    Row("ReduceProd", (np.array([[0.0, 1.5, -2.0], [0.5, 3.0, 1.0]]), np.array([1]))),
    # The second derivative of a product of two zeros is said not to be given.
    Row("ReduceProd", (np.array([[0.0, 0.0, -2.0]]), np.array([1])), second=False),
)
