"""GroupQueryAttention of com.microsoft, and SparseAttention, which sees some blocks of tokens.

Several query heads share a cached key and value head.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements, whole_number
from loopscope.ops.microsoft.attention_heads import (
    CacheEncoding,
    KeyValueCache,
    ScoreRule,
    check_bias,
    join_heads,
    sink_scores,
    split_heads,
    weighted_sum,
)
from loopscope.ops.microsoft.positions import positions_after, rotate_queries_and_keys
from loopscope.ops.microsoft.row import FLOATING, row


def group_query_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    last_places: Array,
    total_length: Array,
    cosines: Array | None = None,
    sines: Array | None = None,
    positions: Array | None = None,
    attention_bias: Array | None = None,
    sinks: Array | None = None,
    key_scale: Array | None = None,
    value_scale: Array | None = None,
    query_norm: Array | None = None,
    key_norm: Array | None = None,
    /,
    *,
    outputs: int,
    num_heads: int,
    kv_num_heads: int,
    do_rotary: int | None,
    rotary_interleaved: int | None,
    scale: float | None,
    softcap: float | None,
    smooth_softmax: int,
    causal: int,
    local_window_size: int,
    sliding_window_cache: int,
    qk_output: int,
    k_quant_type: str,
    v_quant_type: str,
    kv_cache_bit_width: int | None,
    qk_norm_epsilon: float,
) -> tuple[Array, ...]:
    """Compute attention over a cache and new tokens, causal unless ``causal`` is 0.

    A window limits the number of visible tokens. Queries are ``[B, S, N H]`` with keys and values
    ``[B, S, M H]`` each, or all three packed side by side. Caches are ``[B, M, P, H]``.
    ``last_places`` has for each batch item the number of its tokens so far, less one. ``-> [B, S, N
    H], [B, M, T, H] twice, [B, N, S, T]``.
    """
    _check_supported(query_norm, key_norm, causal, local_window_size)
    queries, keys, values = (
        computable(tensor) for tensor in _split_inputs(query, key, value, num_heads, kv_num_heads)
    )
    batch, _, length, width = queries.shape
    totals = _totals(last_places, batch)
    longest = whole_number(total_length)
    first_prompt = length == longest
    before = [0 if first_prompt else total - length for total in totals]
    _check_lengths(before, totals, longest)
    if do_rotary:
        token_positions = positions_after(before, length, positions, first_prompt)
        queries, keys = rotate_queries_and_keys(
            queries, keys, token_positions, cosines, sines, bool(rotary_interleaved)
        )
    window, bits = local_window_size if sliding_window_cache else None, kv_cache_bit_width or 8
    caches = [
        KeyValueCache.of(
            past, now, CacheEncoding.of(kind, amount, past, bits, query.dtype), window, longest
        )
        for past, now, kind, amount in (
            (past_key, keys, k_quant_type, key_scale),
            (past_value, values, v_quant_type, value_scale),
        )
    ]
    sinks = sink_scores(sinks, smooth_softmax, num_heads)
    rule = ScoreRule(
        scale or 1 / math.sqrt(width or 1), softcap or 0.0, local_window_size, bool(causal), sinks
    )
    shape = batch, num_heads, length, longest
    bias = None if attention_bias is None else computable(check_bias(attention_bias, shape))
    visible_scores = _zero_scores(shape) if outputs > 3 else None
    result = _attend(
        rule, queries, caches, before, totals, bias, visible_scores, shares=qk_output == 2
    )
    results = [join_heads(result).astype(query.dtype, copy=False)]
    if outputs > 1:
        results += [cache.with_new_tokens(before, totals) for cache in caches]
    if visible_scores is not None:
        results.append(visible_scores.astype(query.dtype, copy=False))
    return tuple(results)


def _check_supported(
    query_norm: Array | None, key_norm: Array | None, causal: int, window: int
) -> None:
    if query_norm is not None or key_norm is not None:
        raise ValueError(
            "q_norm_weight or k_norm_weight is given, "
            "which ONNX Runtime's CPU does not compute either"
        )
    if not causal and window != -1:
        raise ValueError(f"local_window_size is {window} where causal is 0, expected -1")


def _zero_scores(shape: tuple[int, int, int, int]) -> Array:
    check_elements(math.prod(shape), "the scores")
    return np.zeros(shape, np.float32)


def _attend(
    rule: ScoreRule,
    queries: Array,
    caches: Sequence[KeyValueCache],
    before: Sequence[int],
    totals: Sequence[int],
    bias: Array | None,
    visible_scores: Array | None,
    *,
    shares: bool,
) -> Array:
    """Compute ``[B, N, S, H]`` for each batch item separately.

    Their cache lengths may differ. ``visible_scores`` receives the scores of visible keys, or their
    softmax shares.
    """
    result = np.zeros_like(queries)
    for number, (query, earlier, total) in enumerate(zip(queries, before, totals, strict=True)):
        key, value = (cache.seen(number, earlier, total) for cache in caches)
        scores = rule.scores(
            query, key.rows, key.first, None if bias is None else bias[number % len(bias)]
        )
        visible = rule.seen(query.shape[1], scores.shape[2], key.first, earlier)
        weights = rule.shares(scores, visible)
        result[number] = weighted_sum(weights, value.rows)
        if visible_scores is not None:
            visible_scores[number, :, :, key.first : key.first + scores.shape[2]] = (
                weights if shares else np.where(visible, scores, 0)
            )
    return result


def _split_inputs(
    query: Array, key: Array | None, value: Array | None, heads: int, key_heads: int
) -> tuple[Array, Array, Array]:
    """Split separate or packed queries, keys and values into heads."""
    if key_heads < 1 or heads % key_heads:
        raise ValueError(
            f"{heads} heads of queries are not a multiple of {key_heads} heads of keys"
        )
    if (key is None) != (value is None):
        raise ValueError("keys come with values, or both are packed into the queries")
    if key is not None and value is not None:
        split = (
            split_heads(query, heads, "query"),
            split_heads(key, key_heads, "key"),
            split_heads(value, key_heads, "value"),
        )
        if len({(array.shape[0], array.shape[2], array.shape[3]) for array in split}) > 1:
            shapes = [list(tensor.shape) for tensor in (query, key, value)]
            raise ValueError(
                f"queries, keys and values have shapes {shapes}, "
                "expected the same batch, length and width of a head"
            )
        return split
    whole = split_heads(query, heads + 2 * key_heads, "query, packed with keys and values,")
    return whole[:, :heads], whole[:, heads : heads + key_heads], whole[:, heads + key_heads :]


def _totals(last_places: Array, batch: int) -> list[int]:
    if last_places.size != batch:
        raise ValueError(f"seqlens_k has shape {list(last_places.shape)}, expected [{batch}]")
    return [int(last_place) + 1 for last_place in last_places.reshape(-1)]


def _check_lengths(before: Sequence[int], totals: Sequence[int], longest: int) -> None:
    if min(before, default=0) < 0 or max(totals, default=0) > longest or min(totals, default=0) < 0:
        raise ValueError(
            f"seqlens_k says {[total - 1 for total in totals[:8]]}, "
            f"which does not fit total_sequence_length {longest}"
        )


def infer_group_query_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and length from the queries, and the query width of packed inputs."""
    query, kind = inputs[0].shape, inputs[0].element_type
    heads, shared = attributes["num_heads"], attributes["kv_num_heads"]
    if query.rank != 3:
        return (Known(kind, DYNAMIC),)
    packed = inputs[1].element_type is None and inputs[1].shape.rank is None
    width = query.at(2)
    if packed:
        whole = heads + 2 * shared
        width = static(width.least // whole * heads) if width.is_static and whole > 0 else UNKNOWN
    return (Known(kind, PartialShape((query.at(0), query.at(1), width))),)


_LENGTHS = frozenset({ElementType.I32})
_CACHE = FLOATING | {ElementType.U8, ElementType.I8}
GROUP_QUERIES: tuple[Operation, ...] = (
    row(
        "GroupQueryAttention",
        group_query_attention,
        infer=infer_group_query_attention,
        inputs=(7, 16),
        optional_inputs=frozenset({1, 2, 3, 4}),
        outputs=4,
        counts_outputs=True,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("kv_num_heads", "int", least=1),
            Attribute("do_rotary", "int", None),
            Attribute("rotary_interleaved", "int", None),
            Attribute("scale", "float", None),
            Attribute("softcap", "float", None),
            Attribute("smooth_softmax", "int", -1),
            Attribute("causal", "int", 1, allowed=(0, 1)),
            Attribute("local_window_size", "int", -1),
            Attribute("sliding_window_cache", "int", 0),
            Attribute("qk_output", "int", 0, allowed=(0, 1, 2)),
            Attribute("k_quant_type", "str", "NONE"),
            Attribute("v_quant_type", "str", "NONE"),
            Attribute("kv_cache_bit_width", "int", None),
            Attribute("qk_norm_epsilon", "float", 1e-6),
        ),
        types=(
            *[FLOATING] * 3,
            *[_CACHE] * 2,
            *[_LENGTHS] * 2,
            *[FLOATING] * 2,
            frozenset({ElementType.I64}),
            *[FLOATING] * 2,
            *[frozenset({ElementType.F32})] * 2,
            FLOATING,
        ),
    ),
)


def sparse_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array,
    past_value: Array,
    block_rows: Array,
    block_columns: Array,
    total_length: Array,
    key_totals: Array,
    cosines: Array | None = None,
    sines: Array | None = None,
    /,
    *,
    num_heads: int,
    kv_num_heads: int,
    scale: float | None,
    do_rotary: int,
    rotary_interleaved: int,
    sparse_block_size: int,
) -> tuple[Array, ...]:
    """Compute causal attention over a buffer of keys and values, limited to blocks of tokens.

    Inputs are those of GroupQueryAttention. ``block_rows [L, blocks + 1]`` and ``block_columns [L,
    nonzeros]`` are the visible blocks of L layouts, by rows; heads use the layouts in turn.
    """
    layouts = _layouts(block_rows, block_columns)
    totals, longest = key_totals.reshape(-1).astype(np.int64), whole_number(total_length)
    if (totals != longest).any():
        raise ValueError(
            f"the sequences have {totals[:8].tolist()} tokens, expected {longest} in each: ONNX "
            "Runtime's CPU does not define what shorter ones attend to"
        )
    before, length = totals - query.shape[1], query.shape[1]
    visible = _visible_tokens(layouts, before, length, longest, num_heads, sparse_block_size)
    return group_query_attention(
        query,
        key,
        value,
        past_key,
        past_value,
        totals - 1,
        total_length,
        cosines,
        sines,
        None,
        np.where(visible, 0, -np.inf).astype(np.float32),
        outputs=3,
        num_heads=num_heads,
        kv_num_heads=kv_num_heads,
        do_rotary=do_rotary,
        rotary_interleaved=rotary_interleaved,
        scale=scale,
        softcap=None,
        smooth_softmax=0,
        causal=1,
        local_window_size=-1,
        sliding_window_cache=0,
        qk_output=0,
        k_quant_type="NONE",
        v_quant_type="NONE",
        kv_cache_bit_width=None,
        qk_norm_epsilon=0.0,
    )


def _visible_tokens(
    layouts: Array, before: Array, length: int, longest: int, heads: int, block_size: int
) -> Array:
    """Return True for the tokens in visible blocks, ``[B, N, S, T]``."""
    rows = (before[:, None] + np.arange(length)) // block_size
    columns = np.arange(longest) // block_size
    blocks = layouts.shape[1]
    if (rows >= blocks).any() or (columns >= blocks).any() or (rows < 0).any():
        raise ValueError(f"{longest} tokens are more than {blocks} blocks of {block_size} tokens")
    by_head = layouts[np.arange(heads) % len(layouts)]
    visible: Array = by_head[:, rows[:, :, None], columns[None, None]].swapaxes(0, 1)
    return visible


def _layouts(rows: Array, columns: Array) -> Array:
    """Return the visible blocks of each layout, ``[L, blocks, blocks]``."""
    if rows.ndim != 2 or columns.ndim != 2 or len(rows) != len(columns) or not len(rows):
        raise ValueError(
            f"the block mask has row indices {list(rows.shape)} and column indices "
            f"{list(columns.shape)}, expected [layouts, blocks + 1] and [layouts, nonzeros]"
        )
    blocks = rows.shape[1] - 1
    result = np.zeros((len(rows), blocks, blocks), np.bool_)
    for layout, (starts, indices) in enumerate(zip(rows, columns, strict=True)):
        counts = np.diff(starts)
        used = indices[: int(starts[-1])]
        if (counts < 0).any() or len(used) != counts.sum() or ((used < 0) | (used >= blocks)).any():
            raise ValueError(f"the row and column indices of layout {layout} are not a block mask")
        result[layout, np.repeat(np.arange(blocks), counts), used] = True
    return result


def infer_sparse_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and length from the query, the width from separate queries, and the caches."""
    query, past_key, past_value = (inputs[number] for number in (0, 3, 4))
    key = inputs[1]
    is_packed = key.element_type is None and key.shape.rank is None
    width = UNKNOWN if is_packed else query.shape.at(2)
    heads = past_key.shape.at(3)
    if is_packed and heads.is_static:
        width = static(max(attributes["num_heads"], 0) * heads.length)
    shape = PartialShape((query.shape.at(0), query.shape.at(1), width))
    kind = query.element_type
    return Known(kind, shape), Known(kind, past_key.shape), Known(kind, past_value.shape)


SPARSE: tuple[Operation, ...] = (
    row(
        "SparseAttention",
        sparse_attention,
        infer=infer_sparse_attention,
        inputs=(9, 11),
        optional_inputs=frozenset({1, 2}),
        outputs=3,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("kv_num_heads", "int", least=1),
            Attribute("scale", "float", None),
            Attribute("do_rotary", "int", 0),
            Attribute("rotary_interleaved", "int", 0),
            Attribute("sparse_block_size", "int", least=1),
        ),
        types=(*[FLOATING] * 5, *[_LENGTHS] * 4, FLOATING),
    ),
)
