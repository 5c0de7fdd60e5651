"""Category movement of the OpenVINO operation specs: elements change position but not value."""

from __future__ import annotations

from loopscope.ops.declare import Operation
from loopscope.ops.movement import (
    blocks,
    distinct,
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
    *distinct.OPERATIONS,
)
