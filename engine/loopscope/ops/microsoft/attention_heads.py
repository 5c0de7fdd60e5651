"""Heads of attention in com.microsoft: splitting, scores, masks, weighted values, and the cache of
keys and values.

Several query heads may share a head of keys and values. Their scores are bounded, masked by
position and shared out with optional sinks. The cache of GroupQueryAttention is complete or a
sliding window, and stores floats or quantized numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.activation import softmax
from loopscope.ops.declare import Array
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements

LOWEST = float(np.finfo(np.float32).min)
"""Score that ONNX Runtime assigns to a key after the query in causal attention."""
_FILTER = -10000.0
"""Default score that is added where a mask is 0."""


def split_heads(array: Array, heads: int, name: str) -> Array:
    """Reshape ``[B, S, N H]`` to ``[B, N, S, H]``."""
    if array.ndim != 3 or heads < 1 or array.shape[2] % heads:
        raise ValueError(
            f"{name} has shape {list(array.shape)}, "
            f"expected [batch, length, a multiple of the {heads} heads]"
        )
    batch, length, width = array.shape
    return array.reshape(batch, length, heads, width // heads).swapaxes(1, 2)


def join_heads(array: Array) -> Array:
    """Reshape ``[B, N, S, H]`` to ``[B, S, N H]``."""
    batch, heads, length, width = array.shape
    return array.swapaxes(1, 2).reshape(batch, length, heads * width)


def scaled_scores(query: Array, key: Array, scale: float | None) -> Array:
    """Compute scores: ``[B, N, S, H], [B, N, T, H] -> [B, N, S, T]``.

    The default scale is one over the root of a head's width.
    """
    if query.shape[:2] != key.shape[:2] or query.shape[3] != key.shape[3]:
        raise ValueError(
            f"queries of shape {list(query.shape)} and keys of shape {list(key.shape)} do not fit: "
            "[B, N, length, H] of both"
        )
    check_elements(math.prod(query.shape[:3]) * key.shape[2], "the scores")
    return np.matmul(
        query * query.dtype.type(scale or 1 / math.sqrt(query.shape[3] or 1)), key.swapaxes(-1, -2)
    )


def weight_values(scores: Array, value: Array) -> Array:
    """Weight values by the softmax of scores: ``[B, N, S, T], [B, N, T, H] -> [B, N, S, H]``."""
    if scores.shape[-1] != value.shape[-2]:
        raise ValueError(f"values of shape {list(value.shape)} do not fit {scores.shape[-1]} keys")
    return np.matmul(softmax(scores, axis=-1), value)


def masked_scores(
    scores: Array,
    mask: Array | None,
    bias: Array | None,
    filter_value: float | None,
    past: int | None,
) -> Array:
    """Add the mask and the bias to scores ``[B, N, S, T]``.

    ``mask`` is ``[B, T]`` or ``[B, S, T]`` with 0 for hidden keys, or contains counts: ``[B]`` the
    number of visible first keys, ``[2 B]`` the ends and then the beginnings, ``[3 B + 2]`` the
    numbers first. The score of a hidden key gets ``filter_value`` (default: -10,000). ``past`` is
    the number of earlier keys of causal attention: each query sees these and the keys up to its own
    position. None means not causal.
    """
    addend = _additive_mask(
        mask, bias, scores.shape, _FILTER if filter_value is None else filter_value, past
    )
    return scores if addend is None else scores + addend


def _additive_mask(
    mask: Array | None,
    bias: Array | None,
    shape: Sequence[int],
    filter_value: float,
    past: int | None,
) -> Array | None:
    """Return the addend, which is 0 where a query sees a key; None if there is nothing to add."""
    batch, _, length, total = shape
    addend = (
        None
        if mask is None
        else np.where(
            _visible(mask, (batch, length, total)), np.float32(0), np.float32(filter_value)
        )
    )
    if past is not None and length > 1:
        is_later = np.arange(total) > np.arange(past, past + length)[:, None]
        # ONNX Runtime shows all keys to the last query, also if there are more keys than queries.
        is_later[-1] = False
        addend = np.where(
            is_later,
            np.float32(LOWEST),
            np.zeros((1, 1, 1, 1), np.float32) if addend is None else addend,
        )
    if bias is None:
        return addend
    checked = computable(check_bias(bias, shape))
    return checked if addend is None else checked + addend


def _visible(mask: Array, shape: Sequence[int]) -> Array:
    batch, length, total = shape
    positions = np.arange(total)
    if mask.shape == (batch, total):
        return (mask > 0)[:, None, None]
    if mask.shape == (batch, length, total):
        return (mask > 0)[:, None]
    if mask.shape in ((batch,), (3 * batch + 2,)):
        return (positions < mask[:batch, None])[:, None, None]
    if mask.shape == (2 * batch,):
        return ((positions < mask[:batch, None]) & (positions >= mask[batch:, None]))[:, None, None]
    raise ValueError(
        f"the mask has shape {list(mask.shape)}, expected [{batch}], [{2 * batch}], "
        f"[{3 * batch + 2}], [{batch}, {total}] or [{batch}, {length}, {total}]"
    )


def check_bias(bias: Array, shape: Sequence[int]) -> Array:
    """Check a bias for scores of this shape, whose batch and heads may be 1, and return it."""
    batch, heads, length, total = shape
    if (
        bias.ndim != 4
        or bias.shape[0] not in (1, batch)
        or bias.shape[1] not in (1, heads)
        or bias.shape[2:] != (length, total)
    ):
        raise ValueError(
            f"attention_bias has shape {list(bias.shape)}, "
            f"expected [{batch} or 1, {heads} or 1, {length}, {total}]"
        )
    return bias


def sink_scores(sinks: Array | None, smooth: int, heads: int) -> Array | None:
    """Return for each head the score of an additional empty key; None without sinks."""
    if sinks is None:
        return np.zeros((heads, 1, 1), np.float32) if smooth == 1 else None
    if sinks.shape != (heads,):
        raise ValueError(f"head_sink has shape {list(sinks.shape)}, expected [{heads}]")
    return computable(sinks).reshape(heads, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRule:
    """The computation of scores and of their softmax shares."""

    scale: float
    softcap: float
    window: int
    """Number of keys that a token sees, its own included; negative for no limit."""
    causal: bool
    sinks: Array | None

    def scores(self, query: Array, key: Array, first: int, bias: Array | None) -> Array:
        """Compute scores: ``[N, S, H], [M, R, H] -> [N, S, R]``.

        The first key has the position ``first`` on the last axis of the bias.
        """
        heads, length, width = query.shape
        shared, count = key.shape[:2]
        check_elements(heads * length * count, "the scores")
        scaled = (query * np.float32(self.scale)).reshape(shared, heads // shared, length, width)
        scores = np.matmul(scaled, key.swapaxes(-1, -2)[:, None]).reshape(heads, length, count)
        if self.softcap:
            scores = np.float32(self.softcap) * np.tanh(scores / np.float32(self.softcap))
        return scores if bias is None else scores + bias[..., first : first + count]

    def shares(self, scores: Array, seen: Array) -> Array:
        """Return the softmax over the visible keys of each query, with 0 for all other keys."""
        powers = np.where(seen, scores, np.float32(-np.inf))
        top = powers.max(-1, keepdims=True, initial=-np.inf)
        top = top if self.sinks is None else np.maximum(top, self.sinks)
        powers -= np.where(np.isfinite(top), top, 0)
        np.exp(powers, out=powers)
        total = powers.sum(-1, keepdims=True)
        total += 0 if self.sinks is None else np.exp(self.sinks - top)
        powers /= np.where(total == 0, 1, total)
        return powers

    def seen(self, length: int, count: int, first: int, before: int) -> Array:
        """Return a mask of the keys that each query sees, from the first positions of both."""
        keys, queries = np.arange(first, first + count), np.arange(before, before + length)[:, None]
        visible = (keys <= queries) if self.causal else np.ones((length, count), np.bool_)
        return visible & (keys > queries - self.window) if self.window >= 0 else visible


def weighted_sum(shares: Array, value: Array) -> Array:
    """Weight the values: ``[N, S, R], [M, R, H] -> [N, S, H]``."""
    heads, length, count = shares.shape
    shared, _, width = value.shape
    grouped = shares.reshape(shared, heads // shared, length, count)
    return np.matmul(grouped, value[:, None]).reshape(heads, length, width)


@dataclass(frozen=True, slots=True, eq=False)
class CacheEncoding:
    """Encoding of a cache: floats (``scale`` None), 8 bits, or two 4-bit numbers per byte."""

    dtype: np.dtype
    scale: Array | None = None
    bits: int = 8

    @staticmethod
    def of(
        kind: str, scale: Array | None, past: Array | None, bits: int, dtype: np.dtype
    ) -> CacheEncoding:
        """Return the encoding for a node's attributes and inputs.

        ``ValueError`` if they are inconsistent.
        """
        if kind == "NONE":
            return CacheEncoding(dtype)
        if kind not in ("PER_TENSOR", "PER_CHANNEL") or bits not in (4, 8) or scale is None:
            raise ValueError(
                f"the cache is quantized {kind[:40]!r} in {bits} bits "
                f"{'with' if scale is not None else 'without'} a scale: "
                "expected PER_TENSOR or PER_CHANNEL, 8 or 4 bits, and a scale"
            )
        narrow = np.dtype(np.int8 if bits == 8 else np.uint8)
        if past is not None and past.dtype != narrow:
            raise ValueError(f"a cache of {bits} bits has the type {past.dtype}, expected {narrow}")
        return CacheEncoding(
            narrow,
            computable(scale).reshape(-1, 1, scale.shape[-1])
            if scale.ndim > 1
            else computable(scale),
            bits,
        )

    def encode(self, values: Array) -> Array:
        """Encode values ``[..., L, H]``, rounded to the nearest, halves to even."""
        if self.scale is None:
            return values.astype(self.dtype, copy=False)
        limit = 2 ** (self.bits - 1)
        quantized = np.clip(np.rint(values / self.scale), -limit, limit - 1)
        if self.bits == 8:
            return quantized.astype(np.int8)
        codes = (quantized + limit).astype(np.uint8)
        return np.asarray(codes[..., ::2] | codes[..., 1::2] << 4)

    def decode(self, stored: Array) -> Array:
        """Decode the content of a cache to floats."""
        if self.scale is None:
            return computable(stored)
        if self.bits == 8:
            return stored.astype(np.float32) * self.scale
        codes = np.stack((stored & 15, stored >> 4), -1).reshape(*stored.shape[:-1], -1)
        return (codes.astype(np.float32) - 8) * self.scale


@dataclass(frozen=True, slots=True, eq=False)
class VisibleRows:
    """Rows ``[M, R, H]`` that a batch item's queries can see, and the position of the first row."""

    rows: Array
    first: int


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueCache:
    """The stored keys or values of earlier tokens, and those of new tokens ``[B, M, S, H]``."""

    past: Array | None
    now: Array
    stored: CacheEncoding
    window: int | None
    """Minimum number of tokens in a sliding-window cache; None for a complete cache."""
    longest: int
    """Maximum number of tokens of a batch item, including the new ones."""

    @staticmethod
    def of(
        past: Array | None, now: Array, stored: CacheEncoding, window: int | None, longest: int
    ) -> KeyValueCache:
        """Return the cache; ``ValueError`` if the shapes do not fit."""
        batch, heads, _, width = now.shape
        expected = (
            batch,
            heads,
            width // 2 if stored.scale is not None and stored.bits == 4 else width,
        )
        if past is not None and (
            past.ndim != 4 or (past.shape[0], past.shape[1], past.shape[3]) != expected
        ):
            raise ValueError(
                f"a cache has shape {list(past.shape)}, "
                f"expected [{batch}, {heads}, length, {expected[2]}]"
            )
        if window is not None and (past is None or not 0 < window <= past.shape[2]):
            room = "left out" if past is None else f"of {past.shape[2]} places"
            raise ValueError(
                f"with sliding_window_cache local_window_size is {window} and the cache {room}, "
                "expected at least as many"
            )
        return KeyValueCache(past, now, stored, window, longest)

    @property
    def room(self) -> int:
        """Number of tokens that the cache can store."""
        before = 0 if self.past is None else self.past.shape[2]
        return before if self.window is not None else max(before, self.longest)

    def resident(self, tokens: int) -> int:
        """Return how many of ``tokens`` remain in the cache.

        A full sliding-window cache evicts as many tokens at once as the window permits.
        """
        if self.window is None or tokens <= self.room:
            return tokens
        evicted = self.room - self.window + 1
        return tokens - evicted * math.ceil((tokens - self.room) / evicted)

    def seen(self, number: int, before: int, total: int) -> VisibleRows:
        """Return the rows that batch item ``number`` can see.

        ``before`` and ``total`` are its tokens without and with the new ones; further new tokens
        are padding.
        """
        new = self.stored.decode(self.stored.encode(self.now[number, :, : max(total - before, 0)]))
        stored_count = self.resident(before)
        if not stored_count:
            return VisibleRows(new, before)
        room = 0 if self.past is None else self.past.shape[2]
        if self.past is None or stored_count > room:
            raise ValueError(
                f"{before} tokens come before the new ones, and the cache has room for {room}"
            )
        return VisibleRows(
            np.concatenate((self.stored.decode(self.past[number, :, :stored_count]), new), 1),
            before - stored_count,
        )

    def with_new_tokens(self, before: Sequence[int], totals: Sequence[int]) -> Array:
        """Return the cache with the new tokens appended, padded with 0."""
        batch, heads, _, width = self.now.shape
        now = self.stored.encode(self.now)
        check_elements(batch * heads * self.room * width, "the cache")
        result = np.zeros((batch, heads, self.room, now.shape[3]), now.dtype)
        for number, (earlier, total) in enumerate(zip(before, totals, strict=True)):
            stored_count = self.resident(earlier)
            tokens = (
                now[number]
                if self.past is None or not stored_count
                else np.concatenate((self.past[number, :, :stored_count], now[number]), 1)
            )
            retained = (
                tokens
                if self.window is None
                else tokens[:, tokens.shape[1] - self.resident(total) :]
            )
            result[number, :, : retained.shape[1]] = retained
        return result
