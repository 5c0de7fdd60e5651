"""MultiHeadAttention of the domain com.microsoft: separate or packed inputs, with a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import whole_number
from loopscope.ops.microsoft.attention import added_length
from loopscope.ops.microsoft.attention_heads import (
    join_heads,
    masked_scores,
    scaled_scores,
    split_heads,
    weight_values,
)
from loopscope.ops.microsoft.row import FLOATING, row

_Heads = tuple[Array, Array, Array]
"""Queries, keys and values, each [B, N, length, width of a head]."""


def multi_head_attention(
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    cache_indirection: Array | None = None,
    /,
    *,
    num_heads: int,
    unidirectional: int,
    scale: float | None,
    mask_filter_value: float | None,
) -> tuple[Array, Array, Array, Array]:
    """Compute multi-head attention; also return all keys and values, and the scores before softmax.

    Queries are ``[B, S, N H]`` with keys and values ``[B, L, N H]`` or ``[B, N, L, H]``. Keys and
    values may be packed as ``[B, L, N, 2, H]``, or all three as ``[B, S, N, 3, H]``. ``-> [B, S, N
    H], [B, N, T, H] twice, [B, N, S, T]``.
    """
    if cache_indirection is not None:
        raise ValueError(
            "cache_indirection is given: "
            "beams that share a cache are computed inside BeamSearch only"
        )
    queries, now_key, now_value = add_bias(
        split_inputs(query, key, value, num_heads), bias, key is not None and key.ndim == 4
    )
    keys, present_key = with_past(past_key, now_key, past_sequence_length)
    values, present_value = with_past(past_value, now_value, past_sequence_length)
    before = keys.shape[2] - now_key.shape[2] if unidirectional else None
    scores = masked_scores(
        scaled_scores(queries, keys, scale), mask, attention_bias, mask_filter_value, before
    )
    dtype = query.dtype
    result = join_heads(weight_values(scores, values)).astype(dtype, copy=False)
    return (
        result,
        present_key.astype(dtype, copy=False),
        present_value.astype(dtype, copy=False),
        scores.astype(dtype, copy=False),
    )


def split_inputs(query: Array, key: Array | None, value: Array | None, heads: int) -> _Heads:
    """Return queries, keys and values by head, from separate or packed inputs."""
    if key is None:
        if query.ndim != 5 or query.shape[2:4] != (heads, 3):
            raise ValueError(
                f"without keys the queries have shape {list(query.shape)}, "
                f"expected [B, S, {heads}, 3, width of a head]"
            )
        packed = computable(query).swapaxes(1, 2)
        return packed[..., 0, :], packed[..., 1, :], packed[..., 2, :]
    queries = split_heads(computable(query), heads, "query")
    if value is None:
        if key.ndim != 5 or key.shape[2:4] != (heads, 2):
            raise ValueError(
                f"without values the keys have shape {list(key.shape)}, "
                f"expected [B, L, {heads}, 2, width of a head]"
            )
        packed = computable(key).swapaxes(1, 2)
        return queries, packed[..., 0, :], packed[..., 1, :]
    if key.ndim == value.ndim == 4:
        return queries, computable(key), computable(value)
    return (
        queries,
        split_heads(computable(key), heads, "key"),
        split_heads(computable(value), heads, "value"),
    )


def add_bias(heads: _Heads, bias: Array | None, queries_only: bool) -> _Heads:
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


def infer_multi_head_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and length from the queries, and the width from the values.

    The lengths of the caches include the past.
    """
    kind, heads, query = inputs[0].element_type, attributes["num_heads"], inputs[0].shape
    key, value, past = (
        inputs[index].shape if len(inputs) > index else DYNAMIC for index in (1, 2, 6)
    )
    if query.rank not in (3, 5) or key.rank not in (3, None) or query.rank == 5:
        return (Known(kind, PartialShape.unknown(3)), *[Known(kind, PartialShape.unknown(4))] * 3)
    batch, length, now = query.at(0), query.at(1), key.at(1)
    width = value.at(2) if value.rank == 3 else UNKNOWN
    before = (
        static(0)
        if len(inputs) <= 6
        else past.at(2)
        if past.rank == 4 and len(inputs) <= 8
        else UNKNOWN
    )
    total, count = added_length(before, now), static(max(heads, 0))
    head_widths = [
        static(dimension.least // heads) if dimension.is_static and heads > 0 else UNKNOWN
        for dimension in (query.at(2), width)
    ]
    caches = [
        Known(kind, PartialShape((batch, count, total, dimension))) for dimension in head_widths
    ]
    return (
        Known(kind, PartialShape((batch, length, width))),
        *caches,
        Known(kind, PartialShape((batch, count, length, total))),
    )


MASK = frozenset({ElementType.I32})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "MultiHeadAttention",
        multi_head_attention,
        infer=infer_multi_head_attention,
        inputs=(1, 10),
        outputs=4,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("unidirectional", "int", 0),
            Attribute("scale", "float", None),
            Attribute("mask_filter_value", "float", None),
        ),
        types=(*[FLOATING] * 4, MASK, *[FLOATING] * 3, MASK, MASK),
    ),
)
