"""Attention as the operations of the domain com.microsoft share it: heads, masks as numbers to
add, and weighted sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loopscope.ops.activation.softmax import softmax
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.precision import computable

LOWEST = float(np.finfo(np.float32).min)
"""What ONNX Runtime puts where a token comes later than the one that looks at it."""


def split_heads(array: Array, heads: int, name: str) -> Array:
    """``[B, S, N H] -> [B, N, S, H]``."""
    if array.ndim != 3 or heads < 1 or array.shape[2] % heads:
        raise ValueError(
            f"{name} has shape {list(array.shape)}, expected [batch, length, a multiple of the {heads} heads]"
        )
    batch, length, width = array.shape
    return array.reshape(batch, length, heads, width // heads).swapaxes(1, 2)


def joined_heads(array: Array) -> Array:
    """``[B, N, S, H] -> [B, S, N H]``."""
    batch, heads, length, width = array.shape
    return array.swapaxes(1, 2).reshape(batch, length, heads * width)


def scaled_scores(query: Array, key: Array, scale: float | None) -> Array:
    """``[B, N, S, H], [B, N, T, H] -> [B, N, S, T]``; without a scale, by the root of the width
    of a head.
    """
    if query.shape[:2] != key.shape[:2] or query.shape[3] != key.shape[3]:
        raise ValueError(
            f"queries of shape {list(query.shape)} and keys of shape {list(key.shape)} do not fit: [B, N, length, H] of both"
        )
    check_elements(math.prod(query.shape[:3]) * key.shape[2], "the scores")
    return np.matmul(
        query * query.dtype.type(scale or 1 / math.sqrt(query.shape[3] or 1)), key.swapaxes(-1, -2)
    )


def weighted(scores: Array, value: Array) -> Array:
    """``[B, N, S, T], [B, N, T, H] -> [B, N, S, H]``: values by the softmax of the scores."""
    if scores.shape[-1] != value.shape[-2]:
        raise ValueError(f"values of shape {list(value.shape)} do not fit {scores.shape[-1]} keys")
    return np.matmul(softmax(scores, axis=-1), value)


def to_add(
    mask: Array | None, bias: Array | None, scores: Array, filter_value: float, past: int | None
) -> Array | None:
    """What is added to scores ``[B, N, S, T]``: 0 where a query sees a key, and a bias; None where
    all see all and there is no bias.

    ``mask`` is ``[B, T]`` or ``[B, S, T]`` of 0 and others, or counts keys: ``[B]`` the number that
    is seen from the first on, ``[2 B]`` the ends and then the beginnings, ``[3 B + 2]`` the numbers
    first. ``past``: each query sees so many keys and, of the others, no later one than its own;
    None where the order does not matter.
    """
    batch, _, length, total = scores.shape
    made = (
        None
        if mask is None
        else np.where(_seen(mask, (batch, length, total)), np.float32(0), np.float32(filter_value))
    )
    if past is not None and length > 1:
        later = np.arange(total) > np.arange(past, past + length)[:, None]
        later[-1] = (
            # ONNX Runtime lets the last query see all keys, also where there are more of them than
            # queries
            False
        )
        made = np.where(
            later, np.float32(LOWEST), np.zeros((1, 1, 1, 1), np.float32) if made is None else made
        )
    if bias is None:
        return made
    checked = computable(checked_bias(bias, scores.shape))
    return checked if made is None else checked + made


def _seen(mask: Array, shape: Sequence[int]) -> Array:
    batch, length, total = shape
    places = np.arange(total)
    if mask.shape == (batch, total):
        return (mask > 0)[:, None, None]
    if mask.shape == (batch, length, total):
        return (mask > 0)[:, None]
    if mask.shape in ((batch,), (3 * batch + 2,)):
        return (places < mask[:batch, None])[:, None, None]
    if mask.shape == (2 * batch,):
        return ((places < mask[:batch, None]) & (places >= mask[batch:, None]))[:, None, None]
    raise ValueError(
        f"the mask has shape {list(mask.shape)}, expected [{batch}], [{2 * batch}], [{3 * batch + 2}], [{batch}, {total}] "
        f"or [{batch}, {length}, {total}]"
    )


def checked_bias(bias: Array, shape: Sequence[int]) -> Array:
    """A bias for scores of that shape; batch and heads may be 1."""
    batch, heads, length, total = shape
    if (
        bias.ndim != 4
        or bias.shape[0] not in (1, batch)
        or bias.shape[1] not in (1, heads)
        or bias.shape[2:] != (length, total)
    ):
        raise ValueError(
            f"attention_bias has shape {list(bias.shape)}, expected [{batch} or 1, {heads} or 1, {length}, {total}]"
        )
    return bias
