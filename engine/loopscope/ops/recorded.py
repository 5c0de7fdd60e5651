"""Operation of a trace: values that a program recorded, by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopscope.ir.recorded_rows import RECORDED, RECORDED_OPSET, VALUES, ValuesByRow
from loopscope.ops.declare import Attribute, Kernel, Operation
from loopscope.ops.values import NO_VALUE


def prepare_recorded(attributes: Mapping[str, Any], outputs: int) -> Kernel:
    """Return the kernel of one node.

    Its inputs are the iteration numbers of the enclosing loops, outermost first. It returns the
    empty optional for an iteration in which the program did not record the value.
    """
    rows: ValuesByRow = attributes[VALUES]
    values = rows.values

    def in_one_loop(iteration: Any) -> tuple[Any]:
        value = values[int(iteration)]
        return (NO_VALUE if value is None else value if value.ndim else value[()],)

    def in_nested_loops(*iterations: Any) -> tuple[Any]:
        value = rows.at([int(iteration) for iteration in iterations])
        return (NO_VALUE if value is None else value if value.ndim else value[()],)

    return in_nested_loops if rows.starts or len(values) == 1 else in_one_loop


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name=RECORDED,
        version=1,
        opsets=(1, 1),
        opset=RECORDED_OPSET,
        page="",
        prepare=prepare_recorded,
        inputs=(0, None),
        attributes=(Attribute(VALUES, "str", doc="The recorded values, by row."),),
        only_tensors=False,
        pure=False,
        doc="Return the value that a program recorded in an iteration.",
    ),
)
