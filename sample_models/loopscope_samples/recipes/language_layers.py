"""Layers of language models as exporters to OpenVINO spell them: gated delta net, Mamba-2, full
attention, gated MLP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from openvino import opset15

from loopscope_samples.recipes.linear_attention import delta_cell, scaled
from loopscope_samples.recipes.token_loop import axis, token_count, token_loop

KERNEL = 4
"""So many tokens does a short convolution see."""
STEP = 0.25
"""What a layer adds to the residual stream, beside what it got: small, as in trained models."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a stack's layers: the residual stream is ``width`` wide, each head's state a
    square of ``size`` x ``size``.
    """

    width: int
    heads: int
    size: int

    @property
    def inner(self) -> int:
        """The width of all heads side by side."""
        return self.heads * self.size


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer under construction: its scope of names, its sizes, and where its random weights
    come from.
    """

    scope: str
    sizes: Sizes
    random: np.random.Generator

    def named(self, name: str) -> str:
        return f"{self.scope}/{name}"

    def weight(self, name: str, *shape: int, scale: float = 1.0) -> Any:
        """A constant of normal numbers, f32."""
        return opset15.constant(
            self.random.normal(0, scale, shape).astype(np.float32), name=self.named(name)
        )

    def linear(self, data: Any, name: str, wide: int, out: int, *, scale: float = 1.0) -> Any:
        weight = self.weight(f"{name}.weight", out, wide, scale=scale * wide**-0.5)
        return opset15.matmul(data, weight, False, True, name=self.named(name))

    def norm(self, data: Any, name: str) -> Any:
        """Root mean square norm over the last axis, weights all one."""
        mean = opset15.reduce_mean(opset15.power(data, _number(2)), axis(-1), keep_dims=True)
        root = opset15.sqrt(opset15.add(mean, _number(1e-6)))
        return opset15.multiply(data, opset15.divide(_number(1), root), name=self.named(name))

    def convolved(self, data: Any, name: str, channels: int) -> Any:
        """A causal depthwise convolution over the tokens, then SiLU; [batch, tokens, channels]
        in and out.
        """
        turned = opset15.transpose(data, _order(0, 2, 1))
        weight = self.weight(f"{name}.weight", channels, 1, 1, KERNEL, scale=0.5)
        mixed = opset15.group_convolution(
            turned, weight, [1], [KERNEL - 1], [0], [1], name=self.named(name)
        )
        return opset15.swish(opset15.transpose(mixed, _order(0, 2, 1)))

    def split(self, data: Any, heads: int, size: int) -> Any:
        """[batch, tokens, heads * size] to [batch, heads, tokens, size]."""
        apart = opset15.reshape(
            data, opset15.constant(np.array([0, 0, heads, size], np.int64)), True
        )
        return opset15.transpose(apart, _order(0, 2, 1, 3))

    def joined(self, data: Any) -> Any:
        """[batch, heads, tokens, size] to [batch, tokens, heads * size]."""
        turned = opset15.transpose(data, _order(0, 2, 1, 3))
        return opset15.reshape(
            turned, opset15.constant(np.array([0, 0, self.sizes.inner], np.int64)), True
        )

    def zeros(self, like: Any, *sizes: int) -> Any:
        """A state of zeros for each sentence of the batch that ``like`` has."""
        batch = opset15.gather(
            opset15.shape_of(like), opset15.constant(np.array([0], np.int64)), axis(0)
        )
        shape = opset15.concat([batch, opset15.constant(np.array(sizes, np.int64))], 0)
        return opset15.broadcast(_number(0), shape, name=self.named("first_state"))


def gated_delta(layer: Layer, data: Any) -> Any:
    """A gated delta net, [batch, tokens, width] in and out."""
    width, heads, size = layer.sizes.width, layer.sizes.heads, layer.sizes.size
    inner = layer.sizes.inner
    mixed = layer.convolved(
        layer.linear(data, "in_proj_qkv", width, 3 * inner), "conv1d", 3 * inner
    )
    query, key, value = (
        layer.split(one, heads, size) for one in opset15.split(mixed, axis(-1), 3).outputs()
    )
    query, key = (opset15.normalize_l2(one, axis(-1), 1e-6, "add") for one in (query, key))
    query = scaled(query, layer.named(""))
    beta = opset15.sigmoid(
        opset15.transpose(layer.linear(data, "in_proj_b", width, heads), _order(0, 2, 1)),
        name=layer.named("beta"),
    )
    g = _forgetting(
        layer,
        opset15.transpose(layer.linear(data, "in_proj_a", width, heads), _order(0, 2, 1)),
        heads,
    )
    square, vector = [-1, heads, size, size], [-1, heads, 1, size]
    parts = {
        "q": (query, vector),
        "k": (key, vector),
        "v": (value, vector),
        "g": (g[0], [-1, heads, 1]),
        "beta": (beta, [-1, heads, 1]),
    }
    nothing = opset15.broadcast(
        _number(0), opset15.shape_of(value), name=layer.named("no_output_yet")
    )
    out, _ = token_loop(
        layer.named("for_each_token"),
        token_count(value, layer.named("tokens")),
        parts,
        (layer.zeros(data, heads, size, size), square),
        (nothing, [-1, heads, -1, size]),
        lambda pieces, state: delta_cell(pieces, state, layer.named("")),
    )
    gate = opset15.swish(layer.linear(data, "in_proj_z", width, inner))
    return layer.linear(
        opset15.multiply(layer.joined(layer.norm(out, "norm")), gate),
        "out_proj",
        inner,
        width,
        scale=STEP,
    )


def mamba2(layer: Layer, data: Any, state: Any | None = None) -> tuple[Any, Any]:
    """A Mamba-2 layer, [batch, tokens, width] in and out, and its last state [batch, heads,
    size, size]; all heads share B and C.
    """
    width, heads, size = layer.sizes.width, layer.sizes.heads, layer.sizes.size
    inner = layer.sizes.inner
    mixed = layer.convolved(
        layer.linear(data, "in_proj_xbc", width, inner + 2 * size), "conv1d", inner + 2 * size
    )
    lengths = opset15.constant(np.array([inner, size, size], np.int64))
    x, b, c = opset15.variadic_split(mixed, axis(-1), lengths).outputs()
    x, b, c = layer.split(x, heads, size), layer.split(b, 1, size), layer.split(c, 1, size)
    g, dt = _forgetting(
        layer,
        opset15.transpose(layer.linear(data, "in_proj_dt", width, heads), _order(0, 2, 1)),
        heads,
    )
    scaled = opset15.multiply(x, opset15.unsqueeze(dt, axis(-1)), name=layer.named("x_times_dt"))
    shared, square = [-1, 1, 1, size], [-1, heads, size, size]
    parts = {
        "x": (scaled, [-1, heads, 1, size]),
        "B": (b, shared),
        "C": (c, shared),
        "g": (g, [-1, heads, 1]),
    }
    nothing = opset15.broadcast(
        _number(0), opset15.shape_of(scaled), name=layer.named("no_output_yet")
    )
    out, last = token_loop(
        layer.named("for_each_token"),
        token_count(scaled, layer.named("tokens")),
        parts,
        (layer.zeros(data, heads, size, size) if state is None else state, square),
        (nothing, [-1, heads, -1, size]),
        lambda pieces, before: _mamba_cell(layer, pieces, before),
    )
    out = opset15.add(
        out, opset15.multiply(x, layer.weight("D", heads, 1, 1)), name=layer.named("with_skip")
    )
    gate = opset15.swish(layer.linear(data, "in_proj_z", width, inner))
    return layer.linear(
        layer.norm(opset15.multiply(layer.joined(out), gate), "norm"),
        "out_proj",
        inner,
        width,
        scale=STEP,
    ), last


def attention(layer: Layer, data: Any) -> Any:
    """Full causal attention without positions, [batch, tokens, width] in and out."""
    width, heads, size = layer.sizes.width, layer.sizes.heads, layer.sizes.size
    parts = [
        layer.split(layer.linear(data, f"{one}_proj", width, layer.sizes.inner), heads, size)
        for one in "qkv"
    ]
    seen = opset15.scaled_dot_product_attention(*parts, causal=True, name=layer.named("attention"))
    return layer.linear(layer.joined(seen), "o_proj", layer.sizes.inner, width, scale=STEP)


def gated_mlp(layer: Layer, data: Any) -> Any:
    width = layer.sizes.width
    gate = opset15.swish(layer.linear(data, "gate_proj", width, 2 * width))
    return layer.linear(
        opset15.multiply(gate, layer.linear(data, "up_proj", width, 2 * width)),
        "down_proj",
        2 * width,
        width,
        scale=STEP,
    )


def _mamba_cell(layer: Layer, parts: list[Any], state: Any) -> tuple[Any, Any]:
    """One token: the state fades, x times B is added, C reads it."""
    x, b, c = (opset15.squeeze(one, axis(2)) for one in parts[:3])
    decay = opset15.unsqueeze(opset15.exp(parts[3]), axis(-1), name=layer.named("decay"))
    update = opset15.multiply(
        opset15.unsqueeze(x, axis(-1)), opset15.unsqueeze(b, axis(-2)), name=layer.named("update")
    )
    after = opset15.add(
        opset15.multiply(state, decay, name=layer.named("faded_state")),
        update,
        name=layer.named("new_state"),
    )
    read = opset15.reduce_sum(
        opset15.multiply(after, opset15.unsqueeze(c, axis(-2))), axis(-1), keep_dims=False
    )
    return after, opset15.unsqueeze(read, axis(2), name=layer.named("out"))


def _forgetting(layer: Layer, data: Any, heads: int) -> tuple[Any, Any]:
    """How much each head forgets at each token (exp of it, a negative number), and its step;
    both [batch, heads, tokens].
    """
    step = opset15.softplus(
        opset15.add(data, layer.weight("dt_bias", heads, 1)), name=layer.named("dt")
    )
    rate = opset15.constant(
        -np.exp(layer.random.uniform(-3, 0, (heads, 1))).astype(np.float32), name=layer.named("A")
    )
    return opset15.multiply(step, rate, name=layer.named("g")), step


def _number(value: float) -> Any:
    return opset15.constant(np.float32(value))


def _order(*axes: int) -> Any:
    return opset15.constant(np.array(axes, np.int64))
