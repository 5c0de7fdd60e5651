"""Layers that carry a state from token to token: linear attention, causal depthwise convolution.

The state of linear attention is a matrix that each token updates and reads. The state of a causal
convolution consists of its last inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements

UPDATE_RULES = ("linear", "gated", "delta", "gated_delta")
DECAYING, RETRIEVING = ("gated", "gated_delta"), ("delta", "gated_delta")
"""Rules with a decay, and rules that subtract the value that the state has for a key."""


def linear_attention(
    query: Array,
    key: Array,
    value: Array,
    past_state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    /,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    update_rule: str = "gated_delta",
    scale: float = 0.0,
    chunk_size: int = 64,
    state_window: int = 0,
) -> tuple[Array, Array]:
    """Update a state with each token and read it with the token's query.

    ``[B, T, Hq*K], [B, T, Hk*K], [B, T, H*V], [B, H, K, V], [B, T, H or H*K], [B, T, H or 1] ->
    [B, T, max(Hq, H)*V], [B, H, K, V]``, where H is ``kv_num_heads``. ``decay`` is a logarithm. The
    state is computed in f32. ``chunk_size`` is a hint for GPUs and changes nothing.
    """
    if state_window:
        raise ValueError(
            f"state_window is {state_window}, expected 0: ONNX Runtime's CPU does not compute it"
        )
    heads = Heads.of(query, key, value, q_num_heads, kv_num_heads)
    rule = known_rule(update_rule)
    tokens = Tokens(
        heads.queries(computable(query)),
        heads.keys(computable(key)),
        computable(value).reshape(*heads.tokens, heads.count, heads.value_size),
        heads.decays(decay, rule),
        heads.rates(beta, rule),
    )
    state_shape = (heads.tokens[0], heads.count, heads.key_size, heads.value_size)
    state = initial_state(past_state, state_shape)
    output = run_over_tokens(state, tokens, scale or 1 / math.sqrt(heads.key_size or 1))
    state_type = query.dtype if past_state is None else past_state.dtype
    width = max(heads.of_queries, heads.count) * heads.value_size
    return (
        rounded(output.reshape(*heads.tokens, width), query.dtype),
        rounded(state, state_type),
    )


def known_rule(update_rule: str) -> str:
    """Return the update rule; raise ``ValueError`` if it is unknown."""
    if update_rule not in UPDATE_RULES:
        raise ValueError(
            f"update_rule is {update_rule[:40]!r}, expected one of {', '.join(UPDATE_RULES)}"
        )
    return update_rule


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of linear attention by head, in the type of the computation.

    ``query [B, T, H, G, K]``, ``key [B, T, H, K]``, ``value [B, T, H, V]``, ``decay [B, T, H, K or
    1]``, ``beta [B, T, H, 1]``. Each of the G queries of a head reads the same state.
    """

    query: Array
    key: Array
    value: Array
    decay: Array | None
    beta: Array | None


def run_over_tokens(state: Array, tokens: Tokens, scale: float) -> Array:
    """Update ``state [B, H, K, V]`` in place and return the outputs ``[B, T, H, G, V]``."""
    batch, steps, heads, group, _ = tokens.query.shape
    width = state.shape[-1]
    check_elements(batch * steps * heads * group * width, "the output")
    output = np.empty((batch, steps, heads, group, width), state.dtype)
    for time in range(steps):
        update_state(state, tokens, time)
        np.matmul(tokens.query[:, time], state, out=output[:, time])
    output *= state.dtype.type(scale)
    return output


def update_state(state: Array, tokens: Tokens, time: int) -> Array:
    """Update ``state`` in place by one token, and return what its key stores, ``[B, H, V]``.

    With an update rate, that is the rate times the difference between the value and the value that
    the state has for the key.
    """
    key, written = tokens.key[:, time], tokens.value[:, time]
    if tokens.decay is not None:
        state *= np.exp(tokens.decay[:, time])[..., None]
    if tokens.beta is not None:
        retrieved = np.matmul(key[..., None, :], state)[..., 0, :]
        written = tokens.beta[:, time] * (written - retrieved)
    state += key[..., None] * written[..., None, :]
    return written


def initial_state(past: Array | None, shape: tuple[int, ...]) -> Array:
    """Return a copy of the past state in the type of the computation, or zeros."""
    if past is None:
        check_elements(math.prod(shape), "the state")
        return np.zeros(shape, np.float32)
    if past.shape != shape:
        raise ValueError(f"the past state has shape {list(past.shape)}, expected {list(shape)}")
    return np.array(computable(past))


@dataclass(frozen=True, slots=True)
class Heads:
    """Numbers of heads and their sizes, derived from packed inputs."""

    tokens: tuple[int, int]
    """Batch and number of tokens."""
    of_queries: int
    of_keys: int
    count: int
    """Number of states, one for each value head."""
    key_size: int
    value_size: int

    @staticmethod
    def of(query: Array, key: Array, value: Array, q_num_heads: int, kv_num_heads: int) -> Heads:
        """Return the heads; raise ``ValueError`` if the widths or numbers do not fit together."""
        if any(tensor.ndim != 3 for tensor in (query, key, value)) or not (
            query.shape[:2] == key.shape[:2] == value.shape[:2]
        ):
            shapes = [list(tensor.shape) for tensor in (query, key, value)]
            raise ValueError(
                f"query, key and value have shapes {shapes[0]}, {shapes[1]} and {shapes[2]}, "
                "expected [batch, tokens, width] with equal batches and tokens"
            )
        if q_num_heads < 1 or kv_num_heads < 1:
            raise ValueError(
                f"q_num_heads is {q_num_heads} and kv_num_heads {kv_num_heads}, expected at least 1"
            )
        key_size, rest = divmod(query.shape[2], q_num_heads)
        value_size, value_rest = divmod(value.shape[2], kv_num_heads)
        if rest or value_rest or not key_size or key.shape[2] % key_size:
            raise ValueError(
                f"query, key and value have widths {query.shape[2]}, {key.shape[2]} and "
                f"{value.shape[2]}, expected multiples for {q_num_heads} and {kv_num_heads} heads"
            )
        key_heads = key.shape[2] // key_size
        more, fewer = max(q_num_heads, kv_num_heads), min(q_num_heads, kv_num_heads)
        if more % fewer or not key_heads or kv_num_heads % key_heads:
            raise ValueError(
                f"there are {q_num_heads} query heads, {key_heads} key heads and {kv_num_heads} "
                "value heads, expected multiples of each other"
            )
        return Heads(query.shape[:2], q_num_heads, key_heads, kv_num_heads, key_size, value_size)

    def queries(self, query: Array) -> Array:
        """Return the queries by state, [B, T, H, G, K]."""
        if self.of_queries >= self.count:
            group = self.of_queries // self.count
            return query.reshape(*self.tokens, self.count, group, self.key_size)
        return self._repeated(query, self.of_queries)[..., None, :]

    def keys(self, key: Array) -> Array:
        """Return the key of each state, [B, T, H, K]."""
        return self._repeated(key, self.of_keys)

    def _repeated(self, packed: Array, heads: int) -> Array:
        by_head = packed.reshape(*self.tokens, heads, self.key_size)
        return by_head if heads == self.count else by_head.repeat(self.count // heads, axis=2)

    def decays(self, decay: Array | None, rule: str) -> Array | None:
        """Return the decay of each state, [B, T, H, K or 1]; None if the rule has no decay."""
        if rule not in DECAYING:
            return None
        widths = (self.count, self.count * self.key_size)
        gate = self._gate(decay, "decay", widths, rule)
        return gate.reshape(*self.tokens, self.count, gate.shape[2] // self.count)

    def rates(self, beta: Array | None, rule: str) -> Array | None:
        """Return the update rate of each state, [B, T, H or 1, 1]; None if the rule has no rate."""
        if rule not in RETRIEVING:
            return None
        return self._gate(beta, "beta", (self.count, 1), rule)[..., None]

    def _gate(self, gate: Array | None, name: str, widths: tuple[int, int], rule: str) -> Array:
        if gate is None:
            raise ValueError(f"update_rule is {rule!r}, which needs the input {name}")
        if gate.ndim != 3 or gate.shape[:2] != self.tokens or gate.shape[2] not in widths:
            batch, tokens = self.tokens
            raise ValueError(
                f"{name} has shape {list(gate.shape)}, "
                f"expected [{batch}, {tokens}, {widths[0]} or {widths[1]}]"
            )
        wide: Array = computable(gate)
        return wide


ACTIVATIONS = ("none", "silu", "swish")


def causal_convolution(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    past_state: Array | None = None,
    /,
    *,
    activation: str = "none",
    dilation: int = 1,
    ndim: int = 1,
    channels_last: int = 0,
    state_window: int = 0,
    state_update_capacity: int = 0,
    state_channels_last: int = -1,
    state_length: int = 0,
    input_channel_offset: int = 0,
    input_channels: int = 0,
) -> tuple[Array, Array]:
    """Convolve each channel over time with the inputs before it; return the last inputs as state.

    ``[B, C, T], [C, 1, K], [C], [B, C, (K-1)*dilation] -> [B, C, T], [B, C, (K-1)*dilation]``. With
    ``channels_last`` data and states are ``[B, T, ...]``, where the further lengths multiply to C.
    """
    _refuse_extensions(
        ndim=(ndim, 1),
        state_window=(state_window, 0),
        state_update_capacity=(state_update_capacity, 0),
        state_channels_last=(state_channels_last, -1),
        state_length=(state_length, 0),
        input_channel_offset=(input_channel_offset, 0),
        input_channels=(input_channels, 0),
    )
    if data.ndim < 3 or (data.ndim > 3 and not channels_last):
        raise ValueError(f"the input has shape {list(data.shape)}, expected 3 lengths")
    wide = _channels_first(data) if channels_last else computable(data)
    batch, channels, steps = wide.shape
    size = kernel_size(weight, bias, channels)
    reach = (size - 1) * positive_dilation(dilation)
    if past_state is None:
        past = np.zeros((batch, channels, reach), wide.dtype)
    else:
        past = _channels_first(past_state) if channels_last else computable(past_state)
        if past.shape != (batch, channels, reach):
            lengths = [batch, reach, channels] if channels_last else [batch, channels, reach]
            raise ValueError(
                f"the past state has shape {list(past_state.shape)}, expected {lengths}"
            )
    check_elements(batch * channels * (reach + steps), "the input with its state")
    whole = np.concatenate((past, wide), axis=2)
    result = activated(convolved(whole, computable(weight), bias, steps, dilation), activation)
    state = whole[:, :, steps:]
    if channels_last:
        channel_axes = data.shape[2:]
        result = result.swapaxes(1, 2).reshape(data.shape)
        state = state.swapaxes(1, 2).reshape(batch, reach, *channel_axes)
    return (
        rounded(np.ascontiguousarray(result), data.dtype),
        rounded(np.ascontiguousarray(state), data.dtype),
    )


def convolved(whole: Array, weight: Array, bias: Array | None, steps: int, dilation: int) -> Array:
    """Convolve ``[..., C, reach + T]`` with ``weight [C, 1, K]`` to ``[..., C, T]``."""
    taps = weight[:, 0]
    result = np.zeros((*whole.shape[:-1], steps), whole.dtype)
    if bias is not None:
        result += computable(bias)[:, None]
    for tap in range(taps.shape[1]):
        result += whole[..., tap * dilation : tap * dilation + steps] * taps[:, tap, None]
    return result


def activated(values: Array, activation: str) -> Array:
    """Apply the activation of a convolution."""
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"activation is {activation[:40]!r}, expected one of {', '.join(ACTIVATIONS)}"
        )
    if activation == "none":
        return values
    with np.errstate(over="ignore"):
        result: Array = values / (1 + np.exp(-values))
    return result


def kernel_size(weight: Array, bias: Array | None, channels: int) -> int:
    """Return the number of taps; raise ``ValueError`` if weight or bias do not fit the channels."""
    if weight.ndim != 3 or weight.shape[:2] != (channels, 1) or not weight.shape[2]:
        raise ValueError(
            f"the weight has shape {list(weight.shape)}, expected [{channels}, 1, taps]"
        )
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"the bias has shape {list(bias.shape)}, expected [{channels}]")
    return weight.shape[2]


def positive_dilation(dilation: int) -> int:
    """Return the dilation; raise ``ValueError`` if it is less than 1."""
    if dilation < 1:
        raise ValueError(f"dilation is {dilation}, expected at least 1")
    return dilation


def _channels_first(data: Array) -> Array:
    """Return ``[B, T, ...]`` as ``[B, C, T]`` in the type of the computation."""
    batch, steps = data.shape[:2]
    channels = int(np.prod(data.shape[2:], dtype=np.int64))
    return computable(data).reshape(batch, steps, channels).swapaxes(1, 2)


def _refuse_extensions(**settings: tuple[int, int]) -> None:
    """Raise ``ValueError`` for a setting that only ONNX Runtime's GPU kernels compute.

    ``settings``: for each attribute its value, and the only value that is computed.
    """
    for name, (value, supported) in settings.items():
        if value != supported:
            raise ValueError(
                f"{name} is {value}, expected {supported}: ONNX Runtime's CPU computes no other"
            )
