"""Operation of a trace: values that a program recorded, by iteration."""

from __future__ import annotations

import numpy as np

from loopscope.ir.recorded_rows import RECORDED, RECORDED_OPSET, VALUES, RecordedRows
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.values import NO_VALUE


def recorded(*iterations: Array, values: RecordedRows) -> object:
    """Return the recorded value at the iterations of the enclosing loops, outermost first.

    Return the empty optional if the program did not record it there.
    """
    value = values.at([int(iteration) for iteration in iterations])
    if value is None:
        return NO_VALUE
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name=RECORDED,
        version=1,
        opsets=(1, 1),
        opset=RECORDED_OPSET,
        page="",
        kernel=recorded,
        inputs=(0, None),
        attributes=(Attribute(VALUES, "str", doc="The recorded values, by row."),),
        only_tensors=False,
        pure=False,
    ),
)
