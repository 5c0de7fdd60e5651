"""MultiHeadAttention of the domain com.microsoft: queries, keys and values given apart or
packed, with caches of keys and of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.index import whole_number
from loopscope.ops.microsoft.attention import FILTER, added
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.microsoft.scores import (
    joined_heads,
    scaled_scores,
    split_heads,
    to_add,
    weighted,
)
from loopscope.ops.precision import computable

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
    """Attention of several heads; also keys and values with those before them, and the scores
    before the softmax.

    Queries ``[B, S, N H]`` with keys and values ``[B, L, N H]`` or ``[B, N, L, H]``, or keys and
    values packed as ``[B, L, N, 2, H]``, or all packed as ``[B, S, N, 3, H]``. ``-> [B, S, N H],
    [B, N, T, H] twice, [B, N, S, T]``.
    """
    if cache_indirection is not None:
        raise ValueError(
            "cache_indirection is given: beams that share a cache are computed inside BeamSearch only"
        )
    queries, now_key, now_value = _biased(
        _heads(query, key, value, num_heads), bias, key is not None and key.ndim == 4
    )
    keys, whole_key = _with_past(past_key, now_key, past_sequence_length)
    values, whole_value = _with_past(past_value, now_value, past_sequence_length)
    scores = scaled_scores(queries, keys, scale)
    before = keys.shape[2] - now_key.shape[2] if unidirectional else None
    more = to_add(
        mask,
        attention_bias,
        scores,
        FILTER if mask_filter_value is None else mask_filter_value,
        before,
    )
    scores = scores if more is None else scores + more
    dtype = query.dtype
    made = joined_heads(weighted(scores, values)).astype(dtype, copy=False)
    return (
        made,
        whole_key.astype(dtype, copy=False),
        whole_value.astype(dtype, copy=False),
        scores.astype(dtype, copy=False),
    )


def _heads(query: Array, key: Array | None, value: Array | None, heads: int) -> _Heads:
    if key is None:
        if query.ndim != 5 or query.shape[2:4] != (heads, 3):
            raise ValueError(
                f"without keys the queries have shape {list(query.shape)}, expected [B, S, {heads}, 3, width of a head]"
            )
        packed = computable(query).swapaxes(1, 2)
        return packed[..., 0, :], packed[..., 1, :], packed[..., 2, :]
    queries = split_heads(computable(query), heads, "query")
    if value is None:
        if key.ndim != 5 or key.shape[2:4] != (heads, 2):
            raise ValueError(
                f"without values the keys have shape {list(key.shape)}, expected [B, L, {heads}, 2, width of a head]"
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


def _biased(each: _Heads, bias: Array | None, queries_only: bool) -> _Heads:
    """With the bias of the projections; keys and values that come as heads have theirs."""
    if bias is None:
        return each
    widths = [one.shape[1] * one.shape[3] for one in each]
    if bias.shape != (sum(widths),):
        raise ValueError(
            f"the bias has shape {list(bias.shape)}, expected [{sum(widths)}]: one number for each column of {widths}"
        )
    parts = np.split(computable(bias), np.cumsum(widths)[:2])
    query, key, value = (
        one + part.reshape(1, one.shape[1], 1, -1) for one, part in zip(each, parts, strict=True)
    )
    return (query, each[1], each[2]) if queries_only else (query, key, value)


def _with_past(past: Array | None, now: Array, used: Array | None) -> tuple[Array, Array]:
    """What is attended to, and what is handed on: the same, unless the past is a buffer of which
    so many places are used.
    """
    if past is None:
        return now, now
    if past.ndim != 4 or past.shape[:2] != now.shape[:2] or past.shape[3] != now.shape[3]:
        batch, heads, _, width = now.shape
        raise ValueError(
            f"a past has shape {list(past.shape)}, expected [{batch}, {heads}, length, {width}]"
        )
    if used is None:
        whole = np.concatenate((computable(past), now), 2)
        return whole, whole
    first = whole_number(used)
    last = first + now.shape[2]
    if first < 0 or last > past.shape[2]:
        raise ValueError(
            f"past_sequence_length is {first}, and a buffer of {past.shape[2]} has no room for {now.shape[2]} more"
        )
    whole = np.array(computable(past))
    whole[:, :, first:last] = now
    return whole[:, :, :last], whole


def infer_multi_head_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Batch and length of the queries, the width of the values; lengths of keys with those
    before them.
    """
    kind, heads, query = inputs[0].element_type, attributes["num_heads"], inputs[0].shape
    key, value, past = (
        inputs[place].shape if len(inputs) > place else DYNAMIC for place in (1, 2, 6)
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
    total, count = added(before, now), static(max(heads, 0))
    each = [
        static(one.least // heads) if one.is_static and heads > 0 else UNKNOWN
        for one in (query.at(2), width)
    ]
    caches = [Known(kind, PartialShape((batch, count, total, one))) for one in each]
    return (
        Known(kind, PartialShape((batch, length, width))),
        *caches,
        Known(kind, PartialShape((batch, count, length, total))),
    )


_MASK = frozenset({ElementType.I32})
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
        types=(*[FLOATING] * 4, _MASK, *[FLOATING] * 3, _MASK, _MASK),
    ),
)
