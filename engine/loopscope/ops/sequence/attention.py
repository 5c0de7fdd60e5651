"""The operation ScaledDotProductAttention."""

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
    """Compute ``softmax(query x keyT * scale + mask) x value``, with batches broadcast.

    ``[N, ..., L, E], [N, ..., S, E], [N, ..., S, V] -> [N, ..., L, V]``. The mask is added; where
    it is boolean, false adds the lowest number. It is ignored with ``causal``. ``sink`` is an
    additional column of weights that takes part only in the sum. A query with only scores of minus
    infinity has a result of 0. A query whose boolean mask is all false has the mean of the values,
    as in OpenVINO's CPU plugin. Spec: sequence/scaled-dot-product-attention.
    """
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ValueError(
            f"shapes {list(query.shape)}, {list(key.shape)}, {list(value.shape)}: "
            "attention needs matrices"
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
        weights = _add_mask(weights, mask)
    _softmax(weights, None if sink is None else computable(sink))
    return rounded(np.matmul(weights, computable(value)), query.dtype)


def _add_mask(weights: Array, mask: Array) -> Array:
    """Add the mask to the weights, in place unless a larger batch of masks requires a repeated
    copy.
    """
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
    maximum = weights.max(axis=-1, keepdims=True)
    if sink is not None:
        maximum = np.maximum(maximum, sink)
    maximum[maximum == -np.inf] = 0
    weights -= maximum
    np.exp(weights, out=weights)
    total = weights.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - maximum)
    total[total == 0] = 1
    weights /= total


def infer_attention(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the broadcast batches of query, key and value, rows of the query, and columns of the
    value.
    """
    element_type = common_type(inputs[:3])
    query, key, value = (known.shape.dimensions for known in inputs[:3])
    if query is None or key is None or value is None:
        return (Known(element_type, DYNAMIC),)
    shapes = [PartialShape(dimensions[:-2]) for dimensions in (query, key, value)]
    mask = inputs[3].shape.dimensions if len(inputs) > 3 and not attributes["causal"] else ()
    if mask is None:
        return (Known(element_type, DYNAMIC),)
    batch = broadcast_shapes(*shapes, PartialShape(mask[:-2])).dimensions or ()
    return (Known(element_type, PartialShape((*batch, query[-2], value[-1]))),)
