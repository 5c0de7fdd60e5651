"""All operations of the domain com.microsoft that are computed here, by name."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ops.declare import Operation
from engine.ops.microsoft import (
    activation,
    attention,
    blocks,
    distances,
    grouped,
    movement,
    multi_head,
    normalization,
    products,
    quantized,
    quantized_attention,
    quantized_lstm,
    quantized_products,
    quantized_windows,
    rotary,
    words,
)

DOMAIN = "com.microsoft"

_ROWS = tuple(
    one.OPERATIONS
    for one in (
        activation,
        attention,
        blocks,
        distances,
        grouped,
        movement,
        multi_head,
        normalization,
        products,
        quantized,
        quantized_attention,
        quantized_lstm,
        quantized_products,
        quantized_windows,
        rotary,
        words,
    )
)
MICROSOFT: Mapping[str, Operation] = {row.name: row for rows in _ROWS for row in rows}

IN_ONNX: Mapping[str, Operation] = {row.name: row for row in normalization.IN_ONNX}
"""What ONNX Runtime adds to ONNX's own domain."""
