"""Category arithmetic of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ops.arithmetic import along_axis, unary_and_binary
from loopscope.ops.declare import Operation

OPERATIONS: tuple[Operation, ...] = (
    *unary_and_binary.UNARY,
    *unary_and_binary.BINARY,
    *along_axis.OPERATIONS,
    *along_axis.SEGMENTS,
)
