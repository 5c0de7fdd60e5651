"""Derivatives of the category activation."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import ABOUT_ZERO, Row

_BENT = np.array([[-3.5, -1.5, 0.5], [2.0, -0.25, 4.0]])
_MODES = tuple({"approximation_mode": mode} for mode in ("erf", "tanh"))

ROWS = (
    *(
        Row(name, ((2, 3),), within=(-4.0, 4.0))
        for name in ("Exp", "Identity", "Mish", "Sigmoid", "SoftPlus", "SoftSign", "Swish")
    ),
    *(Row(name, (_BENT,)) for name in ("HSigmoid", "HSwish", "ReLU")),
    *(Row("Gelu", ((2, 3),), mode, within=(-3.0, 3.0)) for mode in _MODES),
    Row("Gelu", ((2, 3),), within=ABOUT_ZERO, version=2),
    Row("Swish", ((2, 3), (1,)), within=ABOUT_ZERO),
    Row("Swish", ((2, 3), ())),
    Row("Elu", (_BENT,), {"alpha": 0.7}),
    Row("Selu", (_BENT, (1,), ())),
    Row("Clamp", (_BENT,), {"min": -2.0, "max": 3.0}),
    Row("HardSigmoid", (_BENT, np.array(0.2), np.array([0.45]))),
    Row("PReLU", (_BENT, (1,))),
    Row("PReLU", (_BENT, (3,))),
    Row("PReLU", (np.stack([_BENT, -_BENT]), (2,))),
    Row("PReLU", (np.stack([_BENT, -_BENT]), (3,))),
    Row("PReLU", (np.stack([_BENT, -_BENT]), (2, 1))),
    *(Row("SoftMax", ((2, 3, 2),), {"axis": axis}, within=ABOUT_ZERO) for axis in (0, 1, -1)),
    Row("SoftMax", ((2, 3),), {"axis": 1}, within=ABOUT_ZERO, version=1),
    *(Row("LogSoftmax", ((2, 3, 2),), {"axis": axis}, within=ABOUT_ZERO) for axis in (0, -1)),
)
