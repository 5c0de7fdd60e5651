"""GatedDeltaNet and the replay of its updates as loops over tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from loopscope.builder import ops
from loopscope.builder.loop import Entered, Iteration, Parts, build_loop
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ops.microsoft.linear_attention import METADATA, NORM_EPSILON
from loopscope.ops.onnx.stateful_layers import DECAYING, RETRIEVING
from loopscope.transform.recurrences.linear_attention import Token, updated_state
from loopscope.transform.recurrences.opening import (
    Length,
    Opening,
    converted,
    length,
    ranked,
    sequence_of_token,
    shape_of,
    sized,
    static_length,
    variable,
    widened,
    zeros,
)

INPUTS = (
    "query",
    "key",
    "value",
    "bounds",
    "decay",
    "beta",
    "past_state",
    "decay_rate",
    "gate_bias",
    "capture_count",
    "capture_active",
)
OPENVINO_INPUTS = ("query", "key", "value", "past_state", "gate", "beta")
REPLAY_INPUTS = ("source", "capsule", "destination", "metadata")


def gated_delta_net(opening: Opening) -> tuple[Tensor, ...]:
    """Build GatedDeltaNet as a loop with the state ``state``, one matrix for each head.

    Sequences of one length run side by side. With ``cu_seqlens`` the loop runs over all tokens, and
    each iteration updates the state of one sequence.
    """
    if opening.attribute("state_update_capacity", 0):
        raise BuildError("state_update_capacity is not 0: the loop does not compute updates")
    tokens = _Tokens(opening)
    query = opening.required("query")
    scale = opening.attribute("scale", 0.0) or 1 / math.sqrt(tokens.key_size or 1)
    bounds = opening.inputs.get("bounds")

    def trace(entered: Entered) -> Iteration:
        (state,) = entered.variables
        token = tokens.token(dict(zip(tokens.by_role, entered.parts, strict=True)))
        row = state
        if bounds is not None:
            sequence = sequence_of_token(entered, bounds)
            row = ops.gather(state, sequence, 0, name="state_of_sequence")
        following = updated_state(row, token)
        read = ops.squeeze(ops.matmul(token.query, following), [2], name="read")
        output = ops.multiply(read, np.float32(scale), name="output")
        if bounds is None:
            output = ops.unsqueeze(output, [1])
        else:
            following = ops.scatter_update(state, sequence, following, 0, name="next_states")
        return Iteration([following], [converted(output, query.element_type)])

    parts = [Parts(role, tensor, tokens.axis) for role, tensor in tokens.by_role.items()]
    plan = opening.plan(
        length(tokens.by_role["query"], tokens.axis),
        [variable("state", _initial_state(opening, tokens))],
        parts,
        tokens.axis,
    )
    (state,), (outputs,) = build_loop(opening.graph, plan, trace)
    lengths = [*tokens.leading, tokens.heads, tokens.value_size]
    if tokens.joins_batch:
        outputs = ops.reshape(outputs, shape_of(opening.graph, lengths), special_zero=False)
    else:
        outputs = sized(outputs, lengths)
    return outputs, ops.transpose(state, [0, 1, 3, 2])


def _initial_state(opening: Opening, tokens: _Tokens) -> Tensor:
    """Return the first state of each sequence, ``[B, H, K, V]``; zeros if there is none."""
    past = opening.inputs.get("past_state")
    if past is not None:
        return ops.transpose(past, [0, 1, 3, 2])
    starts = opening.required("bounds")[1:]
    sizes = (tokens.heads, tokens.key_size, tokens.value_size)
    lengths: list[Length] = [(starts, 0), *sizes]
    return zeros(opening.graph, lengths, ElementType.F32)


class _Tokens:
    """The inputs of GatedDeltaNet by token: ``[B, T, ...]``, or ``[tokens, ...]`` for sequences of
    several lengths.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._rule = opening.attribute("update_rule", "gated_delta")
        is_ragged = "bounds" in opening.inputs
        self.axis = 0 if is_ragged else 1
        query, key, value = self._separate()
        self.key_heads, self.key_size = (
            static_length(key, (key.rank or 0) + axis, "key") for axis in (-2, -1)
        )
        self.heads, self.value_size = (
            static_length(value, (value.rank or 0) + axis, "value") for axis in (-2, -1)
        )
        if not self.key_heads or self.heads % self.key_heads:
            raise BuildError(f"{self.heads} value heads are not a multiple of {self.key_heads}")
        original = opening.required("query")
        self.leading: list[Length] = [(original, axis) for axis in range((query.rank or 2) - 2)]
        """Lengths of the token axes of the output."""
        self.joins_batch = not is_ragged and query.rank == 3
        self.by_role = {"query": query, "key": key, "value": value}
        for role, rules in (("decay", DECAYING), ("beta", RETRIEVING)):
            if self._rule in rules:
                self.by_role[role] = opening.required(role)
        if self.joins_batch:
            self.by_role = {role: self._by_batch(tensor) for role, tensor in self.by_role.items()}

    def _separate(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value, which may be packed side by side."""
        opening = self._opening
        query = opening.required("query")
        if "key" in opening.inputs:
            return query, opening.required("key"), opening.required("value")
        past = opening.required("past_state")
        heads, value_size, key_size = (
            static_length(past, axis, "past_state") for axis in (1, 2, 3)
        )
        last = (query.rank or 1) - 1
        width, rest = divmod(static_length(query, last, "query") - heads * value_size, 2)
        if rest or width <= 0 or not key_size or width % key_size:
            raise BuildError("the width of the packed input does not fit the initial state")
        packed = ops.variadic_split(query, last, [width, width, heads * value_size])
        sizes = ((width // key_size, key_size), (width // key_size, key_size), (heads, value_size))
        query, key, value = (
            ops.reshape(part, [*[0] * last, *size], special_zero=True)
            for part, size in zip(packed, sizes, strict=True)
        )
        return query, key, value

    def _by_batch(self, tensor: Tensor) -> Tensor:
        """Return ``[tokens, ...]`` as ``[B, T, ...]``."""
        further: list[Length] = [(tensor, axis) for axis in range(1, tensor.rank or 1)]
        batch = (self._opening.required("past_state"), 0)
        shape = shape_of(self._opening.graph, [batch, -1, *further])
        return ops.reshape(tensor, shape, special_zero=False)

    def token(self, parts: Mapping[str, Tensor]) -> Token:
        """Return the values of one token by head, from the slices of the loop."""
        by_role = {
            role: widened(ops.squeeze(part, [1]) if self.axis else part)
            for role, part in parts.items()
        }
        query, key = by_role["query"], by_role["key"]
        if self._opening.attribute("qk_l2_norm", 0):
            query = _normalized(query, NORM_EPSILON, "query_norm")
            key = _normalized(key, NORM_EPSILON, "key_norm")
        decay, beta = by_role.get("decay"), by_role.get("beta")
        return Token(
            query=ops.unsqueeze(_shared(query, self.heads, "query_by_head"), [2]),
            key=_shared(key, self.heads, "key_by_head"),
            value=by_role["value"],
            decay=None if decay is None else self._gate(decay),
            beta=None if beta is None else self._rate(beta),
        )

    def _gate(self, decay: Tensor) -> Tensor:
        """Return the logarithm of the decay, ``[B, H, K or 1]``."""
        opening = self._opening
        raw = decay if decay.rank == 3 else ops.unsqueeze(decay, [2])
        activation = opening.attribute("gate_activation", "none")
        if activation == "none":
            return raw
        bias = ops.reshape(opening.required("gate_bias"), [self.heads, -1], special_zero=False)
        rate = ops.exp(
            ops.reshape(opening.required("decay_rate"), [self.heads, 1], special_zero=False)
        )
        shifted = ops.add(raw, bias)
        if activation in ("softplus", "qwen"):
            return ops.multiply(ops.multiply(rate, -1), ops.softplus(shifted), name="decay_by_head")
        lower_bound = np.float32(opening.attribute("gate_lower_bound", -5.0))
        return ops.multiply(lower_bound, ops.sigmoid(rate * shifted), name="decay_by_head")

    def _rate(self, beta: Tensor) -> Tensor:
        """Return the update rate, ``[B, H, 1]``."""
        if self._opening.attribute("beta_activation", "none") == "sigmoid":
            beta = ops.sigmoid(beta)
        return ops.unsqueeze(beta, [2], name="beta_by_head")


def _normalized(heads: Tensor, epsilon: float, name: str) -> Tensor:
    squares = ops.reduce_sum(heads * heads, [-1], keep_dims=True)
    return ops.divide(heads, ops.sqrt(squares + np.float32(epsilon)), name=name)


def _shared(by_head: Tensor, heads: int, name: str) -> Tensor:
    """Return ``[B, H, K]`` from fewer heads, each repeated for the states that share it."""
    own_heads, size = (static_length(by_head, axis, name) for axis in (1, 2))
    if heads == own_heads:
        return by_head
    repeated = ops.tile(ops.unsqueeze(by_head, [2]), [1, 1, heads // own_heads, 1])
    return ops.reshape(repeated, [0, heads, size], special_zero=True, name=name)


def openvino_gated_delta_net(opening: Opening) -> tuple[Tensor, ...]:
    """Build GatedDeltaNet of OpenVINO as a loop with the state ``state``, a matrix per head."""
    by_role = {role: ranked(opening.required(role), 4) for role in OPENVINO_INPUTS[:3]}
    query, value = by_role["query"], by_role["value"]
    by_role |= {role: ranked(opening.required(role), 3) for role in ("gate", "beta")}
    heads, key_heads = (static_length(tensor, 2, "heads") for tensor in (value, query))
    scale = np.float32(1 / math.sqrt(static_length(query, 3, "query") or 1))
    if not key_heads or heads % key_heads:
        raise BuildError(f"{heads} value heads are not a multiple of {key_heads}")
    initial = opening.required("past_state")

    def trace(entered: Entered) -> Iteration:
        token = {
            role: widened(ops.squeeze(part, [1]))
            for role, part in zip(by_role, entered.parts, strict=True)
        }
        for role in ("query", "key"):
            if opening.attribute("fuse_qk_l2norm", False):
                epsilon = opening.attribute(f"{role[0]}_l2_norm_eps", 1e-6)
                token[role] = _normalized(token[role], epsilon, f"{role}_norm")
            token[role] = _shared(token[role], heads, f"{role}_by_head")
        values = Token(
            query=ops.unsqueeze(token["query"], [2]),
            key=token["key"],
            value=token["value"],
            decay=ops.unsqueeze(token["gate"], [2]),
            beta=ops.unsqueeze(token["beta"], [2], name="beta_by_head"),
        )
        following = updated_state(entered.variables[0], values)
        read = ops.squeeze(ops.matmul(values.query, following), [2], name="read")
        output = ops.unsqueeze(ops.multiply(read, scale), [1], name="output")
        return Iteration([following], [converted(output, query.element_type)])

    parts = [Parts(role, tensor, 1) for role, tensor in by_role.items()]
    plan = opening.plan(length(query, 1), [variable("state", widened(initial))], parts, 1)
    (state,), (outputs,) = build_loop(opening.graph, plan, trace)
    lengths: list[Length] = [(value, axis) for axis in range(4)]
    return sized(outputs, lengths), converted(state, initial.element_type)


def replayed_state(opening: Opening) -> tuple[Tensor, ...]:
    """Build GatedDeltaNetStateReplay as a loop with the state ``state``.

    The metadata must be known before a run.
    """
    metadata = opening.required("metadata").known.value
    if metadata is None or metadata.shape != (METADATA,):
        raise BuildError("the metadata are only known at run time")
    state_at, result_at, decay_at, key_at, delta_at = metadata[:5].tolist()
    heads, value_size, key_size, key_heads, capacity, count = metadata[5:].tolist()
    size = heads * value_size * key_size
    width = key_size if key_at - decay_at == capacity * heads * key_size else 1

    def section(role: str, offset: int, lengths: list[int], name: str) -> Tensor:
        whole = opening.required(role)
        part = ops.slice(whole, [offset], [offset + math.prod(lengths)], [1], [0])
        return ops.reshape(part, lengths, special_zero=False, name=name)

    parts = [
        Parts("decay", section("capsule", decay_at, [count, heads, 1, width], "decays"), 0),
        Parts("key", section("capsule", key_at, [count, key_heads, 1, key_size], "keys"), 0),
        Parts("delta", section("capsule", delta_at, [count, heads, value_size, 1], "deltas"), 0),
    ]

    def trace(entered: Entered) -> Iteration:
        decay, key, delta = (ops.squeeze(part, [0]) for part in entered.parts)
        if key_heads != heads:
            shared = ops.tile(ops.unsqueeze(key, [1]), [1, heads // key_heads, 1, 1])
            key = ops.reshape(shared, [heads, 1, key_size], special_zero=False)
        decayed = ops.multiply(entered.variables[0], decay, name="decayed_state")
        outer = ops.multiply(key, delta, name="outer_product")
        return Iteration([ops.add(decayed, outer, name="next_state")])

    initial = section("source", state_at, [heads, value_size, key_size], "first_state")
    steps = opening.graph.constant(count, name="count")
    plan = opening.plan(steps, [variable("state", initial)], parts)
    (state,), _ = build_loop(opening.graph, plan, trace)
    flat = ops.reshape(state, [-1], special_zero=False)
    places = np.arange(result_at, result_at + size)
    return (ops.scatter_update(opening.required("destination"), places, flat, 0),)
