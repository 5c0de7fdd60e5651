"""Category image of the OpenVINO operation specs: resizing, sampling at a grid, colour spaces."""

from __future__ import annotations

from loopscope.ops.declare import Operation
from loopscope.ops.image import colour, interpolate, sampling

OPERATIONS: tuple[Operation, ...] = (
    *interpolate.OPERATIONS,
    *sampling.OPERATIONS,
    *colour.OPERATIONS,
)
