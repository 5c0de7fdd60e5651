"""Packing of com.microsoft: batches of padded sequences as rows of tokens, and attention on them.

ONNX Runtime computes these operations on GPUs only; the definitions are those of its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.microsoft.attention_heads import (
    join_heads,
    scaled_scores,
    split_heads,
    weight_values,
)
from loopscope.ops.microsoft.row import FLOATING, row

_COUNTS = frozenset({ElementType.I32})


def remove_padding(data: Array, counts: Array, /) -> tuple[Array, Array, Array, Array]:
    """Return the tokens of padded sequences as rows, with the places that they came from.

    ``[B, S, H], [B] -> [T, H], [B, S], [B + 1], [1]``: tokens, offsets of tokens and then of
    padding, cumulated lengths, and the largest length.
    """
    if data.ndim != 3 or counts.shape != data.shape[:1]:
        raise ValueError(
            f"data of shape {list(data.shape)} and counts of shape {list(counts.shape)}, "
            "expected [batch, length, width] and [batch]"
        )
    lengths = counts.astype(np.int64)
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= data.shape[1]:
        raise ValueError(
            f"the token counts are {lengths[:8].tolist()}, expected 0 to {data.shape[1]}"
        )
    is_token = np.arange(data.shape[1]) < lengths[:, None]
    offsets = np.concatenate([np.flatnonzero(is_token), np.flatnonzero(~is_token)])
    cumulated = np.concatenate([[0], np.cumsum(lengths)])
    largest = np.array([lengths.max(initial=0)])
    return (
        data[is_token],
        offsets.reshape(is_token.shape).astype(np.int32),
        cumulated.astype(np.int32),
        largest.astype(np.int32),
    )


def restore_padding(rows: Array, offsets: Array, /) -> Array:
    """Put rows of tokens back to their places: ``[T, H], [B, S] -> [B, S, H]``, padded with 0."""
    if rows.ndim != 2 or offsets.ndim != 2 or len(rows) > offsets.size:
        raise ValueError(
            f"rows of shape {list(rows.shape)} and offsets of shape {list(offsets.shape)}, "
            "expected [tokens, width] and [batch, length]"
        )
    places = offsets.reshape(-1)[: len(rows)]
    if places.size and not 0 <= places.min() <= places.max() < offsets.size:
        raise ValueError(f"the offsets are {places[:8].tolist()}, expected 0 to {offsets.size - 1}")
    check_elements(offsets.size * rows.shape[1], "the padded sequences")
    padded = np.zeros((offsets.size, rows.shape[1]), rows.dtype)
    padded[places] = rows
    return padded.reshape(*offsets.shape, -1)


def packed_attention(
    tokens: Array,
    weights: Array,
    bias: Array,
    offsets: Array,
    cumulated: Array,
    attention_bias: Array | None = None,
    /,
    *,
    num_heads: int,
    scale: float | None,
    qkv_hidden_sizes: tuple[int, ...] | None,
) -> Array:
    """Project tokens to queries, keys and values, and compute attention within each sequence.

    ``[T, I], [I, 2 Q + V], [2 Q + V], [B, S], [B + 1] -> [T, V]``.
    """
    projected = computable(tokens) @ computable(weights) + computable(bias)
    sizes = qkv_hidden_sizes or (projected.shape[-1] // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != projected.shape[-1]:
        raise ValueError(
            f"qkv_hidden_sizes is {list(sizes)}, expected three sizes of sum {projected.shape[-1]}"
        )
    query, key, value = np.split(projected, np.cumsum(sizes)[:2], axis=-1)
    result = _attend(query, key, value, offsets, cumulated, attention_bias, num_heads, scale)
    return result.astype(tokens.dtype, copy=False)


def packed_multi_head_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    bias: Array | None,
    offsets: Array,
    cumulated: Array,
    attention_bias: Array | None = None,
    /,
    *,
    num_heads: int,
    scale: float | None,
    mask_filter_value: float,
) -> Array:
    """Compute attention within each sequence of packed queries, keys and values.

    ``[T, Q], [T, Q], [T, V], [2 Q + V] -> [T, V]``, or all three as ``[T, heads, 3, width]``.
    """
    if query.ndim == 4:
        parts = [query[:, :, number].reshape(len(query), -1) for number in range(3)]
    elif key is not None and value is not None:
        parts = [query, key, value]
    else:
        raise ValueError(
            f"the query has shape {list(query.shape)}, "
            "expected [tokens, heads, 3, width] without key and value"
        )
    projected = [computable(part) for part in parts]
    if bias is not None:
        ends = np.cumsum([part.shape[-1] for part in projected])
        if bias.shape != (ends[-1],):
            raise ValueError(f"the bias has shape {list(bias.shape)}, expected [{ends[-1]}]")
        biases = np.split(computable(bias), ends[:2])
        projected = [part + added for part, added in zip(projected, biases, strict=True)]
    queries, keys, values = projected
    result = _attend(queries, keys, values, offsets, cumulated, attention_bias, num_heads, scale)
    return result.astype(query.dtype, copy=False)


def _attend(
    query: Array,
    key: Array,
    value: Array,
    offsets: Array,
    cumulated: Array,
    attention_bias: Array | None,
    heads: int,
    scale: float | None,
) -> Array:
    result = np.zeros((len(query), value.shape[-1]), query.dtype)
    for number, (first, end) in enumerate(_sequences(cumulated, offsets, len(query))):
        parts = [
            split_heads(part[None, first:end], heads, name)
            for part, name in ((query, "query"), (key, "key"), (value, "value"))
        ]
        scores = scaled_scores(parts[0], parts[1], scale)
        if attention_bias is not None:
            length = end - first
            batch = attention_bias[number if len(attention_bias) > 1 else 0]
            scores = scores + computable(batch[None, :, :length, :length])
        result[first:end] = join_heads(weight_values(scores, parts[2]))[0]
    return result


def _sequences(cumulated: Array, offsets: Array, tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the end row of each sequence that has tokens."""
    ends = cumulated.reshape(-1).tolist()
    if len(ends) != len(offsets) + 1 or ends[0] or ends[-1] != tokens or ends != sorted(ends):
        raise ValueError(
            f"the cumulated lengths are {ends[:8]}, "
            f"expected {len(offsets) + 1} numbers that rise from 0 to {tokens}"
        )
    yield from pairwise(ends)


def infer_removed(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer rows of an unknown number of tokens."""
    shape = inputs[0].shape
    if shape.rank != 3:
        return (Known(inputs[0].element_type), *[Known(ElementType.I32)] * 3)
    batch, length, width = (shape.at(axis) for axis in range(3))
    following = batch.length + 1 if batch.is_static else None
    return (
        Known(inputs[0].element_type, PartialShape.of((None, width))),
        Known(ElementType.I32, PartialShape.of((batch, length))),
        Known(ElementType.I32, PartialShape.of((following,))),
        Known(ElementType.I32, PartialShape((static(1),))),
    )


def infer_restored(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the offsets, and the width of the rows."""
    rows, offsets = inputs[0].shape, inputs[1].shape
    if rows.rank != 2 or offsets.rank != 2:
        return (Known(inputs[0].element_type, PartialShape.unknown(3)),)
    lengths = (offsets.at(0), offsets.at(1), rows.at(1))
    return (Known(inputs[0].element_type, PartialShape(lengths)),)


def infer_packed(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer two axes; the first has the length of the tokens."""
    tokens = inputs[0].shape.at(0) if inputs[0].shape.rank else None
    return (Known(inputs[0].element_type, PartialShape.of((tokens, None))),)


OPERATIONS: tuple[Operation, ...] = (
    row(
        "RemovePadding",
        remove_padding,
        infer=infer_removed,
        inputs=(2, 2),
        outputs=4,
        types=(FLOATING, _COUNTS),
    ),
    row(
        "RestorePadding",
        restore_padding,
        infer=infer_restored,
        inputs=(2, 2),
        types=(FLOATING, _COUNTS),
    ),
    row(
        "PackedAttention",
        packed_attention,
        infer=infer_packed,
        inputs=(5, 6),
        attributes=(
            Attribute("num_heads", "int"),
            Attribute("scale", "float", None),
            Attribute("qkv_hidden_sizes", "ints", None),
        ),
        types=(*[FLOATING] * 3, _COUNTS, _COUNTS, FLOATING),
    ),
    row(
        "PackedMultiHeadAttention",
        packed_multi_head_attention,
        infer=infer_packed,
        inputs=(6, 7),
        optional_inputs=frozenset({1, 2, 3}),
        attributes=(
            Attribute("num_heads", "int"),
            Attribute("scale", "float", None),
            Attribute("mask_filter_value", "float", -10000.0),
        ),
        types=(*[FLOATING] * 4, _COUNTS, _COUNTS, FLOATING),
    ),
)
