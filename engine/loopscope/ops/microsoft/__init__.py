"""Operations that ONNX Runtime adds to ONNX in the domain com.microsoft, by name.

Files that ONNX Runtime has optimized or quantized contain them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from loopscope.ops.declare import Operation
from loopscope.ops.microsoft import (
    activation,
    attention,
    blocks,
    borrowed,
    causal_convolution,
    experts,
    grouped_attention,
    linear_attention,
    lstm,
    movement,
    multi_head_attention,
    normalization,
    paged_attention,
    positions,
    products,
    quantized,
    quantized_products,
    quantized_windows,
    token_padding,
    words,
)
from loopscope.ops.port_meanings import with_meanings

__all__ = [
    "DOMAIN",
    "MICROSOFT",
]

DOMAIN = "com.microsoft"

_CATEGORIES: Mapping[str, tuple[Operation, ...]] = {
    # The categories have OpenVINO's names.
    "activation": (*activation.OPERATIONS, *activation.GATED),
    "matrix": (
        *products.OPERATIONS,
        *borrowed.MATRIX,
        *blocks.OPERATIONS,
        *quantized_products.OPERATIONS,
        *quantized_products.BNB4,
        *experts.OPERATIONS,
        *experts.QUANTIZED,
    ),
    "movement": (*movement.OPERATIONS, *borrowed.OPERATIONS),
    "normalization": (*normalization.OPERATIONS, *normalization.GROUPS),
    "pooling": quantized_windows.OPERATIONS,
    "quantization": quantized.OPERATIONS,
    "sequence": (
        *attention.OPERATIONS,
        *grouped_attention.GROUP_QUERIES,
        *multi_head_attention.MULTI_HEAD,
        *multi_head_attention.DECODER_MASKED,
        *grouped_attention.SPARSE,
        *paged_attention.OPERATIONS,
        *positions.OPERATIONS,
        *attention.QUANTIZED,
        *lstm.QUANTIZED,
        *lstm.WITH_ATTENTION,
        *linear_attention.OPERATIONS,
        *causal_convolution.OPERATIONS,
        *positions.BIASES,
        *token_padding.OPERATIONS,
    ),
    "string": words.OPERATIONS,
}
CATEGORY: Mapping[str, str] = {
    row.name: category for category, rows in _CATEGORIES.items() for row in rows
}
"""Category of each operation, by name."""
MEANINGS = Path(__file__).with_name("port_meanings.txt")
"""Table of the meanings of inputs, outputs and attributes."""
MICROSOFT: Mapping[str, Operation] = {
    row.name: with_meanings(row, MEANINGS) for rows in _CATEGORIES.values() for row in rows
}

IN_ONNX: Mapping[str, Operation] = {row.name: row for row in normalization.IN_ONNX}
"""Operations that ONNX Runtime adds to ONNX's own domain, by name."""
