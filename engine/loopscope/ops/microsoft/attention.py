"""Attention of com.microsoft: queries, keys and values from one product, with a cache.

One form has quantized data and weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import whole_number
from loopscope.ops.matrix import matmul
from loopscope.ops.microsoft.attention_heads import (
    join_heads,
    masked_scores,
    scaled_scores,
    split_heads,
    weight_values,
)
from loopscope.ops.microsoft.quantized import BYTES, single_number
from loopscope.ops.microsoft.quantized_products import matmul_integer_to_float
from loopscope.ops.microsoft.row import FLOATING, row

QueryKeyValue = tuple[Array, Array, Array]
"""Queries, keys and values, each [B, N, length, width of a head]."""


def attention(
    data: Array,
    weights: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    past: Array | None = None,
    attention_bias: Array | None = None,
    past_sequence_length: Array | None = None,
    /,
    *,
    outputs: int,
    num_heads: int,
    unidirectional: int,
    qkv_hidden_sizes: tuple[int, ...] | None,
    scale: float | None,
    mask_filter_value: float | None,
    do_rotary: int | None,
    rotary_embedding_dim: int | None,
    past_present_share_buffer: int | None,
) -> tuple[Array, ...]:
    """Compute multi-head attention from one product with adjacent queries, keys and values.

    ``[B, S, D], [D, Q + K + V] -> [B, S, V]``. A past of ``[2, B, N, P, H]`` contains earlier keys
    and values; the second output is the past with the new ones appended.
    """
    if do_rotary:
        raise ValueError(
            "do_rotary is 1, which ONNX Runtime's CPU does not compute either: "
            "export RotaryEmbedding and MultiHeadAttention"
        )
    if past_present_share_buffer:
        raise ValueError(
            "past_present_share_buffer is 1, which ONNX Runtime's CPU does not compute either: "
            "export without a shared buffer"
        )
    product = project(data, weights, bias)
    widths = tuple(qkv_hidden_sizes or ()) or (weights.shape[1] // 3,) * 3
    result, *cache = attend(
        product,
        widths,
        mask,
        past,
        attention_bias,
        num_heads,
        bool(unidirectional),
        scale,
        mask_filter_value,
    )
    return tuple(
        array.astype(data.dtype, copy=False)
        for array in ((result, stack_cache(*cache)) if outputs > 1 else (result,))
    )


def attend(
    product: Array,
    widths: Sequence[int],
    mask: Array | None,
    past: Array | None,
    bias: Array | None,
    heads: int,
    causal: bool,
    scale: float | None,
    filter_value: float | None,
) -> tuple[Array, Array, Array]:
    """Compute ``[B, S, V]`` from a product ``[B, S, Q + K + V]``.

    Also return the keys and values ``[B, N, P + S, H]``, with the past first.
    """
    if (
        len(widths) != 3
        or sum(widths) != product.shape[2]
        or widths[0] != widths[1]
        or min(widths) < 0
    ):
        raise ValueError(
            f"weights of {product.shape[2]} columns do not hold queries, keys and values "
            f"of the widths {list(widths)[:8]}"
        )
    query, key, value = (
        split_heads(part, heads, "the product")
        for part in np.split(product, np.cumsum(widths)[:2], 2)
    )
    if past is not None:
        key, value = (
            np.concatenate((before, now), 2)
            for before, now in zip(_checked_past(past, key, value), (key, value), strict=True)
        )
    before = key.shape[2] - product.shape[1] if causal else None
    scores = masked_scores(scaled_scores(query, key, scale), mask, bias, filter_value, before)
    return join_heads(weight_values(scores, value)), key, value


def project(data: Array, weights: Array, bias: Array | None) -> Array:
    """Return queries, keys and values next to each other."""
    if data.ndim != 3 or weights.ndim != 2 or data.shape[2] != weights.shape[0]:
        raise ValueError(
            f"data of shape {list(data.shape)} and weights of shape {list(weights.shape)}, "
            "expected [B, S, D] and [D, widths]"
        )
    product = matmul(computable(data), computable(weights), transpose_a=False, transpose_b=False)
    if bias is not None:
        if bias.shape != weights.shape[1:]:
            raise ValueError(
                f"the bias has shape {list(bias.shape)}, expected {list(weights.shape[1:])}"
            )
        product = product + computable(bias)
    return product


def _checked_past(past: Array, key: Array, value: Array) -> tuple[Array, Array]:
    batch, heads, _, width = key.shape
    if (
        past.ndim != 5
        or past.shape[:3] != (2, batch, heads)
        or past.shape[4] != width
        or value.shape[3] != width
    ):
        raise ValueError(
            f"the past has shape {list(past.shape)}, "
            f"expected [2, {batch}, {heads}, length, {width}] for keys and values"
        )
    return computable(past[0]), computable(past[1])


def add_bias(heads: QueryKeyValue, bias: Array | None, queries_only: bool) -> QueryKeyValue:
    """Add the bias of the projections; keys and values given as heads already include theirs."""
    if bias is None:
        return heads
    widths = [tensor.shape[1] * tensor.shape[3] for tensor in heads]
    if bias.shape != (sum(widths),):
        raise ValueError(
            f"the bias has shape {list(bias.shape)}, "
            f"expected [{sum(widths)}]: one number for each column of {widths}"
        )
    parts = np.split(computable(bias), np.cumsum(widths)[:2])
    query, key, value = (
        tensor + part.reshape(1, tensor.shape[1], 1, -1)
        for tensor, part in zip(heads, parts, strict=True)
    )
    return (query, heads[1], heads[2]) if queries_only else (query, key, value)


def with_past(past: Array | None, now: Array, used: Array | None) -> tuple[Array, Array]:
    """Return the visible tokens, and the tokens to return as the present.

    Both are equal, unless the past is a buffer, of which ``used`` positions are filled.
    """
    if past is None:
        return now, now
    if past.ndim != 4 or past.shape[:2] != now.shape[:2] or past.shape[3] != now.shape[3]:
        batch, heads, _, width = now.shape
        raise ValueError(
            f"a past has shape {list(past.shape)}, expected [{batch}, {heads}, length, {width}]"
        )
    if used is None:
        present = np.concatenate((computable(past), now), 2)
        return present, present
    first = whole_number(used)
    last = first + now.shape[2]
    if first < 0 or last > past.shape[2]:
        raise ValueError(
            f"past_sequence_length is {first}, "
            f"and a buffer of {past.shape[2]} has no room for {now.shape[2]} more"
        )
    present = np.array(computable(past))
    present[:, :, first:last] = now
    return present[:, :, :last], present


def stack_cache(key: Array, value: Array) -> Array:
    """Return the cache ``[2, B, N, P + S, H]``."""
    if key.shape != value.shape:
        raise ValueError(
            f"keys of width {key.shape[3]} and values of width {value.shape[3]} for a head "
            "cannot be given back as one tensor"
        )
    return np.stack((key, value))


def infer_attention(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer batch and length from the data, the width from the values, and the cache length."""
    kind, data, weights = common_type(inputs[:2]), inputs[0].shape, inputs[1].shape
    heads, sizes = attributes["num_heads"], attributes.get("qkv_hidden_sizes")
    width = weights.at(1) if weights.rank == 2 else UNKNOWN
    value = (
        static(sizes[2])
        if sizes and len(sizes) == 3
        else static(width.least // 3)
        if width.is_static
        else UNKNOWN
    )
    batch, length = (data.at(axis) if data.rank == 3 else UNKNOWN for axis in (0, 1))
    past = inputs[4].shape if len(inputs) > 4 else PartialShape()
    before = static(0) if len(inputs) < 5 else past.at(3) if past.rank == 5 else UNKNOWN
    each = static(value.least // heads) if value.is_static and heads > 0 else UNKNOWN
    cache = PartialShape(
        (static(2), batch, static(max(heads, 0)), added_length(before, length), each)
    )
    return Known(kind, PartialShape((batch, length, value))), Known(kind, cache)


def added_length(left: Dimension, right: Dimension) -> Dimension:
    """Return the sum of two lengths if both are known, else an unknown length."""
    return static(left.least + right.least) if left.is_static and right.is_static else UNKNOWN


_MASK = frozenset({ElementType.I32})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "Attention",
        attention,
        infer=infer_attention,
        inputs=(2, 7),
        outputs=2,
        counts_outputs=True,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("unidirectional", "int", 0),
            Attribute("qkv_hidden_sizes", "ints", None),
            Attribute("scale", "float", None),
            Attribute("mask_filter_value", "float", None),
            Attribute("do_rotary", "int", None),
            Attribute("rotary_embedding_dim", "int", None),
            Attribute("past_present_share_buffer", "int", None),
        ),
        types=(FLOATING, FLOATING, FLOATING, _MASK, FLOATING, FLOATING, _MASK),
    ),
)


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
QUANTIZED: tuple[Operation, ...] = (
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
