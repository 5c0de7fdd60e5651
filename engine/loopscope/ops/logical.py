"""Category logical of the OpenVINO operation specs: booleans from booleans."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from loopscope.ir.element_type import ElementType
from loopscope.ops.broadcast import AUTO_BROADCAST, binary
from loopscope.ops.declare import Array, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.infer import elementwise

logical_and = binary(operator.and_, "Return True where both are true.")
logical_or = binary(operator.or_, "Return True where at least one is true.")
logical_xor = binary(operator.xor, "Return True where exactly one is true.")


def logical_not(data: Array, /) -> Array:
    """Return True for each element that is false.

    Page logical/logical-not-1.
    """
    return ~data


def _infer_booleans(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer booleans, broadcast by ``auto_broadcast``; numbers are an error, as in OpenVINO's
    reader.
    """
    for position, known in enumerate(inputs):
        if known.element_type not in (None, ElementType.BOOLEAN):
            raise ValueError(
                f"input {position} is {known.element_type}, expected boolean: compare "
                "it with zero (NotEqual)"
            )
    return elementwise(inputs, attributes)


_BOOLEAN = frozenset({ElementType.BOOLEAN})
_NUMPY = {"auto_broadcast": "numpy"}

row = family(
    "logical",
    infer=_infer_booleans,
    inputs=(2, 2),
    attributes=(AUTO_BROADCAST,),
    types=(_BOOLEAN,),
    symbol_when=_NUMPY,
)
unary_row = family("logical", infer=_infer_booleans, types=(_BOOLEAN,))

OPERATIONS: tuple[Operation, ...] = (
    row("LogicalAnd", logical_and, symbol="{0} & {1}"),
    unary_row("LogicalNot", logical_not, symbol="~{0}"),
    row("LogicalOr", logical_or, symbol="{0} | {1}"),
    row(
        "LogicalXor",
        logical_xor,
        version=2,
        opsets=(1, 16),
        page="logical/logical-xor-1",
        symbol="{0} ^ {1}",
    ),
    row("Xor", logical_xor, opsets=(1, 1), page="logical/logical-xor-1", symbol="{0} ^ {1}"),
)
