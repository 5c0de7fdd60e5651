"""Derivatives of the category arithmetic."""

from __future__ import annotations

from tests.engine.ops.gradient_rows.row import ABOUT_ZERO, Row

ROWS = (
    *(
        Row(name, shapes)
        for name in ("Add", "Subtract", "Multiply", "Divide")
        for shapes in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 1, 2), (3, 1)))
    ),
    Row("Negative", ((2, 3),)),
    Row("Tanh", ((2, 3),), within=ABOUT_ZERO),
)
