"""PagedAttention of com.microsoft: packed sequences whose keys and values lie in blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.microsoft.attention_heads import (
    ScoreRule,
    join_heads,
    sink_scores,
    split_heads,
    weighted_sum,
)
from loopscope.ops.microsoft.positions import rotate
from loopscope.ops.microsoft.row import FLOATING, row


def paged_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    key_cache: Array,
    value_cache: Array | None,
    ends: Array,
    past_lengths: Array,
    block_table: Array,
    cosines: Array | None = None,
    sines: Array | None = None,
    slots: Array | None = None,
    sinks: Array | None = None,
    query_norm: Array | None = None,
    key_norm: Array | None = None,
    key_scale: Array | None = None,
    value_scale: Array | None = None,
    bounds: Array | None = None,
    /,
    *,
    num_heads: int,
    kv_num_heads: int,
    scale: float | None,
    softcap: float | None,
    local_window_size: int,
    is_causal: int,
    do_rotary: int,
    rotary_interleaved: int,
    rotary_offset: int,
    qk_norm_epsilon: float,
    kv_cache_layout: str,
    v_head_size: int,
    k_quant_type: str,
    v_quant_type: str,
    k_cache_dtype: str,
    v_cache_dtype: str,
) -> tuple[Array, Array, Array]:
    """Compute attention of packed sequences, and write their keys and values into the cache.

    ``[T, N H]`` with keys and values ``[T, M H]``, or all three packed, ``-> [T, N H]``. Caches are
    ``[blocks, block size, M, H]``. ``ends [B + 1]`` has the first token of each sequence and the
    number of tokens, ``past_lengths [B]`` the number of earlier tokens, ``block_table [B, most]``
    the blocks of each sequence in order, ``slots [T]`` the place of each new token in the cache (-1
    for none). ``bounds`` has no influence on the result.
    """
    value_cache = _separate_cache(value_cache, kv_cache_layout, v_head_size)
    _check_not_quantized(k_quant_type, v_quant_type)
    queries, keys, values = _split_tokens(query, key, value, num_heads, kv_num_heads)
    queries, keys = _normalize_heads(queries, keys, query_norm, key_norm, qk_norm_epsilon)
    pages = _Pages(key_cache, ends, past_lengths, block_table, queries.shape[2])
    if do_rotary:
        if cosines is None or sines is None:
            raise ValueError("do_rotary is 1, and cos_cache or sin_cache is left out")
        positions, interleaved = pages.positions()[None], bool(rotary_interleaved)
        queries, keys = (
            _rotated_from(rotary_offset, tensor, positions, cosines, sines, interleaved)
            for tensor in (queries, keys)
        )
    places = pages.places() if slots is None else _checked_slots(slots, pages)
    key_cache, value_cache = (
        _with_tokens(cache, now[0].swapaxes(0, 1), places)
        for cache, now in ((key_cache, keys), (value_cache, values))
    )
    rule = ScoreRule(
        scale or 1 / math.sqrt(queries.shape[3] or 1),
        softcap or 0.0,
        local_window_size,
        bool(is_causal),
        sink_scores(sinks, -1, num_heads),
    )
    result = _attend(rule, queries, pages, key_cache, value_cache)
    return join_heads(result)[0].astype(query.dtype, copy=False), key_cache, value_cache


def _separate_cache(value_cache: Array | None, layout: str, value_width: int) -> Array:
    """Return the cache of values; raise ``ValueError`` if one cache holds keys and values."""
    if value_cache is None or layout != "SEPARATE" or value_width:
        raise ValueError(
            f"kv_cache_layout is {layout[:40]!r}, "
            "expected SEPARATE with a cache of values: one cache for both is not supported"
        )
    return value_cache


def _check_not_quantized(key_type: str, value_type: str) -> None:
    if (key_type, value_type) != ("NONE", "NONE"):
        raise ValueError(
            f"the cache is quantized ({key_type[:40]}, {value_type[:40]}), expected NONE: "
            "export the model with a cache of floats"
        )


def _attend(
    rule: ScoreRule, queries: Array, pages: _Pages, key_cache: Array, value_cache: Array
) -> Array:
    """Compute the attention ``[1, N, T, H]`` of each packed sequence over its own blocks."""
    result = np.zeros(queries.shape, queries.dtype)
    for number, tokens in enumerate(pages.sequences()):
        rows = pages.rows(number)
        keys, values = (
            computable(cache.reshape(-1, *cache.shape[2:])[rows]).swapaxes(0, 1)
            for cache in (key_cache, value_cache)
        )
        scores = rule.scores(queries[0, :, tokens], keys, 0, None)
        visible = rule.seen(scores.shape[1], scores.shape[2], 0, pages.past[number])
        result[0, :, tokens] = weighted_sum(rule.shares(scores, visible), values)
    return result


class _Pages:
    """The sequences of a batch, and the rows of the cache that belong to each."""

    def __init__(
        self, cache: Array, ends: Array, past_lengths: Array, table: Array, tokens: int
    ) -> None:
        self.ends, self.past = ends.reshape(-1).tolist(), past_lengths.reshape(-1).tolist()
        if (
            len(self.ends) != len(self.past) + 1
            or self.ends[0] != 0
            or self.ends[-1] != tokens
            or sorted(self.ends) != self.ends
            or min(self.past, default=0) < 0
        ):
            raise ValueError(
                f"cumulative_sequence_length is {self.ends[:8]} and past_seqlens {self.past[:8]}: "
                f"expected an ascending list from 0 to {tokens} that is one longer than the other"
            )
        if cache.ndim != 4 or table.ndim != 2 or len(table) != len(self.past):
            raise ValueError(
                f"key_cache has shape {list(cache.shape)} and block_table {list(table.shape)}, "
                f"expected [blocks, size, heads, width] and [{len(self.past)}, blocks]"
            )
        self.room, self.size, self.table = cache.shape[0] * cache.shape[1], cache.shape[1], table

    def sequences(self) -> list[slice]:
        """Return the packed tokens of each sequence."""
        return [slice(*pair) for pair in zip(self.ends, self.ends[1:], strict=False)]

    def rows(self, number: int) -> Array:
        """Return the rows of the cache with all tokens of a sequence, new ones included."""
        first, last = self.ends[number : number + 2]
        places = np.arange(self.past[number] + last - first)
        blocks = places // self.size
        if places.size and blocks[-1] >= self.table.shape[1]:
            raise ValueError(
                f"sequence {number} has {places.size} tokens, and block_table has room for "
                f"{self.table.shape[1] * self.size}"
            )
        rows = self.table[number, blocks].astype(np.int64) * self.size + places % self.size
        if places.size and not 0 <= rows.min() <= rows.max() < self.room:
            raise ValueError(
                f"block_table names blocks from {self.table[number, blocks].min()} to "
                f"{self.table[number, blocks].max()}, "
                f"expected 0 to {self.room // max(self.size, 1) - 1}"
            )
        return np.asarray(rows)

    def positions(self) -> Array:
        """Return the position of each packed token in its sequence, ``[T]``."""
        parts = [
            past + np.arange(tokens.stop - tokens.start)
            for past, tokens in zip(self.past, self.sequences(), strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def places(self) -> Array:
        """Return the row of the cache for each packed token, ``[T]``."""
        parts = [self.rows(number)[past:] for number, past in enumerate(self.past)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _split_tokens(
    query: Array, key: Array | None, value: Array | None, heads: int, key_heads: int
) -> tuple[Array, Array, Array]:
    """Return queries ``[1, N, T, H]``, and keys and values ``[1, M, T, H]``."""
    if heads % key_heads:
        raise ValueError(
            f"{heads} heads of queries are not a multiple of {key_heads} heads of keys"
        )
    if query.ndim != 2 or (key is None) != (value is None):
        raise ValueError(
            f"the query has shape {list(query.shape)}, expected [tokens, width], "
            "with both keys and values or with both packed into it"
        )
    if key is not None and value is not None:
        split = (
            split_heads(computable(query)[None], heads, "query"),
            split_heads(computable(key)[None], key_heads, "key"),
            split_heads(computable(value)[None], key_heads, "value"),
        )
        if len({array.shape[2:] for array in split}) > 1:
            shapes = [list(tensor.shape) for tensor in (query, key, value)]
            raise ValueError(
                f"queries, keys and values have shapes {shapes}, "
                "expected the same number of tokens and width of a head"
            )
        return split
    whole = split_heads(computable(query)[None], heads + 2 * key_heads, "packed query")
    return whole[:, :heads], whole[:, heads : heads + key_heads], whole[:, heads + key_heads :]


def _normalize_heads(
    queries: Array, keys: Array, query_norm: Array | None, key_norm: Array | None, epsilon: float
) -> tuple[Array, Array]:
    """Return queries and keys normalized by their gains, unchanged without gains."""
    if (query_norm is None) != (key_norm is None):
        raise ValueError("q_norm_weight comes with k_norm_weight, and only one of them is given")
    if query_norm is None or key_norm is None:
        return queries, keys
    return _normalized(queries, query_norm, epsilon), _normalized(keys, key_norm, epsilon)


def _normalized(data: Array, gain: Array, epsilon: float) -> Array:
    """Divide each head by its root mean square and multiply it by ``gain [H]``."""
    square = np.mean(data * data, -1, keepdims=True)
    return data / np.sqrt(square + np.float32(epsilon)) * computable(gain)


def _rotated_from(
    first: int, data: Array, positions: Array, cosines: Array, sines: Array, interleaved: bool
) -> Array:
    """Rotate as many numbers of each head, from ``first`` on, as the tables are wide."""
    if not 0 <= first <= data.shape[3]:
        raise ValueError(f"rotary_offset is {first}, expected 0 to {data.shape[3]}")
    turned = rotate(
        data[..., first:],
        positions,
        cosines,
        sines,
        interleaved=interleaved,
        width=2 * cosines.shape[-1],
    )
    return np.concatenate((data[..., :first], turned), -1)


def _checked_slots(slots: Array, pages: _Pages) -> Array:
    """Return the given row of the cache for each token, ``[T]``; -1 for a token that has none."""
    if slots.shape != (pages.ends[-1],) or (
        slots.size and not -1 <= slots.min() <= slots.max() < pages.room
    ):
        raise ValueError(
            f"slot_mapping has shape {list(slots.shape)}, "
            f"expected [{pages.ends[-1]}] with slots from -1 to {pages.room - 1}"
        )
    return slots


def _with_tokens(cache: Array, tokens: Array, places: Array) -> Array:
    """Return a copy of the cache with tokens ``[T, M, H]`` at their rows; -1 is left out."""
    if cache.shape[2:] != tokens.shape[1:]:
        raise ValueError(
            f"a cache has shape {list(cache.shape)}, "
            f"expected [blocks, size, {tokens.shape[1]}, {tokens.shape[2]}]"
        )
    result = np.array(cache)
    written = places >= 0
    result.reshape(-1, *cache.shape[2:])[places[written]] = tokens[written].astype(cache.dtype)
    return result


def infer_paged_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the number of tokens from the queries, and the caches from the inputs."""
    query, kind = inputs[0].shape, inputs[0].element_type
    caches = Known(inputs[3].element_type, inputs[3].shape), inputs[4]
    if query.rank != 2:
        return Known(kind, DYNAMIC), *caches
    width = query.at(1)
    if inputs[1].element_type is None and inputs[1].shape.rank is None:
        heads = attributes["num_heads"]
        whole = heads + 2 * attributes["kv_num_heads"]
        width = static(width.least // whole * heads) if width.is_static else UNKNOWN
    return Known(kind, PartialShape((query.at(0), width))), *caches


_I32 = frozenset({ElementType.I32})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "PagedAttention",
        paged_attention,
        infer=infer_paged_attention,
        inputs=(8, 17),
        optional_inputs=frozenset({1, 2, 4}),
        outputs=3,
        attributes=(
            Attribute("num_heads", "int", least=1),
            Attribute("kv_num_heads", "int", least=1),
            Attribute("scale", "float", None),
            Attribute("softcap", "float", None),
            Attribute("local_window_size", "int", -1),
            Attribute("is_causal", "int", 1, allowed=(0, 1)),
            Attribute("do_rotary", "int", 0),
            Attribute("rotary_interleaved", "int", 0),
            Attribute("rotary_offset", "int", 0),
            Attribute("qk_norm_epsilon", "float", 1e-6),
            Attribute("kv_cache_layout", "str", "SEPARATE"),
            Attribute("v_head_size", "int", 0),
            Attribute("k_quant_type", "str", "NONE"),
            Attribute("v_quant_type", "str", "NONE"),
            Attribute("k_cache_dtype", "str", ""),
            Attribute("v_cache_dtype", "str", ""),
        ),
        types=(*[FLOATING] * 5, _I32, _I32, _I32, FLOATING, FLOATING, _I32, *[FLOATING] * 3),
    ),
)
