"""Derivatives of the category matrix."""

from __future__ import annotations

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    *(
        Row("MatMul", shapes, {"transpose_a": one, "transpose_b": other})
        for shapes, one, other in (
            (((2, 3), (3, 4)), False, False),
            (((3, 2), (3, 4)), True, False),
            (((2, 3), (4, 3)), False, True),
            (((3, 2), (4, 3)), True, True),
            (((5, 2, 3), (3, 4)), False, False),
            (((5, 2, 3), (5, 3, 4)), False, False),
            (((5, 1, 2, 3), (2, 4, 3)), False, True),
            (((3,), (3, 4)), False, False),
            (((2, 3), (3,)), False, False),
            (((3,), (3,)), False, False),
            (((5, 2, 3), (3,)), False, False),
            (((3,), (5, 3, 2)), False, False),
        )
    ),
)
