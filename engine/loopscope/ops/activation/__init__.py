"""Category activation of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ops.activation import formulas, rectifiers, softmax
from loopscope.ops.declare import Operation

OPERATIONS: tuple[Operation, ...] = (
    *formulas.OPERATIONS,
    *rectifiers.OPERATIONS,
    *softmax.OPERATIONS,
)
"""``formulas``: smooth functions. ``rectifiers``: functions made of straight pieces.
``softmax``: along an axis.
"""
