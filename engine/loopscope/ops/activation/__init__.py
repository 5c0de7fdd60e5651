"""Category activation of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ops.activation import pointwise, softmax
from loopscope.ops.declare import Operation

OPERATIONS: tuple[Operation, ...] = (
    *pointwise.OPERATIONS,
    *pointwise.RECTIFIERS,
    *softmax.OPERATIONS,
)
"""Smooth functions (``formulas``), piecewise linear functions (``rectifiers``), and ``softmax``
along an axis.
"""
