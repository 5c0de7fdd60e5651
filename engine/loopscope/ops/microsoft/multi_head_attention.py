"""MultiHeadAttention of com.microsoft, also for one new token of each sequence.

Inputs are separate or packed, with a cache. DecoderMaskedMultiHeadAttention and
DecoderMaskedSelfAttention take one token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import whole_number
from loopscope.ops.microsoft.attention import (
    QueryKeyValue,
    add_bias,
    added_length,
    project,
    stack_cache,
    with_past,
)
from loopscope.ops.microsoft.attention_heads import (
    join_heads,
    masked_scores,
    scaled_scores,
    split_heads,
    weight_values,
)
from loopscope.ops.microsoft.row import FLOATING, row


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


def split_inputs(query: Array, key: Array | None, value: Array | None, heads: int) -> QueryKeyValue:
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


_MASK = frozenset({ElementType.I32})
MULTI_HEAD: tuple[Operation, ...] = (
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


def decoder_masked_attention(
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    beam_width: Array | None = None,
    cache_indirection: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    num_heads: int,
    past_present_share_buffer: int,
    scale: float | None,
    mask_filter_value: float | None,
    output_qk: int,
) -> tuple[Array, Array, Array, Array]:
    """Compute the attention of one token of each sequence; also return the cache and the scores
    before softmax.

    ``[B, 1, N H]`` with keys and values of the token, or ``[B, N, L, H]`` for cross attention, ``->
    [B, 1, N H], [B, N, T, H] twice, [B, N, 1, T]``. Beams of one sequence are neighbours in the
    batch. ``cache_indirection [B / W, W, length]`` is the beam that wrote each earlier token.
    """
    if query.ndim != 3 or query.shape[1] != 1:
        raise ValueError(
            f"the query has shape {list(query.shape)}, expected [batch, 1, width]: one token"
        )
    if key is None:
        query, key, value = np.split(query, 3, axis=-1)
    is_cross = key.ndim == 4
    queries, now_key, now_value = add_bias(
        split_inputs(query, key, value, num_heads), bias, is_cross
    )
    used = past_sequence_length if past_present_share_buffer else None
    keys, present_key = with_past(past_key, now_key, used)
    values, present_value = with_past(past_value, now_value, used)
    if cache_indirection is not None and not is_cross:
        width = 1 if beam_width is None else whole_number(beam_width)
        rows = _writing_rows(cache_indirection, width, len(keys), keys.shape[2] - 1)
        keys, values = _from_beams(keys, rows), _from_beams(values, rows)
    scores = masked_scores(
        scaled_scores(queries, keys, scale), mask, attention_bias, mask_filter_value, None
    )
    dtype = query.dtype
    result = join_heads(weight_values(scores, values)).astype(dtype, copy=False)
    return (
        result,
        present_key.astype(dtype, copy=False),
        present_value.astype(dtype, copy=False),
        scores.astype(dtype, copy=False),
    )


def decoder_masked_self_attention(
    data: Array,
    weights: Array,
    bias: Array,
    mask: Array | None,
    past: Array,
    attention_bias: Array | None,
    past_sequence_length: Array,
    beam_width: Array | None = None,
    cache_indirection: Array | None = None,
    /,
    *,
    num_heads: int,
    past_present_share_buffer: int | None,
    scale: float | None,
    mask_filter_value: float | None,
    do_rotary: int | None,
) -> tuple[Array, Array]:
    """Compute the attention of one token from one product with adjacent queries, keys and values.

    ``[B, 1, D], [D, 3 N H], [3 N H], past [2, B, N, P, H] -> [B, 1, N H], present [2, B, N, P + 1,
    H]``. With ``past_present_share_buffer``, past and present are one buffer ``[2, B, N, M, H]``,
    whose keys have their numbers in groups of 16 bytes: ``[B, N, H / x, M, x]`` in memory.
    """
    if do_rotary:
        raise ValueError("do_rotary is 1, expected 0: export RotaryEmbedding before the attention")
    if past.ndim != 5 or past.shape[0] != 2:
        raise ValueError(
            f"the past has shape {list(past.shape)}, expected [2, batch, heads, length, width]"
        )
    query, key, value = np.split(project(data, weights, bias), 3, axis=-1)
    shares = bool(past_present_share_buffer)
    group = max(16 // past.dtype.itemsize, 1) if shares else 0
    result, present_key, present_value, _ = decoder_masked_attention(
        query,
        key,
        value,
        mask,
        attention_bias,
        _without_groups(past[0], group) if shares else past[0],
        past[1],
        past_sequence_length,
        beam_width,
        cache_indirection,
        num_heads=num_heads,
        past_present_share_buffer=int(shares),
        scale=scale,
        mask_filter_value=mask_filter_value,
        output_qk=0,
    )
    keys = _in_groups(present_key, group) if shares else present_key
    return (
        result.astype(data.dtype, copy=False),
        stack_cache(keys, present_value).astype(past.dtype, copy=False),
    )


def _without_groups(keys: Array, group: int) -> Array:
    """Return keys ``[B, N, M, H]`` that are stored as ``[B, N, H / group, M, group]``."""
    batch, heads, length, width = _check_groups(keys, group)
    stored = keys.reshape(batch, heads, width // group, length, group)
    return stored.swapaxes(2, 3).reshape(keys.shape)


def _in_groups(keys: Array, group: int) -> Array:
    """Return the inverse of ``_without_groups``."""
    batch, heads, length, width = _check_groups(keys, group)
    grouped = keys.reshape(batch, heads, length, width // group, group)
    return grouped.swapaxes(2, 3).reshape(keys.shape)


def _check_groups(keys: Array, group: int) -> tuple[int, int, int, int]:
    batch, heads, length, width = keys.shape
    if width % group:
        raise ValueError(
            f"heads of width {width} in a shared buffer, expected a multiple of {group}: "
            "their keys are stored in groups of 16 bytes"
        )
    return batch, heads, length, width


def _writing_rows(indirection: Array, width: int, batch: int, past: int) -> Array:
    """Return the row of the batch that wrote each earlier token, ``[B, past]``."""
    expected = [batch // width if width else 0, width]
    shape = list(indirection.shape)
    if not width or batch % width or shape[:2] != expected or shape[2] < past:
        raise ValueError(
            f"cache_indirection has shape {shape} for a batch of {batch} and {width} beams, "
            f"expected {[*expected, past]} or longer"
        )
    beams = indirection[:, :, :past].astype(np.int64)
    if ((beams < 0) | (beams >= width)).any():
        raise ValueError(f"cache_indirection names beams outside of 0 to {width - 1}")
    firsts = np.arange(0, batch, width)[:, None, None]
    return (firsts + beams).reshape(batch, past)


def _from_beams(cache: Array, rows: Array) -> Array:
    """Return a cache ``[B, N, T, H]`` whose earlier tokens are those of other rows."""
    result = np.array(cache)
    for place in range(rows.shape[1]):
        result[:, :, place] = cache[rows[:, place], :, place]
    return result


def infer_decoder_masked_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the batch from the query, and the width from separate values."""
    kind, batch = inputs[0].element_type, inputs[0].shape.at(0)
    value = inputs[2].shape if len(inputs) > 2 else None
    width = value.at(2) if value is not None and value.rank == 3 else UNKNOWN
    heads = static(max(attributes["num_heads"], 0))
    caches = [Known(kind, PartialShape((batch, heads, UNKNOWN, UNKNOWN)))] * 2
    scores = Known(kind, PartialShape((batch, heads, static(1), UNKNOWN)))
    return Known(kind, PartialShape((batch, static(1), width))), *caches, scores


def infer_decoder_masked_self_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the batch from the data, the width from the weights, the heads from the attribute."""
    kind, batch, weights = inputs[0].element_type, inputs[0].shape.at(0), inputs[1].shape
    whole = weights.at(1) if weights.rank == 2 else UNKNOWN
    heads = max(attributes["num_heads"], 1)
    width = static(whole.least // 3) if whole.is_static else UNKNOWN
    each = static(width.least // heads) if width.is_static else UNKNOWN
    present = PartialShape((static(2), batch, static(heads), UNKNOWN, each))
    return (
        Known(kind, PartialShape((batch, static(1), width))),
        Known(inputs[4].element_type, present),
    )


DECODER_MASKED: tuple[Operation, ...] = (
    row(
        "DecoderMaskedSelfAttention",
        decoder_masked_self_attention,
        infer=infer_decoder_masked_self_attention,
        inputs=(7, 9),
        optional_inputs=frozenset({3, 5}),
        outputs=2,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("past_present_share_buffer", "int", None),
            Attribute("scale", "float", None),
            Attribute("mask_filter_value", "float", None),
            Attribute("do_rotary", "int", None),
        ),
        types=(*[FLOATING] * 3, _MASK, FLOATING, FLOATING, _MASK, _MASK, _MASK),
    ),
    row(
        "DecoderMaskedMultiHeadAttention",
        decoder_masked_attention,
        infer=infer_decoder_masked_attention,
        inputs=(1, 11),
        outputs=4,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("past_present_share_buffer", "int", 0),
            Attribute("scale", "float", None),
            Attribute("mask_filter_value", "float", None),
            Attribute("output_qk", "int", 0),
        ),
        types=(*[FLOATING] * 3, _MASK, *[FLOATING] * 3, _MASK, _MASK, _MASK, FLOATING),
    ),
)
