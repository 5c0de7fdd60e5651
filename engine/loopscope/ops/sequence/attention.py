"""The attention operations ScaledDotProductAttention and GatedDeltaNet.

GatedDeltaNet replaces the loop of a linear attention layer in OpenVINO's compiled models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import broadcast_shapes, common_type
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.onnx.stateful_layers import Tokens, initial_state, run_over_tokens


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


def gated_delta_net(
    query: Array,
    key: Array,
    value: Array,
    state: Array,
    gate: Array,
    beta: Array,
    /,
    *,
    fuse_qk_l2norm: bool,
    q_l2_norm_eps: float,
    k_l2_norm_eps: float,
) -> tuple[Array, Array]:
    """Update a state of each head with each token, and read it with the token's query.

    ``[B, T, Hk, K], [B, T, Hk, K], [B, T, H, V], [B, H, K, V], [B, T, H], [B, T, H] -> [B, T, H,
    V], [B, H, K, V]``. ``gate`` is the logarithm of the decay. The query is divided by the root of
    K. Source: ``openvino/op/gated_delta_net.hpp``.
    """
    batch, steps, heads, value_size = _checked(query, key, value, gate, beta)
    key_heads, key_size = query.shape[2:]
    queries, keys = computable(query), computable(key)
    if fuse_qk_l2norm:
        queries, keys = _normalized(queries, q_l2_norm_eps), _normalized(keys, k_l2_norm_eps)
    shared = heads // key_heads
    tokens = Tokens(
        queries.repeat(shared, axis=2)[:, :, :, None],
        keys.repeat(shared, axis=2),
        computable(value),
        computable(gate)[..., None],
        computable(beta)[..., None],
    )
    last = initial_state(state, (batch, heads, key_size, value_size))
    output = run_over_tokens(last, tokens, 1 / math.sqrt(key_size or 1))
    result = output.reshape(batch, steps, heads, value_size)
    return rounded(result, query.dtype), rounded(last, state.dtype)


def _checked(
    query: Array, key: Array, value: Array, gate: Array, beta: Array
) -> tuple[int, int, int, int]:
    """Return the shape of the values; raise ``ValueError`` if the shapes do not fit together."""
    if query.ndim != 4 or value.ndim != 4 or query.shape != key.shape:
        raise ValueError(
            f"query, key and value have shapes {list(query.shape)}, {list(key.shape)} and "
            f"{list(value.shape)}, expected [batch, tokens, heads, size] with equal queries "
            "and keys"
        )
    batch, steps, heads, size = value.shape
    by_token = (batch, steps, heads)
    if gate.shape != by_token or beta.shape != by_token or query.shape[:2] != by_token[:2]:
        raise ValueError(
            f"query, gate and beta have shapes {list(query.shape)}, {list(gate.shape)} and "
            f"{list(beta.shape)}, expected the batch, tokens and heads of the value "
            f"{list(by_token)}"
        )
    if not query.shape[2] or heads % query.shape[2]:
        raise ValueError(
            f"there are {heads} value heads and {query.shape[2]} key heads, expected a multiple"
        )
    return batch, steps, heads, size


def _normalized(heads: Array, epsilon: float) -> Array:
    squares = np.square(heads).sum(axis=-1, keepdims=True)
    result: Array = heads / np.sqrt(squares + heads.dtype.type(epsilon))
    return result


def infer_gated_delta_net(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Return the shapes of the values and of the state."""
    value, state = inputs[2], inputs[3]
    return Known(common_type(inputs), value.shape), Known(common_type(inputs), state.shape)
