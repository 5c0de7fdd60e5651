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

    def in_one_loop(iteration: Any) -> tuple[object]:
        return (_settled(values[int(iteration)]),)

    def in_nested_loops(*iterations: Any) -> tuple[object]:
        return (_settled(rows.at([int(iteration) for iteration in iterations])),)

    return in_nested_loops if rows.starts or len(values) == 1 else in_one_loop


def _settled(value: Any) -> object:
    """Return a value in the machine's representation, which has scalars instead of rank 0."""
    if value is None:
        return NO_VALUE
    return value if value.ndim else value[()]


RECORDED_VALUE = Operation(
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
)
"""The only operation of a trace. It is not in the catalogue's tables, because nothing builds it."""
