"""Linear attention as exporters of language models write it for OpenVINO: a gated delta net, a Loop over the tokens that carries a state.

For each token, with S the state of every head: S = S * exp(g); memory = sum(S * k); S = S + k * (v - memory) * beta; out = sum(S * q).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset14, opset15

from sample_models.recipes.recipe import InputSet, Recipe

HEADS, SIZE = 4, 8
"""So many states, each a square of so many numbers."""


def recipes() -> list[Recipe]:
    sets = {"twelve_tokens": inputs(12, seed=1), "sixty_tokens": inputs(60, seed=2), "one_token": inputs(1, seed=3)}
    return [Recipe("linear_attention", model(), sets)]


def inputs(tokens: int, *, seed: int, heads: int = HEADS, size: int = SIZE) -> InputSet:
    """Random queries, keys and values of so many tokens; keys of length 1, gates that forget a little, a state that begins with zeros."""
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
    tokens = opset15.gather(opset15.shape_of(named["value"]), _axis(2), _axis(0), name="tokens")
    length = opset15.gather(opset15.shape_of(named["query"]), _axis(3), _axis(0), name="head_size")
    root = opset15.power(opset15.convert(length, "f32"), opset15.constant(np.float32(0.5)), name="root_of_head_size")
    count = tokens if trips is None else opset15.constant(np.int32(trips), name="trip_count")
    nothing = opset15.broadcast(opset15.constant(np.float32(0)), opset15.shape_of(named["value"]), name="no_output_yet")
    wholes = [opset15.divide(named["query"], root, name="scaled_query"), *(named[name] for name in ("key", "value", "g", "beta"))]
    loop = _loop(count, wholes, named["state"], nothing, heads, size)
    results = []
    for name, value in zip(("attention", "last_state"), loop, strict=True):
        value.get_tensor().set_names({name})
        results.append(opset15.result(value, name=name))
    return ov.Model(results, list(named.values()), "linear_attention")


def _loop(count: Any, wholes: Sequence[Any], state: Any, nothing: Any, heads: int, size: int) -> list[Any]:
    """The Loop: the joined output, then the last state."""
    token = opset15.parameter([], ov.Type.i32, name="token")
    parts = [_parameter(name, [-1, heads, 1, size][: 4 if name in "qkv" else 3]) for name in ("q", "k", "v", "g", "beta")]
    before, written = _parameter("S", [-1, heads, size, size]), _parameter("written", [-1, heads, -1, size])
    after, out = _cell(parts, before)
    place = opset15.unsqueeze(token, _axis(0))
    body = [
        opset15.result(opset15.constant(True, name="always")),
        opset15.result(after),
        opset15.result(opset15.scatter_update(written, place, out, _axis(2), name="attention_so_far")),
    ]
    loop: Any = opset15.loop(count, opset15.constant(True))
    loop.set_friendly_name("for_each_token")
    loop.set_function(ov.Model(body, [token, *parts, before, written], "for_each_token_body"))
    loop.set_special_body_ports([0, 0])
    for part, whole in zip(parts, wholes, strict=True):
        loop.set_sliced_input(part, whole.output(0), 0, 1, 1, -1, 2)
    loop.set_merged_input(before, state.output(0), body[1].output(0))
    loop.set_merged_input(written, nothing.output(0), body[2].output(0))
    return [loop.get_iter_value(body[2].output(0), -1), loop.get_iter_value(body[1].output(0), -1)]


def _cell(parts: Sequence[Any], state: Any) -> tuple[Any, Any]:
    """One token: the state after it, and what it gives."""
    g, beta = parts[3:]
    # OpenVINO knows the layer by this Squeeze, and by the order of the body's results.
    q, k, v = (opset14.squeeze(one, _axis(2)) for one in parts[:3])
    decay = opset15.unsqueeze(opset15.exp(g), _axis(-1), name="decay")
    faded = opset15.multiply(state, decay, name="faded_state")
    column = opset15.unsqueeze(k, _axis(-1))
    memory = opset15.reduce_sum(opset15.multiply(faded, column), _axis(-2), keep_dims=False, name="memory")
    delta = opset15.multiply(opset15.subtract(v, memory), beta, name="delta")
    update = opset15.multiply(column, opset15.unsqueeze(delta, _axis(-2)), name="update")
    after = opset15.add(faded, update, name="new_state")
    out = opset15.reduce_sum(opset15.multiply(after, opset15.unsqueeze(q, _axis(-1))), _axis(-2), keep_dims=True, name="out")
    return after, out


def _axis(number: int) -> Any:
    return opset15.constant(np.int32(number))


def _parameter(name: str, shape: Sequence[int]) -> Any:
    node = opset15.parameter(ov.PartialShape(list(shape)), ov.Type.f32, name=name)
    node.output(0).get_tensor().set_names({name})
    return node
