"""Big models as they come from elsewhere: with scopes of names, without names, with loops in
every layer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import LayerId, Model, Node
from tests.engine.view.models import constant, graph, node

WIDE = 8
EYE = np.eye(WIDE, dtype=np.float32)


def attention(x: Tensor, prefix: str, wider: bool = False) -> Tensor:
    """Attention and a feed-forward part, of 14 operations."""

    def named(text: str) -> str:
        return f"{prefix}{text}" if prefix else ""

    query, key, value = (ops.matmul(x, EYE, name=named(f"attn/{part}")) for part in "qkv")
    scores = ops.softmax(
        ops.matmul(query, key, transpose_b=True, name=named("attn/scores")),
        axis=1,
        name=named("attn/softmax"),
    )
    mixed = ops.matmul(
        ops.matmul(scores, value, name=named("attn/mix")), EYE, name=named("attn/out")
    )
    x = ops.add(x, mixed, name=named("attn/add"))
    hidden = ops.gelu(
        ops.matmul(x, np.ones((WIDE, 64 if wider else 16), np.float32), name=named("mlp/up")),
        name=named("mlp/gelu"),
    )
    return ops.add(
        x,
        ops.matmul(
            hidden, np.ones((64 if wider else 16, WIDE), np.float32), name=named("mlp/down")
        ),
        name=named("mlp/add"),
    )


def transformer(layers: int, prefix: Callable[[int], str] = lambda _: "", odd: int = -1) -> Model:
    """Layers in a row; ``prefix`` names the scope of each, the one that is ``odd`` has a wider
    feed-forward part.
    """
    made = builder.Graph("transformer")
    x = made.parameter("x", "f32", [4, WIDE])
    ids = ops.relu(x)
    for layer in range(layers):
        ids = attention(ids, prefix(layer), wider=layer == odd)
    return made.model({"logits": ops.softmax(ops.matmul(ids, EYE), axis=1)})


def linear_attention(layers: int) -> Model:
    """Layers that keep a state of keys and values, updated in a loop over the tokens."""
    made = builder.Graph("linear attention")
    x = made.parameter("x", "f32", [5, WIDE])

    def step(state: Tensor, row: tuple[Tensor, Tensor]) -> Tensor:
        key, value = (ops.reshape(part, [1, WIDE], special_zero=False) for part in row)
        return state * 0.5 + ops.matmul(key, value, transpose_a=True)

    for _ in range(layers):
        query, key, value = (ops.matmul(x, EYE) for _ in range(3))
        states = builder.scan(step, (key, value), np.zeros((WIDE, WIDE), np.float32))
        read = ops.matmul(ops.reshape(query, [5, 1, WIDE], special_zero=False), states)
        x = ops.add(x, ops.tanh(ops.reshape(read, [5, WIDE], special_zero=False)))
    return made.model({"y": x})


def blocks(block: list[str], count: int, tail: int = 0) -> Model:
    """So many copies of a row of unary operations with an addition from their beginning to their
    end, then a row of Relu.
    """
    nodes: list[Node] = [node(0, "x", "Parameter")]
    wires = []
    last = 0
    for _ in range(count):
        begin = last
        for type in block:
            nodes.append(node(len(nodes), f"n{len(nodes)}", type, 1))
            wires.append((last, len(nodes) - 1, 0))
            last = len(nodes) - 1
        nodes += [constant(len(nodes), f"n{len(nodes)}", np.float32(1))]
        nodes.append(node(len(nodes), f"n{len(nodes)}", "Add", 3))
        wires += [
            (last, len(nodes) - 1, 0),
            (begin, len(nodes) - 1, 1),
            (len(nodes) - 2, len(nodes) - 1, 2),
        ]
        last = len(nodes) - 1
    for _ in range(tail):
        nodes.append(node(len(nodes), f"n{len(nodes)}", "Relu", 1))
        wires.append((last, len(nodes) - 1, 0))
        last = len(nodes) - 1
    assert nodes[-1].id == LayerId(len(nodes) - 1)
    return Model(graph(nodes, wires), "blocks")
