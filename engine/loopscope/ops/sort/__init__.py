"""Category sort of the OpenVINO operation specs: the best elements, sorted positions, and the
selection of boxes.
"""

from __future__ import annotations

from loopscope.ops.declare import Operation
from loopscope.ops.sort import largest, multiclass, searching, suppression

OPERATIONS: tuple[Operation, ...] = (
    *largest.OPERATIONS,
    *searching.OPERATIONS,
    *suppression.OPERATIONS,
    *multiclass.OPERATIONS,
)
