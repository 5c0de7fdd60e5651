"""Category activation of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ops.activation import formulas, rectifiers, softmax
from loopscope.ops.declare import Operation

OPERATIONS: tuple[Operation, ...] = (
    *formulas.OPERATIONS,
    *rectifiers.OPERATIONS,
    *softmax.OPERATIONS,
)
"""Smooth functions (``formulas``), piecewise linear functions (``rectifiers``), and ``softmax``
along an axis.
"""
