"""ScaledDotProductAttention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import broadcast_shapes, common_type
from loopscope.ops.precision import computable, rounded


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    scale: Array | None = None,
    sink: Array | None = None,
    /,
    *,
    causal: bool,
) -> Array:
    """``softmax(query x keyT * scale + mask) x value``, batches broadcast.

    ``[N, ..., L, E], [N, ..., S, E], [N, ..., S, V] -> [N, ..., L, V]``. The mask is added; where
    it is boolean, false adds the lowest number. It is ignored with ``causal``. ``sink`` is one more
    column of weights that takes part in the sum and nothing else. A query whose scores are all
    minus infinity gives 0. A query with a boolean mask of nothing but false gives the mean of the
    values, as in OpenVINO's CPU plugin. Spec: sequence/scaled-dot-product-attention.
    """
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ValueError(
            f"shapes {list(query.shape)}, {list(key.shape)}, {list(value.shape)}: attention needs matrices"
        )
    wide_query, wide_key = computable(query), computable(key)
    factor = (
        1 / np.sqrt(wide_query.dtype.type(query.shape[-1]))
        if scale is None
        else computable(scale).reshape(-1)[0]
    )
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    check_elements(
        int(np.prod(batch, dtype=object)) * query.shape[-2] * key.shape[-2], "the attention weights"
    )
    weights = np.matmul(wide_query * factor, wide_key.swapaxes(-1, -2))
    if causal:
        hidden = np.arange(key.shape[-2]) > np.arange(query.shape[-2])[:, None]
        weights[..., hidden] = -np.inf
    elif mask is not None and mask.ndim:
        weights = _masked(weights, mask)
    _softmax(weights, None if sink is None else computable(sink))
    return rounded(np.matmul(weights, computable(value)), query.dtype)


def _masked(weights: Array, mask: Array) -> Array:
    """Weights of one batch for all masks of a bigger one are repeated, else changed in place."""
    shape = np.broadcast_shapes(weights.shape, mask.shape)
    target = weights if shape == weights.shape else np.array(np.broadcast_to(weights, shape))
    if mask.dtype == np.bool_:
        np.add(target, np.finfo(target.dtype).min, out=target, where=~mask)
    else:
        target += computable(mask)
    return target


def _softmax(weights: Array, sink: Array | None) -> None:
    """Apply softmax in place along the last axis; a row of minus infinities becomes zeros.

    The formula makes such a row NaN. Torch and OpenVINO's fused kernel make it 0, so that padding
    on the left of a batch does not reach the tokens after it.
    """
    if not weights.size:
        return
    greatest = weights.max(axis=-1, keepdims=True)
    if sink is not None:
        greatest = np.maximum(greatest, sink)
    greatest[greatest == -np.inf] = 0
    weights -= greatest
    np.exp(weights, out=weights)
    total = weights.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - greatest)
    total[total == 0] = 1
    weights /= total


def infer_attention(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Batches of query, key and value broadcast, rows of the query, columns of the value."""
    element_type = common_type(inputs[:3])
    query, key, value = (known.shape.dimensions for known in inputs[:3])
    if query is None or key is None or value is None:
        return (Known(element_type, DYNAMIC),)
    shapes = [PartialShape(one[:-2]) for one in (query, key, value)]
    mask = inputs[3].shape.dimensions if len(inputs) > 3 and not attributes["causal"] else ()
    if mask is None:
        return (Known(element_type, DYNAMIC),)
    batch = broadcast_shapes(*shapes, PartialShape(mask[:-2])).dimensions or ()
    return (Known(element_type, PartialShape((*batch, query[-2], value[-1]))),)
