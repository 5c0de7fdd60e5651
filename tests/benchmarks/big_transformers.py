"""Transformers of any size, made with ``loopscope.builder``: what a user opens who comes with a
language model of today.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor

HEADS = 8
NODES_OF_A_LAYER = 70


def transformer(layers: int, channels: int = 8 * HEADS) -> loopscope.Model:
    """Pre-norm layers without names, attention and layer norm written out; the input is [1, length,
    channels], its length open.

    Each layer has 47 operations and 23 constants, with 12 · channels² weights of 4 bytes.
    """
    random = np.random.default_rng(0)
    graph = builder.Graph("transformer")

    def weight(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, np.float32) * np.float32(0.02)

    def normed(x: Tensor) -> Tensor:
        centred = x - ops.reduce_mean(x, [-1], keep_dims=True)
        variance = ops.reduce_mean(centred * centred, [-1], keep_dims=True)
        return centred / ops.sqrt(variance + 1e-5) * weight(channels) + weight(channels)

    def heads(x: Tensor) -> Tensor:
        return ops.transpose(
            ops.reshape(x, [0, -1, HEADS, channels // HEADS], special_zero=True), [0, 2, 1, 3]
        )

    def attention(x: Tensor) -> Tensor:
        query, key, value = (
            heads(ops.matmul(x, weight(channels, channels)) + weight(channels)) for _ in range(3)
        )
        shares = ops.softmax(
            ops.matmul(query, key, transpose_b=True) * (channels // HEADS) ** -0.5, axis=-1
        )
        mixed = ops.transpose(ops.matmul(shares, value), [0, 2, 1, 3])
        return ops.matmul(
            ops.reshape(mixed, [0, -1, channels], special_zero=True), weight(channels, channels)
        )

    x = value = graph.parameter("x", "f32", [1, None, channels])
    for _ in range(layers):
        value = value + attention(normed(value))
        wide = ops.gelu(
            ops.matmul(normed(value), weight(channels, 4 * channels)) + weight(4 * channels)
        )
        value = value + ops.matmul(wide, weight(4 * channels, channels)) + weight(channels)
    assert value is not x
    return graph.model({"y": normed(value)})


def saved(folder: Path, name: str, layers: int, channels: int = 8 * HEADS) -> Path:
    """The path of its file; the weights are beside it."""
    path = folder / f"{name}.xml"
    loopscope.write_model(transformer(layers, channels), path)
    return path
