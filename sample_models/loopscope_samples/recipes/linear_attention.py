"""Linear attention as exporters of language models write it for OpenVINO: a gated delta net, a Loop
over the tokens that carries a state.

For each token, with S the state of every head: S = S * exp(g); memory = sum(S * k); S = S + k * (v
- memory) * beta; out = sum(S * q).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset14, opset15

from loopscope_samples.recipes.recipe import InputSet, Recipe
from loopscope_samples.recipes.token_loop import axis, token_count, token_loop

HEADS, SIZE = 4, 8
"""So many states, each a square of so many numbers."""


def recipes() -> list[Recipe]:
    sets = {
        "twelve_tokens": inputs(12, seed=1),
        "sixty_tokens": inputs(60, seed=2),
        "one_token": inputs(1, seed=3),
    }
    return [Recipe("linear_attention", model(), sets)]


def inputs(tokens: int, *, seed: int, heads: int = HEADS, size: int = SIZE) -> InputSet:
    """Random queries, keys and values of so many tokens; keys of length 1, gates that forget a
    little, a state that begins with zeros.
    """
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    key = normal(1, heads, tokens, size)
    return {
        "query": normal(1, heads, tokens, size),
        "key": key / np.linalg.norm(key, axis=-1, keepdims=True),
        "value": normal(1, heads, tokens, size),
        "g": -np.abs(normal(1, heads, tokens)) * np.float32(0.1),
        "beta": (1 / (1 + np.exp(-normal(1, heads, tokens)))).astype(np.float32),
        "state": np.zeros((1, heads, size, size), np.float32),
    }


def model(trips: int | None = None, *, heads: int = HEADS, size: int = SIZE) -> ov.Model:
    """The layer; ``trips`` is a trip count to run instead of the number of tokens."""
    named = {name: _parameter(name, [-1, heads, -1, size]) for name in ("query", "key", "value")}
    named |= {name: _parameter(name, [-1, heads, -1]) for name in ("g", "beta")}
    named["state"] = _parameter("state", [-1, heads, size, size])
    tokens = token_count(named["value"])
    count = tokens if trips is None else opset15.constant(np.int32(trips), name="trip_count")
    nothing = opset15.broadcast(
        opset15.constant(np.float32(0)), opset15.shape_of(named["value"]), name="no_output_yet"
    )
    wholes = [scaled(named["query"]), *(named[name] for name in ("key", "value", "g", "beta"))]
    vector = [-1, heads, 1, size]
    shapes = (vector, vector, vector, vector[:3], vector[:3])
    parts = {
        part: (whole, shape)
        for part, whole, shape in zip(("q", "k", "v", "g", "beta"), wholes, shapes, strict=True)
    }
    square, out = [-1, heads, size, size], [-1, heads, -1, size]
    loop = token_loop(
        "for_each_token", count, parts, (named["state"], square), (nothing, out), delta_cell
    )
    results = []
    for name, value in zip(("attention", "last_state"), loop, strict=True):
        value.get_tensor().set_names({name})
        results.append(opset15.result(value, name=name))
    return ov.Model(results, list(named.values()), "linear_attention")


def scaled(query: Any, scope: str = "") -> Any:
    """A query [batch, heads, tokens, size] divided by the root of its size, which is read from
    its shape: so OpenVINO knows the layer.
    """
    length = opset15.gather(opset15.shape_of(query), axis(3), axis(0), name=f"{scope}head_size")
    root = opset15.power(
        opset15.convert(length, "f32"),
        opset15.constant(np.float32(0.5)),
        name=f"{scope}root_of_head_size",
    )
    return opset15.divide(query, root, name=f"{scope}scaled_query")


def delta_cell(parts: Sequence[Any], state: Any, scope: str = "") -> tuple[Any, Any]:
    """One token of a gated delta net: the state after it, and what it gives; ``scope`` stands
    before the names.
    """
    g, beta = parts[3:]
    # OpenVINO knows the layer by this Squeeze, and by the order of the body's results.
    q, k, v = (opset14.squeeze(one, axis(2)) for one in parts[:3])
    decay = opset15.unsqueeze(opset15.exp(g), axis(-1), name=f"{scope}decay")
    faded = opset15.multiply(state, decay, name=f"{scope}faded_state")
    column = opset15.unsqueeze(k, axis(-1))
    memory = opset15.reduce_sum(
        opset15.multiply(faded, column), axis(-2), keep_dims=False, name=f"{scope}memory"
    )
    delta = opset15.multiply(opset15.subtract(v, memory), beta, name=f"{scope}delta")
    update = opset15.multiply(column, opset15.unsqueeze(delta, axis(-2)), name=f"{scope}update")
    after = opset15.add(faded, update, name=f"{scope}new_state")
    read = opset15.multiply(after, opset15.unsqueeze(q, axis(-1)))
    return after, opset15.reduce_sum(read, axis(-2), keep_dims=True, name=f"{scope}out")


def _parameter(name: str, shape: Sequence[int]) -> Any:
    node = opset15.parameter(ov.PartialShape(list(shape)), ov.Type.f32, name=name)
    node.output(0).get_tensor().set_names({name})
    return node
