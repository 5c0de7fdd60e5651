"""GroupQueryAttention of com.microsoft: several query heads share a cached key and value head."""

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
from loopscope.ops.microsoft.positions import rotate
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
        token_positions = _token_positions(before, length, positions, first_prompt)
        queries, keys = _rotate(
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


def _token_positions(
    before: Sequence[int], length: int, positions: Array | None, first_prompt: bool
) -> Array:
    """Return the position of each token, ``[B, S]``.

    A first prompt has consecutive positions from the first given one, as ONNX Runtime documents.
    """
    if positions is None or (first_prompt and not positions.size):
        return np.array(before)[:, None] + np.arange(length)
    return (
        np.full((len(before), 1), positions.reshape(-1)[0]) + np.arange(length)
        if first_prompt
        else positions
    )


def _rotate(
    queries: Array,
    keys: Array,
    places: Array,
    cosines: Array | None,
    sines: Array | None,
    interleaved: bool,
) -> tuple[Array, Array]:
    if cosines is None or sines is None:
        raise ValueError("do_rotary is 1, and cos_cache or sin_cache is left out")
    width = 2 * cosines.shape[-1]
    query, key = (
        rotate(tensor, places, cosines, sines, interleaved=interleaved, width=width)
        for tensor in (queries, keys)
    )
    return query, key


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


_MASK = frozenset({ElementType.I32})
_CACHE = FLOATING | {ElementType.U8, ElementType.I8}
OPERATIONS: tuple[Operation, ...] = (
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
            _CACHE,
            _CACHE,
            _MASK,
            _MASK,
            FLOATING,
            FLOATING,
            frozenset({ElementType.I64}),
            FLOATING,
            FLOATING,
            frozenset({ElementType.F32}),
            frozenset({ElementType.F32}),
            FLOATING,
        ),
    ),
)
