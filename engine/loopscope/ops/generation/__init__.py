"""Category "generation" of the OpenVINO operation specifications."""

from __future__ import annotations

from loopscope.ops.declare import Operation
from loopscope.ops.generation import random_numbers, regular

OPERATIONS: tuple[Operation, ...] = (
    *regular.EYE,
    *random_numbers.MULTINOMIAL,
    *random_numbers.OPERATIONS,
    *regular.OPERATIONS,
)
