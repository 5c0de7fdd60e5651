"""The operation GatedDeltaNet, which replaces the loop of a linear attention layer in OpenVINO's
compiled models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import common_type
from loopscope.ops.onnx.linear_attention import Tokens, initial_state, run_over_tokens
from loopscope.ops.precision import computable, rounded


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
