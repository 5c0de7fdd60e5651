"""Category arithmetic of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ops.arithmetic import binary, cumulative, segments, unary
from loopscope.ops.declare import Operation

OPERATIONS: tuple[Operation, ...] = (
    *unary.OPERATIONS,
    *binary.OPERATIONS,
    *cumulative.OPERATIONS,
    *segments.OPERATIONS,
)
