"""Derivatives of the category type."""

from __future__ import annotations

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    Row("Convert", ((2, 3),), {"destination_type": "f64"}),
    Row("ConvertLike", ((2, 3), (1,))),
)
