"""Category arithmetic of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ops.arithmetic import along_axis, binary, unary
from loopscope.ops.declare import Operation

OPERATIONS: tuple[Operation, ...] = (
    *unary.OPERATIONS,
    *binary.OPERATIONS,
    *along_axis.OPERATIONS,
    *along_axis.SEGMENTS,
)
