"""Category "generation" of the OpenVINO operation specifications."""

from __future__ import annotations

from loopscope.ops.declare import Operation
from loopscope.ops.generation import eye, multinomial, random_uniform, sequence

OPERATIONS: tuple[Operation, ...] = (
    *eye.OPERATIONS,
    *multinomial.OPERATIONS,
    *random_uniform.OPERATIONS,
    *sequence.OPERATIONS,
)
