"""How an operation of the domain com.microsoft is declared: all are of version 1, and all read a
page of ONNX Runtime.
"""

from __future__ import annotations

from typing import Unpack

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Kernel, Operation
from loopscope.ops.family import Fields
from loopscope.ops.onnx.row import LAST

FLOATING = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})
"""What ONNX Runtime's documentation allows for tensors of floats, over all its devices; its CPU
mostly computes f32 alone.
"""
INDICES = frozenset({ElementType.I32, ElementType.I64})


def row(name: str, kernel: Kernel, /, **declared: Unpack[Fields]) -> Operation:
    """A row; its page is of ContribOperators.md of ONNX Runtime."""
    return Operation(
        name=name,
        version=1,
        opsets=(1, LAST),
        page=f"com.microsoft.{name}",
        kernel=kernel,
        **declared,
    )
