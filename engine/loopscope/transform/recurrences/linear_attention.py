"""LinearAttention, GatedDeltaNet and causal convolutions as loops over tokens.

A convolution has the last inputs as its state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.builder import ops
from loopscope.builder.loop import Entered, Iteration, Parts, build_loop
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ops.onnx.stateful_layers import DECAYING, RETRIEVING
from loopscope.transform.recurrences.opening import (
    Length,
    Opening,
    converted,
    length,
    ranked,
    sequence_of_token,
    sized,
    static_length,
    variable,
    widened,
    zeros,
)

INPUTS = ("query", "key", "value", "past_state", "decay", "beta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The values of one token by head, in f32."""

    query: Tensor
    """Queries that read the state of each head, ``[B, H, G, K]``."""
    key: Tensor
    """``[B, H, K]``."""
    value: Tensor
    """``[B, H, V]``."""
    decay: Tensor | None
    """Logarithm, ``[B, H, K or 1]``."""
    beta: Tensor | None
    """``[B, H or 1, 1]``."""


def updated_state(state: Tensor, token: Token) -> Tensor:
    """Return the state ``[B, H, K, V]`` after a token."""
    if token.decay is not None:
        factor = ops.exp(ops.unsqueeze(token.decay, [-1]), name="decay_factor")
        state = ops.multiply(state, factor, name="decayed_state")
    delta = token.value
    if token.beta is not None:
        row = ops.unsqueeze(token.key, [-2])
        retrieved = ops.squeeze(ops.matmul(row, state), [-2], name="retrieved")
        delta = ops.multiply(token.beta, ops.subtract(token.value, retrieved), name="delta")
    outer = ops.multiply(
        ops.unsqueeze(token.key, [-1]), ops.unsqueeze(delta, [-2]), name="outer_product"
    )
    return ops.add(state, outer, name="next_state")


def linear_attention(opening: Opening) -> tuple[Tensor, ...]:
    """Build LinearAttention as a loop with the state ``state``."""
    query, key, value = (ranked(opening.required(role), 3) for role in INPUTS[:3])
    heads = opening.attributes["kv_num_heads"]
    query_heads = opening.attributes["q_num_heads"]
    key_size = static_length(query, 2, "query") // max(1, query_heads)
    value_size = static_length(value, 2, "value") // max(1, heads)
    if not key_size or not value_size or static_length(key, 2, "key") % key_size:
        raise BuildError("the widths of query, key and value do not fit the numbers of heads")
    key_heads = static_length(key, 2, "key") // key_size
    rule = opening.attribute("update_rule", "gated_delta")
    if opening.attribute("state_window", 0):
        raise BuildError("state_window is not 0, and only a GPU computes that")
    past = opening.inputs.get("past_state")
    roles = [*INPUTS[:3], *_gates(opening, rule)]
    parts = [Parts(role, opening.inputs[role], 1) for role in roles]
    scale = opening.attribute("scale", 0.0) or 1 / math.sqrt(key_size)

    def trace(entered: Entered) -> Iteration:
        by_role = dict(zip(roles, map(widened, entered.parts), strict=True))
        (state,) = entered.variables
        token = Token(
            query=_queries(by_role["query"], query_heads, heads, key_size),
            key=_by_head(by_role["key"], key_heads, heads, key_size, "key_by_head"),
            value=_reshaped(by_role["value"], (heads, value_size), "value_by_head"),
            decay=_gate(by_role.get("decay"), heads, "decay_by_head"),
            beta=_gate(by_role.get("beta"), None, "beta_by_head"),
        )
        following = updated_state(state, token)
        read = ops.matmul(token.query, following, name="read")
        output = ops.multiply(read, np.float32(scale), name="scaled")
        width = max(query_heads, heads) * value_size
        flat = ops.reshape(output, [0, 1, width], special_zero=True, name="output")
        return Iteration([following], [converted(flat, query.element_type)])

    sizes = (query.shape.at(0), heads, key_size, value_size)
    if past is None:
        lengths = [(query, 0), heads, key_size, value_size]
        initial = zeros(opening.graph, lengths, ElementType.F32)
    else:
        initial = widened(past)
    plan = opening.plan(length(query, 1), [variable("state", initial, sizes)], parts, 1)
    (state,), (outputs,) = build_loop(opening.graph, plan, trace)
    state_type = query.element_type if past is None else past.element_type
    outputs = sized(outputs, [(query, 0), (query, 1), max(query_heads, heads) * value_size])
    return outputs, converted(state, state_type)


def _gates(opening: Opening, rule: str) -> list[str]:
    """Return the roles of the gates that the update rule has."""
    gates = [*["decay"] * (rule in DECAYING), *["beta"] * (rule in RETRIEVING)]
    for role in gates:
        opening.required(role)
    return gates


def _reshaped(token: Tensor, lengths: Sequence[int], name: str) -> Tensor:
    """Return the values of a token ``[B, 1, N]`` as ``[B, *lengths]``."""
    return ops.reshape(token, [0, *lengths], special_zero=True, name=name)


def _queries(token: Tensor, query_heads: int, heads: int, size: int) -> Tensor:
    """Return the queries of each state, ``[B, H, G, K]``."""
    if query_heads >= heads:
        return _reshaped(token, (heads, query_heads // heads, size), "query_by_head")
    by_head = _by_head(token, query_heads, heads, size, "query_by_head")
    return ops.unsqueeze(by_head, [2])


def _by_head(token: Tensor, own_heads: int, heads: int, size: int, name: str) -> Tensor:
    """Return ``[B, H, K]`` from fewer heads, each repeated for the states that share it."""
    if own_heads == heads:
        return _reshaped(token, (heads, size), name)
    if heads % own_heads:
        raise BuildError(f"{heads} value heads are not a multiple of {own_heads} heads")
    shared = _reshaped(token, (own_heads, 1, size), f"{name}_shared")
    repeated = ops.tile(shared, [1, 1, heads // own_heads, 1])
    return _reshaped(repeated, (heads, size), name)


def _gate(token: Tensor | None, heads: int | None, name: str) -> Tensor | None:
    """Return a gate ``[B, 1, N]`` as ``[B, H, N / H]``, or ``[B, N, 1]`` without ``heads``."""
    if token is None:
        return None
    if heads is None:
        return ops.transpose(token, [0, 2, 1], name=name)
    return _reshaped(token, (heads, -1), name)


CONVOLUTION_INPUTS = ("input", "weight", "bias", "past_state")
RAGGED_INPUTS = ("input", "weight", "bounds", "bias", "past_state", "capture_count")
_EXTENSIONS = {"ndim": 1, "state_window": 0, "state_update_capacity": 0, "state_length": 0}
"""Attributes that only a GPU computes with other values than these."""


def causal_convolution(opening: Opening) -> tuple[Tensor, ...]:
    """Build CausalConvWithState as a loop with the state ``state``: the last inputs."""
    for name, supported in _EXTENSIONS.items():
        if opening.attribute(name, supported) != supported:
            raise BuildError(f"{name} is {opening.attributes[name]}, expected {supported}")
    data = ranked(opening.required("input"), 3)
    last = bool(opening.attribute("channels_last", 0))
    axis = 1 if last else 2
    taps = CausalTaps.of(opening, data)
    past = opening.inputs.get("past_state")
    initial = _initial(past, data, taps.reach, axis)
    channels_first = ops.transpose(initial, [0, 2, 1]) if last else initial

    def trace(entered: Entered) -> Iteration:
        token = widened(entered.parts[0])
        token = ops.transpose(token, [0, 2, 1]) if last else token
        output, following = taps.step(entered.variables[0], token)
        output = ops.transpose(output, [0, 2, 1]) if last else output
        return Iteration([following], [converted(output, data.element_type)])

    plan = opening.plan(
        length(data, axis),
        [variable("state", channels_first, (data.shape.at(0), taps.channels, taps.reach))],
        [Parts("input", data, axis)],
        axis,
    )
    (state,), (outputs,) = build_loop(opening.graph, plan, trace)
    state = converted(state, data.element_type)
    outputs = sized(outputs, [(data, 0), (data, 1), (data, 2)])
    return outputs, ops.transpose(state, [0, 2, 1]) if last else state


def _initial(past: Tensor | None, data: Tensor, reach: int, axis: int) -> Tensor:
    """Return the first state: the past state, or zeros."""
    if past is not None:
        return ranked(widened(past), 3)
    channels = 3 - axis
    lengths: list[Length] = [(data, 0), (data, channels)]
    lengths.insert(axis, reach)
    return zeros(data.graph, lengths, widened(data).element_type)


class CausalTaps:
    """The weights of a causal convolution, and one step of it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dilation: int, activation: str) -> None:
        self._size = static_length(weight, 2, "weight")
        self._dilation, self._activation = dilation, activation
        self.reach = (self._size - 1) * dilation
        """Number of inputs in the state."""
        self.channels = weight.shape.at(0)
        self._weight = ops.squeeze(weight, [1], name="taps")
        self._bias = None if bias is None else ops.unsqueeze(bias, [1])

    @staticmethod
    def of(opening: Opening, data: Tensor) -> CausalTaps:
        """Return the taps of an operator; raise ``BuildError`` for unknown attributes."""
        dilation = opening.attribute("dilation", 1)
        activation = opening.attribute("activation", "none")
        if dilation < 1 or activation not in ("none", "silu", "swish"):
            raise BuildError(f"dilation is {dilation} and activation {str(activation)[:40]!r}")
        return CausalTaps(
            widened(opening.required("weight")), opening.wide("bias"), dilation, activation
        )

    def step(self, state: Tensor, token: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output of a token ``[B, C, 1]`` and the next state ``[B, C, reach]``."""
        window = ops.concat([state, token], axis=2, name="window")
        seen = window if self._dilation == 1 else window[:, :, :: self._dilation]
        products = ops.multiply(seen, self._weight, name="products")
        output = ops.reduce_sum(products, [2], keep_dims=True, name="convolved")
        if self._bias is not None:
            output = ops.add(output, self._bias, name="with_bias")
        if self._activation != "none":
            output = ops.swish(output, name="activated")
        following = ops.slice(window, [1], [self.reach + 1], [1], [2], name="next_state")
        return output, following


def ragged_causal_convolution(opening: Opening) -> tuple[Tensor, ...]:
    """Build VarlenCausalConvWithState as a loop over all tokens.

    Each iteration updates the row of ``states`` that belongs to its sequence.
    """
    if opening.attribute("state_update_capacity", 0):
        raise BuildError("state_update_capacity is not 0: the loop does not compute updates")
    data, bounds = opening.required("input"), opening.required("bounds")
    taps = CausalTaps.of(opening, data)

    def trace(entered: Entered) -> Iteration:
        (states,) = entered.variables
        sequence = sequence_of_token(entered, bounds)
        row = ops.gather(states, sequence, 0, name="state")
        token = ops.unsqueeze(widened(entered.parts[0]), [2])
        output, following = taps.step(row, token)
        states = ops.scatter_update(states, sequence, following, 0, name="next_states")
        flat = ops.squeeze(output, [2], name="output")
        return Iteration([states], [converted(flat, data.element_type)])

    initial = widened(opening.required("past_state"))
    parts = [Parts("input", data, 0)]
    plan = opening.plan(length(data, 0), [variable("states", initial)], parts)
    (states,), (outputs,) = build_loop(opening.graph, plan, trace)
    return sized(outputs, [(data, 0), (data, 1)]), converted(states, data.element_type)
