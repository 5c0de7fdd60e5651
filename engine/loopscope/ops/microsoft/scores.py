"""Shared functions of the attention operations of com.microsoft.

They split heads, mask scores and weight values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
