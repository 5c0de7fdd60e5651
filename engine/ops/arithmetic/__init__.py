"""Category arithmetic of the OpenVINO operation specs."""

from __future__ import annotations

from engine.ops.arithmetic import binary, cumulative, segments, unary
from engine.ops.declare import Operation

OPERATIONS: tuple[Operation, ...] = (*unary.OPERATIONS, *binary.OPERATIONS, *cumulative.OPERATIONS, *segments.OPERATIONS)
