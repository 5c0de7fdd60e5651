"""How an operation of the domain com.microsoft is declared: all are of version 1, and all read a page of ONNX Runtime."""

from __future__ import annotations

from typing import Any

from engine.ir.element_type import ElementType
from engine.ops.declare import Operation
from engine.ops.onnx.row import LAST

FLOATING = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})
"""What ONNX Runtime's documentation allows for tensors of floats, over all its devices; its CPU mostly computes f32 alone."""
INDICES = frozenset({ElementType.I32, ElementType.I64})


def row(name: str, **declared: Any) -> Operation:
    """A row; ``declared`` are the fields of ``Operation``. Page: ContribOperators.md of ONNX Runtime."""
    return Operation(name=name, version=1, opsets=(1, LAST), page=f"com.microsoft.{name}", **declared)
