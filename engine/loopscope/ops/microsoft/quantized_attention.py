"""Attention of the domain com.microsoft with quantized data and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.microsoft.attention import attend, infer_attention, stack_cache
from loopscope.ops.microsoft.quantized import BYTES, single_number
from loopscope.ops.microsoft.quantized_products import matmul_integer_to_float
from loopscope.ops.microsoft.row import row
from loopscope.ops.precision import computable


def q_attention(
    data: Array,
    weights: Array,
    bias: Array,
    data_scale: Array,
    weights_scale: Array,
    mask: Array | None = None,
    data_zero: Array | None = None,
    weights_zero: Array | None = None,
    past: Array | None = None,
    /,
    *,
    outputs: int,
    num_heads: int,
    unidirectional: int,
    scale: float | None,
    mask_filter_value: float | None,
    do_rotary: int | None,
    past_present_share_buffer: int | None,
) -> tuple[Array, ...]:
    """Compute multi-head attention from one product of quantized data and weights.

    Everything after the product is in floats. ``[B, S, D], [D, 3 V] -> [B, S, V]``. A past of ``[2,
    B, N, P, H]`` contains earlier keys and values; the second output is the past with the new ones
    appended.
    """
    if do_rotary or past_present_share_buffer:
        raise ValueError(
            "do_rotary or past_present_share_buffer is 1, "
            "which ONNX Runtime's CPU does not compute either"
        )
    if data.ndim != 3 or weights.ndim != 2 or data.shape[2] != weights.shape[0]:
        raise ValueError(
            f"data of shape {list(data.shape)} and weights of shape {list(weights.shape)}, "
            "expected [B, S, D] and [D, widths]"
        )
    zero = single_number(data_zero, data)
    product = computable(
        matmul_integer_to_float(data, weights, data_scale, weights_scale, zero, weights_zero, bias)
    )
    widths = (weights.shape[1] // 3,) * 3
    result, *cache = attend(
        product, widths, mask, past, None, num_heads, bool(unidirectional), scale, mask_filter_value
    )
    return tuple(
        np.asarray(array).astype(bias.dtype, copy=False)
        for array in ((result, stack_cache(*cache)) if outputs > 1 else (result,))
    )


def infer_q_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the shapes of Attention, in the type of the bias."""
    kind = inputs[2].element_type
    past = [Known(kind, inputs[8].shape)] if len(inputs) > 8 else []
    known = [
        Known(kind, inputs[0].shape),
        Known(kind, inputs[1].shape),
        inputs[2],
        *([inputs[2]] * len(past)),
        *past,
    ]
    return infer_attention(known, attributes)


_HALVES = frozenset({ElementType.F16, ElementType.F32})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "QAttention",
        q_attention,
        infer=infer_q_attention,
        inputs=(5, 9),
        outputs=2,
        counts_outputs=True,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("unidirectional", "int", 0),
            Attribute("scale", "float", None),
            Attribute("mask_filter_value", "float", None),
            Attribute("do_rotary", "int", None),
            Attribute("past_present_share_buffer", "int", None),
        ),
        types=(
            BYTES,
            BYTES,
            _HALVES,
            _HALVES,
            _HALVES,
            frozenset({ElementType.I32}),
            BYTES,
            BYTES,
            _HALVES,
        ),
    ),
)
