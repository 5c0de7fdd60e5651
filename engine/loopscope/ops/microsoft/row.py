"""Declaration of operations of the domain com.microsoft.

All have version 1 and a section in ONNX Runtime's documentation.
"""

from __future__ import annotations

from typing import Unpack

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Kernel, Operation
from loopscope.ops.family import Fields
from loopscope.ops.onnx.row import LAST

FLOATING = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})
"""Float types that ONNX Runtime's documentation allows for any device.

Its CPU mostly supports f32.
"""
INDICES = frozenset({ElementType.I32, ElementType.I64})


def row(name: str, kernel: Kernel, /, **declared: Unpack[Fields]) -> Operation:
    """Declare an operation; its page is a section of ContribOperators.md of ONNX Runtime."""
    return Operation(
        name=name,
        version=1,
        opsets=(1, LAST),
        page=f"com.microsoft.{name}",
        kernel=kernel,
        **declared,
    )
