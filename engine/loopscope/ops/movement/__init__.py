"""Category movement of the OpenVINO operation specs: elements change position but not value."""

from __future__ import annotations

from loopscope.ops.declare import Operation
from loopscope.ops.movement import (
    blocks,
    gathering,
    growing,
    joining,
    ordering,
    patches,
    scattering,
    slicing,
)

OPERATIONS: tuple[Operation, ...] = (
    *joining.OPERATIONS,
    *slicing.OPERATIONS,
    *growing.OPERATIONS,
    *gathering.OPERATIONS,
    *scattering.OPERATIONS,
    *ordering.OPERATIONS,
    *blocks.OPERATIONS,
    *patches.OPERATIONS,
    *ordering.DISTINCT,
)
