"""ONNX's Attention: masked scaled products of queries and keys as weights of the values, with
grouped heads, caches and windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.onnx.conditions import check_inputs

_BLOCK_WEIGHTS = 1 << 18
"""Number of weights computed at a time, so that they stay in a processor's cache from the first
product to the second.
"""
_PRECISIONS: Mapping[int, np.dtype] = {
    # TensorProto's floating-point types
    1: np.dtype(np.float32),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    16: np.dtype(ml_dtypes.bfloat16),
}
_RAW, _CAPPED, _BIASED, _WEIGHTS = range(4)
"""Values of ``qk_matmul_output_mode``: the stage of the scores that the node returns."""


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    filled: Array | None = None,
    /,
    *,
    outputs: int,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    scale: float | None = None,
    softcap: float = 0,
    is_causal: int = 0,
    softmax_precision: int | None = None,
    qk_matmul_output_mode: int = 0,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> tuple[Array, ...]:
    """Return ``softmax(query x keyT * scale + mask) x value``, the keys and values with those of
    the past, and the scores of the requested stage.

    ``[N, heads, L, E], [N, kv heads, S, E], [N, kv heads, S, V] -> [N, heads, L, V]``, or all of
    rank 3 with the heads side by side. ``filled`` is the number of valid keys of each batch item,
    ``[N]``. The result of a query that sees no key is 0.
    """
    heads = {"q_num_heads": q_num_heads, "kv_num_heads": kv_num_heads}
    check_inputs("Attention", (query, key, value, mask, past_key, past_value), heads)
    side_by_side = query.ndim == 3
    if side_by_side:
        query, key, value = (
            _split_heads(value, count or 1)
            for value, count in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads))
        )
    keys = key if past_key is None else np.concatenate((past_key, key), axis=2)
    values = value if past_value is None else np.concatenate((past_value, value), axis=2)
    batch, count, length, size = query.shape
    check_elements(batch * count * length * keys.shape[2], "the attention weights")
    past = 0 if past_key is None else past_key.shape[2]
    hidden = _hidden_keys(
        query, keys, filled, past, bool(is_causal), left_window_size, right_window_size
    )
    wide = computable(query)
    scaled = wide * wide.dtype.type(1 / np.sqrt(size) if scale is None else scale)
    bias = _score_bias(mask, hidden, (batch, count, length, keys.shape[2]), scaled.dtype)
    scores_out = (
        np.empty((batch, count, length, keys.shape[2]), scaled.dtype) if outputs > 3 else None
    )
    scoring = _Scoring(softcap, softmax_precision, scores_out, qk_matmul_output_mode)
    mixed = _mix_values(scaled, computable(keys), computable(values), bias, scoring)
    result = (
        mixed.swapaxes(1, 2).reshape(batch, length, count * values.shape[3])
        if side_by_side
        else mixed
    )
    scores = () if scores_out is None else (rounded(scores_out, query.dtype),)
    return (rounded(result, query.dtype), keys, values, *scores)[:outputs]


@dataclass(frozen=True, slots=True, eq=False)
class _Scoring:
    """Settings that turn scores into weights, and an array for the scores of all heads at the
    requested stage.
    """

    softcap: float
    precision: int | None
    scores_out: Array | None
    mode: int


def _mix_values(
    query: Array, keys: Array, values: Array, bias: Array | None, scoring: _Scoring
) -> Array:
    """Return the weighted sums of the values, computed for some heads at a time.

    ``[N, heads, L, E], [N, kv heads, S, E], [N, kv heads, S, V] -> [N, heads, L, V]``.
    """
    batch, count, length, size = query.shape
    group, depth = count // keys.shape[1], keys.shape[2]
    mixed = np.empty((batch, count, length, values.shape[3]), query.dtype)
    transposed = keys.swapaxes(-1, -2)
    for item, key_heads in _blocks(batch, keys.shape[1], group * length * depth):
        heads = slice(key_heads.start * group, key_heads.stop * group)
        # The queries of a group share their keys: one product for all of them.
        rows = (key_heads.stop - key_heads.start, group * length)
        scores = np.matmul(
            query[item, heads].reshape(*rows, size), transposed[item, key_heads]
        ).reshape(rows[0] * group, length, depth)
        scores_out = None if scoring.scores_out is None else scoring.scores_out[item, heads]
        block_bias = (
            bias
            if bias is None
            else bias[item if len(bias) > 1 else 0, heads if bias.shape[1] > 1 else slice(None)]
        )
        weights = _weigh(scores, block_bias, scoring, scores_out)
        mixed[item, heads] = np.matmul(
            weights.reshape(*rows, depth), values[item, key_heads]
        ).reshape(len(weights), length, values.shape[3])
    return mixed


def _split_heads(data: Array, heads: int) -> Array:
    return data.reshape(*data.shape[:2], heads, data.shape[2] // heads).swapaxes(1, 2)


def _blocks(batch: int, heads: int, weights: int) -> Iterator[tuple[int, slice]]:
    """Yield the number of a batch item and a slice of its key heads.

    ``weights`` is the number of weights of one key head.
    """
    block_heads = max(1, _BLOCK_WEIGHTS // max(1, weights))
    for item in range(batch):
        for start in range(0, heads, block_heads):
            yield item, slice(start, min(start + block_heads, heads))


def _hidden_keys(
    query: Array, keys: Array, filled: Array | None, past: int, causal: bool, left: int, right: int
) -> Array | None:
    """Return True for each key that a query may not see, as ``[1 or N, 1, L, S]``; None if every
    query may see all keys. The mask is not part of it.
    """
    if left < -1 or right < -1:
        raise ValueError(
            f"left_window_size is {left} and right_window_size {right}, expected -1 or more"
        )
    batch, _, length, _ = query.shape
    if filled is not None and (past or filled.shape != (batch,)):
        problem = f"{past} past keys" if past else f"shape {list(filled.shape)}"
        raise ValueError(f"nonpad_kv_seqlen: expected shape [{batch}] and no past, got {problem}")
    columns = np.arange(keys.shape[2])
    before = np.array([past]) if filled is None else filled.reshape(-1) - length
    beyond = columns - (np.arange(length)[:, None] + before.reshape(-1, 1, 1, 1))
    rules = []
    if causal:
        rules.append(beyond > 0)
    if right >= 0:
        rules.append(beyond > right)
    if left >= 0:
        rules.append(beyond < -left)
    if filled is not None:
        rules.append(
            np.broadcast_to(
                columns >= filled.reshape(-1, 1, 1, 1), (batch, 1, length, keys.shape[2])
            )
        )
    return np.logical_or.reduce(rules) if rules else None


def _score_bias(
    mask: Array | None, hidden: Array | None, shape: tuple[int, ...], dtype: np.dtype
) -> Array | None:
    """Return the summand of the scores, ``[1 or N, 1 or heads, L, S]``: minus infinity for hidden
    keys.
    """
    if mask is None:
        return None if hidden is None else np.where(hidden, dtype.type(-np.inf), dtype.type(0))
    if mask.ndim > 4 or not mask.ndim or mask.shape[-1] > shape[-1]:
        raise ValueError(
            f"the mask has shape {list(mask.shape)}, expected one that broadcasts to {list(shape)}"
        )
    added = (
        np.where(mask, dtype.type(0), dtype.type(-np.inf))
        if mask.dtype == np.bool_
        else computable(mask).astype(dtype, copy=False)
    )
    missing = shape[-1] - mask.shape[-1]
    if missing:
        added = np.pad(added, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-np.inf)
    added = added.reshape((1,) * (4 - mask.ndim) + added.shape)
    if hidden is not None:
        added = added + np.where(hidden, dtype.type(-np.inf), dtype.type(0))
    try:
        return np.broadcast_to(added, (*added.shape[:2], *shape[2:]))
    except ValueError:
        raise ValueError(
            f"the mask has shape {list(mask.shape)}, expected one that broadcasts to {list(shape)}"
        ) from None


def _weigh(
    weights: Array, bias: Array | None, scoring: _Scoring, scores_out: Array | None
) -> Array:
    """Turn scores ``[heads, L, S]`` into the weights of the values, in place. The requested stage
    is copied to ``scores_out``.
    """

    def store(stage: int) -> None:
        if scores_out is not None and scoring.mode == stage:
            scores_out[...] = weights

    store(_RAW)
    if scoring.softcap > 0:
        weights /= scoring.softcap
        np.tanh(weights, out=weights)
        weights *= scoring.softcap
    store(_CAPPED)
    if bias is not None:
        weights += bias
    store(_BIASED)
    if scoring.precision is not None:
        weights = _round_to_precision(weights, scoring.precision)
    _softmax_in_place(weights)
    if bias is not None:
        blind = bias.max(axis=-1, keepdims=True, initial=-np.inf) == -np.inf
        if blind.any():
            np.copyto(weights, 0, where=blind)
    store(_WEIGHTS)
    return weights


def _round_to_precision(scores: Array, precision: int) -> Array:
    """Round the scores to the type that ``softmax_precision`` names, and return them in the type in
    which arithmetic on it is done.
    """
    if precision not in _PRECISIONS:
        raise ValueError(
            f"softmax_precision is {precision}, expected one of {', '.join(map(str, _PRECISIONS))}"
        )
    return computable(scores.astype(_PRECISIONS[precision], copy=False))


def _softmax_in_place(weights: Array) -> None:
    """Apply softmax along the last axis in place; a row of minus infinities becomes 0."""
    greatest = weights.max(axis=-1, keepdims=True, initial=-np.inf)
    greatest[greatest == -np.inf] = 0
    weights -= greatest
    np.exp(weights, out=weights)
    # Row sums as a matrix-vector product: BLAS is several times faster than the reduction on short
    # rows.
    total = weights @ np.ones(weights.shape[-1], weights.dtype)
    total[total == 0] = 1
    weights /= total[..., None]
