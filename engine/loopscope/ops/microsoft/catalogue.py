"""Catalogue of the supported operations of the domain com.microsoft, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from loopscope.ops.declare import Operation
from loopscope.ops.microsoft import (
    activation,
    attention,
    attention_lstm,
    blocks,
    bnb4,
    borrowed,
    causal_convolution,
    decoder_masked,
    distances,
    experts,
    gated,
    group_norm,
    grouped,
    linear_attention,
    movement,
    multi_head,
    normalization,
    paged_attention,
    position_bias,
    products,
    quantized,
    quantized_attention,
    quantized_experts,
    quantized_lstm,
    quantized_products,
    quantized_windows,
    rotary,
    sparse_attention,
    token_padding,
    words,
)
from loopscope.ops.port_meanings import with_meanings

DOMAIN = "com.microsoft"

_CATEGORIES: Mapping[str, tuple[Operation, ...]] = {
    # The categories have OpenVINO's names.
    "activation": (*activation.OPERATIONS, *gated.OPERATIONS),
    "matrix": (
        *products.OPERATIONS,
        *distances.OPERATIONS,
        *blocks.OPERATIONS,
        *quantized_products.OPERATIONS,
        *bnb4.OPERATIONS,
        *experts.OPERATIONS,
        *quantized_experts.OPERATIONS,
    ),
    "movement": (*movement.OPERATIONS, *borrowed.OPERATIONS),
    "normalization": (*normalization.OPERATIONS, *group_norm.OPERATIONS),
    "pooling": quantized_windows.OPERATIONS,
    "quantization": quantized.OPERATIONS,
    "sequence": tuple(
        row
        for rows in (
            attention,
            grouped,
            multi_head,
            decoder_masked,
            sparse_attention,
            paged_attention,
            rotary,
            quantized_attention,
            quantized_lstm,
            attention_lstm,
            linear_attention,
            causal_convolution,
            position_bias,
            token_padding,
        )
        for row in rows.OPERATIONS
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
