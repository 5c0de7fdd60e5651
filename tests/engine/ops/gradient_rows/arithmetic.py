"""Derivatives of the category arithmetic."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import ABOUT_ZERO, Row

_BROADCASTS = (
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((2, 1, 2), (3, 1)),
)
_BINARY = (
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "Power",
)
_DIVIDED = (np.array([[5.3, -5.3, 2.2], [7.9, -0.4, 3.1]]), np.array([2.0, 1.7, -1.3]))
_SMOOTH = ("Atan", "Asinh", "Cos", "Cosh", "Erf", "Sin", "Sinh", "Tanh")

ROWS = (
    *(Row(name, shapes) for name in _BINARY for shapes in _BROADCASTS),
    *(Row(name, _DIVIDED) for name in ("Mod", "FloorMod")),
    Row("Subtract", ((2, 3), (2, 3)), {"auto_broadcast": "none"}),
    # The exponent's derivative holds the logarithm of the base, which has no derivative at 0.
    Row("Power", (np.array([0.0, 0.5, 2.0]), np.array([2.0, 3.0, 0.0])), second=False),
    *(Row(name, ((2, 3),), within=ABOUT_ZERO) for name in _SMOOTH),
    *(Row(name, ((2, 3),), within=(-0.9, 0.9)) for name in ("Acos", "Asin", "Atanh", "ErfInv")),
    *(Row(name, ((2, 3),)) for name in ("Negative", "Log", "Sqrt")),
    Row("Acosh", ((2, 3),), within=(1.2, 3.0)),
    Row("Tan", ((2, 3),), within=(-1.2, 1.2)),
    Row("Abs", (np.array([[-1.5, 0.5], [2.0, -0.25]]),)),
    *(
        Row("CumSum", ((2, 3, 2), np.array(axis)), {"exclusive": exclusive, "reverse": reverse})
        for axis in (0, -2)
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    Row("CumSum", ((3, 2),)),
)
