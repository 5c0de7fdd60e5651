"""Linear attention of com.microsoft: LinearAttention, GatedDeltaNet, and the replay of its
updates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.microsoft.causal_convolution import captured_counts, sequence_bounds
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.onnx.stateful_layers import (
    DECAYING,
    RETRIEVING,
    UPDATE_RULES,
    Tokens,
    initial_state,
    linear_attention,
    run_over_tokens,
    update_state,
)

GATE_ACTIVATIONS = ("none", "softplus", "qwen", "sigmoid", "kda")
BETA_ACTIVATIONS = ("none", "sigmoid")
NORM_EPSILON = 1e-12
"""Number that is added to the sum of squares of a query or key before the root."""


def gated_delta_net(
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bounds: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    past_state: Array | None = None,
    decay_rate: Array | None = None,
    gate_bias: Array | None = None,
    capture_count: Array | None = None,
    capture_active: Array | None = None,
    /,
    *,
    update_rule: str = "gated_delta",
    gate_activation: str = "none",
    beta_activation: str = "none",
    qk_l2_norm: int = 0,
    scale: float = 0.0,
    gate_lower_bound: float = -5.0,
    state_update_capacity: int = 0,
    chunk_size: int = 64,
) -> tuple[Array, Array, Array]:
    """Compute linear attention over sequences of tokens that lie side by side.

    ``[tokens, Hk, K], [tokens, Hk, K], [tokens, H, V], [B+1], [tokens, H or H, K], [tokens, H], [B,
    H, V, K] -> [tokens, H, V], [B, H, V, K]``. Tokens may also be ``[B, T]``. Without key and value
    the query is all three side by side. The third output has decay, key and delta of the first
    tokens of each sequence. States are f32.
    """
    packed = PackedTokens.of(query, key, value, bounds, past_state)
    queries, keys, values = packed.queries, packed.keys, packed.values
    if qk_l2_norm:
        queries, keys = _normalized(queries), _normalized(keys)
    gate = _Gate(gate_activation, gate_lower_bound, decay_rate, gate_bias)
    decays = gate.decays(decay, packed) if update_rule in DECAYING else None
    rates = _rates(beta, packed, beta_activation) if update_rule in RETRIEVING else None
    is_active = capture_active is None or bool(capture_active.reshape(-1)[:1].any())
    counts = captured_counts(capture_count, np.diff(packed.starts), state_update_capacity)
    shape = (len(packed.starts) - 1, packed.heads, packed.key_size, packed.value_size)
    state = initial_state(None if past_state is None else past_state.swapaxes(2, 3), shape)
    scaling = scale or 1 / math.sqrt(packed.key_size or 1)
    shared = packed.heads // packed.key_heads
    output = np.empty(values.shape, np.float32)
    updates = []
    for index, (start, end) in enumerate(zip(packed.starts, packed.starts[1:], strict=False)):
        span = slice(start, end)
        tokens = Tokens(
            queries[None, span].repeat(shared, axis=2)[:, :, :, None],
            keys[None, span].repeat(shared, axis=2),
            values[None, span],
            None if decays is None else decays[None, span],
            None if rates is None else rates[None, span, :, None],
        )
        row_state = state[index : index + 1]
        if is_active:
            deltas = _deltas(row_state, tokens, counts[index])
            updates.append((start, deltas))
        output[span] = run_over_tokens(row_state, tokens, scaling)[0, :, :, 0]
    update = _packed_updates(
        updates, keys, decays, packed, state_update_capacity, len(packed.starts) - 1
    )
    result = rounded(output.reshape(*packed.leading, *values.shape[1:]), query.dtype)
    return result, np.ascontiguousarray(state.swapaxes(2, 3)), update


@dataclass(frozen=True, slots=True)
class PackedTokens:
    """Queries ``[tokens, Hk, K]``, keys ``[tokens, Hk, K]`` and values ``[tokens, H, V]`` in f32,
    with the first token of each sequence.
    """

    queries: Array
    keys: Array
    values: Array
    starts: Sequence[int]
    leading: tuple[int, ...]
    """Lengths of the token axes of the query: tokens, or batch and tokens."""

    @staticmethod
    def of(
        query: Array,
        key: Array | None,
        value: Array | None,
        bounds: Array | None,
        past_state: Array | None,
    ) -> PackedTokens:
        """Return the tokens; raise ``ValueError`` if the shapes do not fit together."""
        if (key is None) is not (value is None):
            raise ValueError("key and value are expected together, or neither of them")
        if key is None or value is None:
            arrays, leading = _split_side_by_side(query, past_state)
        else:
            leading = query.shape[:-2]
            if (
                query.ndim not in (3, 4)
                or query.shape != key.shape
                or (value.ndim != query.ndim or value.shape[:-2] != leading)
            ):
                shapes = [list(tensor.shape) for tensor in (query, key, value)]
                raise ValueError(
                    f"query, key and value have shapes {shapes[0]}, {shapes[1]} and {shapes[2]}, "
                    "expected [tokens, heads, size] with equal queries and keys"
                )
            arrays = [
                computable(tensor).reshape(-1, *tensor.shape[-2:]) for tensor in (query, key, value)
            ]
        heads, key_heads = arrays[2].shape[1], arrays[1].shape[1]
        if not key_heads or heads % key_heads:
            raise ValueError(
                f"there are {heads} value heads and {key_heads} key heads, expected a multiple"
            )
        tokens = len(arrays[0])
        if bounds is not None:
            starts: Sequence[int] = sequence_bounds(bounds, tokens)
        elif past_state is None or not len(past_state) or tokens % len(past_state):
            batch = None if past_state is None else len(past_state)
            raise ValueError(
                f"the initial state is for {batch} sequences and there are {tokens} tokens: "
                "without cu_seqlens, sequences of equal lengths are expected"
            )
        else:
            length = tokens // len(past_state)
            starts = [index * length for index in range(len(past_state) + 1)]
        queries, keys, values = arrays
        return PackedTokens(queries, keys, values, starts, leading)

    @property
    def heads(self) -> int:
        return self.values.shape[1]

    @property
    def key_heads(self) -> int:
        return self.keys.shape[1]

    @property
    def key_size(self) -> int:
        return self.keys.shape[2]

    @property
    def value_size(self) -> int:
        return self.values.shape[2]


def _split_side_by_side(
    packed: Array, past_state: Array | None
) -> tuple[list[Array], tuple[int, ...]]:
    """Return query, key and value of inputs that lie side by side, and their token axes."""
    if past_state is None or past_state.ndim != 4 or packed.ndim < 2:
        raise ValueError("packed queries, keys and values need an initial state of rank 4")
    _, heads, value_size, key_size = past_state.shape
    width, rest = divmod(packed.shape[-1] - heads * value_size, 2)
    if rest or not key_size or width <= 0 or width % key_size:
        raise ValueError(
            f"the packed input has width {packed.shape[-1]}, expected two widths that are "
            f"multiples of {key_size}, and {heads * value_size}"
        )
    rows = computable(packed).reshape(-1, packed.shape[-1])
    parts = (rows[:, :width], rows[:, width : 2 * width], rows[:, 2 * width :])
    sizes = (key_size, key_size, value_size)
    arrays = [part.reshape(len(rows), -1, size) for part, size in zip(parts, sizes, strict=True)]
    return arrays, packed.shape[:-1]


def _normalized(heads: Array) -> Array:
    """Return vectors of length 1."""
    squares = np.square(heads).sum(axis=-1, keepdims=True)
    result: Array = heads / np.sqrt(squares + heads.dtype.type(NORM_EPSILON))
    return result


@dataclass(frozen=True, slots=True)
class _Gate:
    """The computation of a decay from the input of the node."""

    activation: str
    lower_bound: float
    rate: Array | None
    bias: Array | None

    def decays(self, decay: Array | None, packed: PackedTokens) -> Array:
        """Return the logarithms of the decays, [tokens, H, K or 1]."""
        tokens, heads = packed.values.shape[:2]
        if decay is None or decay.size not in (tokens * heads, tokens * heads * packed.key_size):
            shape = None if decay is None else list(decay.shape)
            raise ValueError(
                f"decay has shape {shape}, expected [{tokens}, {heads}] "
                f"or [{tokens}, {heads}, {packed.key_size}]"
            )
        raw = computable(decay).reshape(tokens, heads, -1 if tokens * heads else 1)
        if self.activation == "none":
            return raw
        if self.rate is None or self.bias is None:
            raise ValueError(f"gate_activation is {self.activation!r}, which needs a_log, dt_bias")
        shifted = raw + self.bias.reshape(heads, -1)
        factor = np.exp(self.rate.reshape(heads, 1))
        result: Array
        if self.activation in ("softplus", "qwen"):
            result = -factor * np.logaddexp(shifted, np.float32(0))
        else:
            result = np.float32(self.lower_bound) * _sigmoid(factor * shifted)
        return result


def _rates(beta: Array | None, packed: PackedTokens, activation: str) -> Array:
    """Return the update rates [tokens, H]."""
    tokens, heads = packed.values.shape[:2]
    if beta is None or beta.size != tokens * heads:
        shape = None if beta is None else list(beta.shape)
        raise ValueError(f"beta has shape {shape}, expected [{tokens}, {heads}]")
    raw = computable(beta).reshape(tokens, heads)
    return _sigmoid(raw) if activation == "sigmoid" else raw


def _sigmoid(values: Array) -> Array:
    from scipy import special  # imported here: every start would wait for it

    result: Array = special.expit(values)
    return result


def _deltas(state: Array, tokens: Tokens, count: int) -> list[Array]:
    """Return what the first ``count`` tokens store, [H, V] each; ``state`` is unchanged."""
    copied = state.copy()
    return [update_state(copied, tokens, time)[0] for time in range(count)]


def _packed_updates(
    updates: Sequence[tuple[int, Sequence[Array]]],
    keys: Array,
    decays: Array | None,
    packed: PackedTokens,
    capacity: int,
    batch: int,
) -> Array:
    """Return decays, keys and deltas of the first tokens of each sequence, side by side."""
    width = 1 if decays is None else decays.shape[2]
    check_elements(batch * capacity * packed.heads * packed.value_size, "the updates")
    factors = np.zeros((batch, capacity, packed.heads * width), np.float32)
    rows = np.zeros((batch, capacity, packed.key_heads * packed.key_size), np.float32)
    differences = np.zeros((batch, capacity, packed.heads * packed.value_size), np.float32)
    for index, (start, deltas) in enumerate(updates):
        for number, delta in enumerate(deltas):
            factors[index, number] = 1 if decays is None else np.exp(decays[start + number]).ravel()
            rows[index, number] = keys[start + number].ravel()
            differences[index, number] = delta.ravel()
    return np.concatenate(
        [part.reshape(batch, -1) for part in (factors, rows, differences)], axis=1
    )


METADATA = 11
"""Number of integers that describe a replay: five offsets, four sizes, capacity and count."""


def replayed_state(source: Array, capsule: Array, destination: Array, metadata: Array, /) -> Array:
    """Apply captured updates of GatedDeltaNet to a state, and store it in ``destination``.

    ``[N], [M], [L], [11] -> [L]``. The metadata are the offsets of state, destination, decay, key
    and delta, the numbers of heads H, sizes V and K, key heads, capacity, and the number of
    updates.
    """
    if metadata.shape != (METADATA,) or min(metadata.tolist()) < 0:
        raise ValueError(f"the metadata are {metadata.tolist()[:12]}, expected 11 numbers from 0")
    offsets, sizes = metadata[:5].tolist(), metadata[5:].tolist()
    heads, value_size, key_size, key_heads, capacity, count = sizes
    if not 1 <= count <= capacity or not heads or not key_heads or heads % key_heads:
        raise ValueError(
            f"{count} of {capacity} updates are applied to {heads} heads with {key_heads} key "
            "heads, expected 1 to the capacity, and a multiple"
        )
    is_per_key = offsets[3] - offsets[2] == capacity * heads * key_size
    width = key_size if is_per_key else 1
    state = _section(source, offsets[0], (heads, value_size, key_size))
    decays = _section(capsule, offsets[2], (capacity, heads, 1, width))
    keys = _section(capsule, offsets[3], (capacity, key_heads, 1, key_size))
    deltas = _section(capsule, offsets[4], (capacity, heads, value_size, 1))
    replaced = _section(destination, offsets[1], state.shape)
    for decay, key, delta in zip(decays[:count], keys, deltas, strict=False):
        state = state * decay + key.repeat(heads // key_heads, axis=0) * delta
    result = destination.copy()
    result[offsets[1] : offsets[1] + replaced.size] = state.ravel()
    return result


def _section(backing: Array, offset: int, shape: tuple[int, ...]) -> Array:
    """Return an array of this shape from the elements that begin at ``offset``."""
    size = math.prod(shape)
    if backing.ndim != 1 or offset + size > backing.size:
        raise ValueError(
            f"{size} elements from {offset} on are needed of a tensor of shape "
            f"{list(backing.shape)}"
        )
    return backing[offset : offset + size].reshape(shape)


def infer_linear_attention(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the output from query and value, and the state from the numbers of heads."""
    query, _, value, *others = inputs
    past = others[0] if others else Known()
    count, more = attributes["kv_num_heads"], attributes["q_num_heads"]
    keys, values = (
        divided(known.shape.at(2), heads) for known, heads in ((query, more), (value, count))
    )
    width = static(max(count, more) * values.length) if values.is_static else Dimension()
    batch = query.shape.at(0)
    state_type = past.element_type or (query.element_type if len(others) == 0 else None)
    return (
        Known(query.element_type, PartialShape((batch, query.shape.at(1), width))),
        Known(state_type or query.element_type, PartialShape((batch, static(count), keys, values))),
    )


def divided(width: Dimension, heads: int) -> Dimension:
    """Return the size of one head; unknown if the width is, or is not a multiple."""
    if not width.is_static or heads < 1 or width.length % heads:
        return Dimension()
    return static(width.length // heads)


def infer_gated_delta_net(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the output from the value; the state has the shape of the past state."""
    query = inputs[0]
    value = inputs[2].shape if len(inputs) > 2 else DYNAMIC
    past = inputs[6].shape if len(inputs) > 6 else DYNAMIC
    return (
        Known(query.element_type, value),
        Known(ElementType.F32, past),
        Known(ElementType.F32, PartialShape((past.at(0), Dimension()))),
    )


def infer_replay(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the state, which has the shape of the destination."""
    return (Known(ElementType.F32, inputs[2].shape),)


_F32, _I32 = frozenset({ElementType.F32}), frozenset({ElementType.I32})
_RULE = Attribute("update_rule", "str", "gated_delta", allowed=UPDATE_RULES)

OPERATIONS: tuple[Operation, ...] = (
    row(
        "LinearAttention",
        linear_attention,
        infer=infer_linear_attention,
        inputs=(3, 6),
        outputs=2,
        attributes=(
            Attribute("q_num_heads", "int", least=1),
            Attribute("kv_num_heads", "int", least=1),
            _RULE,
            Attribute("scale", "float", 0.0),
            Attribute("chunk_size", "int", 64),
            Attribute("state_window", "int", 0),
        ),
        types=(FLOATING,),
    ),
    row(
        "GatedDeltaNet",
        gated_delta_net,
        infer=infer_gated_delta_net,
        inputs=(1, 11),
        outputs=3,
        attributes=(
            _RULE,
            Attribute("gate_activation", "str", "none", allowed=GATE_ACTIVATIONS),
            Attribute("beta_activation", "str", "none", allowed=BETA_ACTIVATIONS),
            Attribute("qk_l2_norm", "int", 0),
            Attribute("scale", "float", 0.0),
            Attribute("gate_lower_bound", "float", -5.0),
            Attribute("state_update_capacity", "int", 0),
            Attribute("chunk_size", "int", 64),
        ),
        types=(
            FLOATING,
            FLOATING,
            FLOATING,
            _I32,
            FLOATING,
            FLOATING,
            _F32,
            _F32,
            _F32,
            _I32,
            _I32,
        ),
    ),
    row(
        "GatedDeltaNetStateReplay",
        replayed_state,
        infer=infer_replay,
        inputs=(4, 4),
        types=(_F32, _F32, _F32, frozenset({ElementType.I64})),
    ),
)
