"""The gated delta rule token by token, in chunks of 64, and in chunks with a wrong border.

For each token, with S the state of a head: S = S * exp(g); S = S + k * beta * (v - S k); out = S q.
A chunk computes its 64 tokens at once. Their differences depend on each other through a triangular
matrix, which is inverted by six products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import Tensor, ops
from loopscope_samples.recipes.recipe import InputSet, Recipe

HEADS, SIZE = 2, 8
CHUNK = 64
SQUARINGS = 5
"""Number of squares of the triangular matrix: its power 64 is zero."""


def recipes() -> list[Recipe]:
    sets = {
        "two_hundred_tokens": inputs(200),
        "one_chunk": inputs(64),
        "seventy_tokens": inputs(70),
    }
    return [
        Recipe("delta_rule", sequential(), sets),
        Recipe("delta_rule_in_chunks", chunked(), sets),
        Recipe("delta_rule_wrong_border", chunked(last_fading_token=CHUNK - 2), sets),
    ]


def inputs(tokens: int) -> InputSet:
    """Return random tokens; keys have length 1, the gates forget a little, and the state begins
    with zeros.
    """
    random = np.random.default_rng(tokens)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    key = normal(tokens, HEADS, SIZE)
    return {
        "query": normal(tokens, HEADS, SIZE) * np.float32(SIZE**-0.5),
        "key": key / np.linalg.norm(key, axis=-1, keepdims=True),
        "value": normal(tokens, HEADS, SIZE) * np.float32(0.5),
        "g": -np.abs(normal(tokens, HEADS)) * np.float32(0.02),
        "beta": (1 / (1 + np.exp(-normal(tokens, HEADS)))).astype(np.float32),
        "state": np.zeros((HEADS, SIZE, SIZE), np.float32),
    }


def _parameters(graph: builder.Graph) -> tuple[list[Tensor], Tensor]:
    """Return query, key, value, g and beta of all tokens, and the first state."""
    by_token = [graph.parameter(name, "f32", [None, HEADS, SIZE]) for name in ("query", "key")]
    by_token.append(graph.parameter("value", "f32", [None, HEADS, SIZE]))
    by_token += [graph.parameter(name, "f32", [None, HEADS]) for name in ("g", "beta")]
    return by_token, graph.parameter("state", "f32", [HEADS, SIZE, SIZE])


def sequential() -> loopscope.Model:
    """Return the rule as a Loop with one iteration for each token."""
    graph = builder.Graph("delta_rule")
    tokens, first_state = _parameters(graph)
    outputs = builder.Collected("outputs")

    def token(state: Tensor, parts: Sequence[Tensor]) -> Tensor:
        query, key, value = (ops.unsqueeze(part, [1]) for part in parts[:3])
        g, beta = (ops.unsqueeze(part, [1, 2]) for part in parts[3:])
        faded = ops.multiply(state, ops.exp(g), name="faded_state")
        stored = ops.matmul(key, faded, name="stored")
        delta = ops.multiply(ops.subtract(value, stored), beta, name="delta")
        update = ops.matmul(key, delta, transpose_a=True, name="update")
        following = ops.add(faded, update, name="next_state")
        outputs.append(ops.transpose(ops.matmul(query, following), [1, 0, 2], name="out"))
        return following

    state = builder.foldl(token, tuple(tokens), first_state, name="for_each_token")
    attention = ops.reshape(outputs.tensor, [-1, HEADS, SIZE], special_zero=False)
    return graph.model({"attention": attention, "last_state": state})


def chunked(last_fading_token: int = CHUNK - 1) -> loopscope.Model:
    """Return the rule as a Loop with one iteration for 64 tokens.

    ``last_fading_token``: the token of a chunk up to which the state fades before the next chunk.
    Only the last one is right.
    """
    graph = builder.Graph("delta_rule_in_chunks")
    tokens, first_state = _parameters(graph)
    count = ops.gather(ops.shape_of(tokens[0]), [0], 0, name="tokens")
    outputs = builder.Collected("outputs")
    lower = np.tril(np.ones((CHUNK, CHUNK), np.float32))
    before = np.tril(lower, -1)

    def chunk(state: Tensor, parts: Sequence[Tensor]) -> Tensor:
        query, key, value = (ops.transpose(part, [1, 0, 2]) for part in parts[:3])
        g, beta = (ops.unsqueeze(ops.transpose(part, [1, 0]), [2]) for part in parts[3:])
        total = ops.cum_sum(g, 1, name="total")
        fading = ops.exp(total, name="fading")
        gap = ops.minimum(ops.subtract(total, ops.transpose(total, [0, 2, 1])), 0)
        between = ops.multiply(ops.exp(gap), lower, name="between")
        similar = ops.multiply(ops.matmul(key, key, transpose_b=True), between)
        system = ops.multiply(ops.multiply(similar, -before), beta, name="system")
        inverse, power = ops.add(system, np.eye(CHUNK, dtype=np.float32)), system
        for _ in range(SQUARINGS):
            power = ops.matmul(power, power)
            inverse = ops.add(inverse, ops.matmul(inverse, power))
        stored = ops.multiply(fading, ops.matmul(key, state), name="stored")
        delta = ops.matmul(inverse, ops.multiply(ops.subtract(value, stored), beta), name="delta")
        read = ops.multiply(fading, ops.matmul(query, state))
        seen = ops.multiply(ops.matmul(query, key, transpose_b=True), between)
        out = ops.add(read, ops.matmul(seen, delta))
        outputs.append(ops.transpose(out, [1, 0, 2], name="out"))
        end = total[:, CHUNK - 1 :]
        keys = ops.multiply(key, ops.exp(ops.subtract(end, total)))
        border = ops.exp(total[:, last_fading_token : last_fading_token + 1], name="border")
        update = ops.matmul(keys, delta, transpose_a=True, name="update")
        return ops.add(ops.multiply(border, state), update, name="next_state")

    chunks = tuple(_in_chunks(tensor, count) for tensor in tokens)
    state = builder.foldl(chunk, chunks, first_state, name="for_each_chunk")
    joined = ops.reshape(outputs.tensor, [-1, HEADS, SIZE], special_zero=False)
    attention = ops.slice(joined, [0], count, [1], [0])
    return graph.model({"attention": attention, "last_state": state})


def _in_chunks(tensor: Tensor, count: Tensor) -> Tensor:
    """Return ``[tokens, ...]`` as ``[chunks, 64, ...]``, with zeros after the last token."""
    missing = ops.floor_mod(ops.subtract(CHUNK, ops.floor_mod(count, CHUNK)), CHUNK)
    sizes = [HEADS, SIZE][: (tensor.rank or 1) - 1]
    ends = ops.concat([missing, np.zeros(len(sizes), np.int64)], axis=0)
    padded = ops.pad(tensor, [0] * (1 + len(sizes)), ends, 0.0, pad_mode="constant")
    return ops.reshape(padded, [-1, CHUNK, *sizes], special_zero=False)
