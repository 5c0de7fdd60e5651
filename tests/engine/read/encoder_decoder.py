"""Tiny encoders and decoders of random weights, with the inputs and outputs that ONNX Runtime's
BeamSearch wants of T5.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

WORDS, HEADS, WIDTH = 11, 2, 8


def graphs(
    seed: int, *, gives_logits: bool, hidden: bool = False, whole: bool = False, layers: int = 1
) -> Mapping[str, GraphProto]:
    """Both; ``gives_logits``: the older form, whose encoder also runs the decoder once; ``hidden``:
    whose decoder takes hidden states; ``whole``: it takes all tokens each time, and its caches are
    not used.
    """
    drawn = _Drawn(seed)
    names = [
        f"{kind}_{part}_{layer}"
        for part in ("self", "cross")
        for layer in range(layers)
        for kind in ("key", "value")
    ]
    encoder, decoder = drawn.encoder(layers), drawn.decoder(layers, past=True, whole=whole)
    ids = [_ints("encoder_input_ids"), _ints("encoder_attention_mask")]
    given = [_floats(f"present_{name}", 4) for name in names]
    outputs, nodes = given[2 * layers :], encoder
    if gives_logits:
        ids.append(_ints("decoder_input_ids"))
        outputs = [_floats("logits", 3, WORDS), _floats("encoder_hidden_states", 3), *given]
        nodes = [*encoder, *drawn.decoder(layers, past=False, tokens="decoder_input_ids")]
    inputs = [
        _ints("input_ids")
        if whole
        else helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["batch", 1])
    ]
    inputs += [
        _ints("encoder_attention_mask"),
        *([_floats("encoder_hidden_states", 3)] if hidden else []),
    ]
    inputs += [_floats(f"past_{name}", 4) for name in names]
    results = [_floats("logits", 3, WORDS), *given[: 2 * layers]]
    weights = drawn.initializers()
    return {
        "encoder": helper.make_graph(nodes, "encoder", ids, outputs, weights),
        "decoder": helper.make_graph(decoder, "decoder", inputs, results, weights),
    }


def _ints(name: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", f"{name} tokens"])


def _floats(name: str, rank: int, last: int = WIDTH) -> ValueInfoProto:
    shape: list[str | int | None] = (
        ["batch", HEADS, f"{name} tokens", WIDTH // HEADS]
        if rank == 4
        else ["batch", f"{name} tokens", last]
    )
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


class _Drawn:
    """Weights, and the nodes that use them."""

    def __init__(self, seed: int) -> None:
        self._dice = np.random.default_rng(seed)
        self._weights: dict[str, np.ndarray] = {}
        self._weight("shape", np.array([0, 0, HEADS, WIDTH // HEADS]))
        self._weight("joined", np.array([0, 0, WIDTH]))
        self._weight("masked", np.array([1, 2]))
        self._weight("one", np.array(1, np.float32))
        self._weight("much", np.array(-1e4, np.float32))

    def initializers(self) -> list[TensorProto]:
        return [numpy_helper.from_array(value, name) for name, value in self._weights.items()]

    def _weight(self, name: str, value: np.ndarray) -> str:
        self._weights.setdefault(name, value)
        return name

    def _matrix(self, name: str, rows: int = WIDTH, columns: int = WIDTH) -> str:
        return self._weight(name, self._dice.normal(size=(rows, columns)).astype(np.float32))

    def encoder(self, layers: int) -> list[NodeProto]:
        nodes = [
            helper.make_node(
                "Gather",
                [self._matrix("read", WORDS), "encoder_input_ids"],
                ["encoder_hidden_states"],
            )
        ]
        for layer in range(layers):
            for kind in ("key", "value"):
                nodes += self._heads(
                    "encoder_hidden_states",
                    f"{kind}_cross_{layer}",
                    f"present_{kind}_cross_{layer}",
                )
        return nodes

    def _heads(self, given: str, weight: str, output: str) -> list[NodeProto]:
        """``[batch, tokens, width]`` to ``[batch, heads, tokens, width of a head]``."""
        return [
            helper.make_node("MatMul", [given, self._matrix(weight)], [f"{output} joined"]),
            helper.make_node("Reshape", [f"{output} joined", "shape"], [f"{output} apart"]),
            helper.make_node("Transpose", [f"{output} apart"], [output], perm=[0, 2, 1, 3]),
        ]

    def decoder(
        self, layers: int, *, past: bool, whole: bool = False, tokens: str = "input_ids"
    ) -> list[NodeProto]:
        nodes = [helper.make_node("Gather", [self._matrix("write", WORDS), tokens], ["state 0"])]
        nodes += [
            helper.make_node("Cast", ["encoder_attention_mask"], ["seen"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["one", "seen"], ["unseen"]),
            helper.make_node("Mul", ["unseen", "much"], ["far"]),
            helper.make_node("Unsqueeze", ["far", "masked"], ["bias"]),
        ]
        for layer in range(layers):
            state, ends = f"state {layer}", f"state {layer + 1}"
            for kind in ("key", "value"):
                made = f"present_{kind}_self_{layer}"
                nodes += self._heads(state, f"{kind}_self_{layer}", f"{made} new" if past else made)
                if past:
                    parts = (
                        [f"{made} new"] if whole else [f"past_{kind}_self_{layer}", f"{made} new"]
                    )
                    nodes.append(helper.make_node("Concat", parts, [made], axis=2))
            nodes += self._attention(
                state,
                f"self_{layer}",
                f"present_key_self_{layer}",
                f"present_value_self_{layer}",
                "",
            )
            keys, values = (
                f"{'past' if past else 'present'}_{kind}_cross_{layer}" for kind in ("key", "value")
            )
            nodes += self._attention(state, f"cross_{layer}", keys, values, "bias")
            nodes.append(
                helper.make_node("Sum", [state, f"self_{layer} out", f"cross_{layer} out"], [ends])
            )
        nodes.append(
            helper.make_node(
                "MatMul", [f"state {layers}", self._matrix("out", WIDTH, WORDS)], ["logits"]
            )
        )
        return nodes

    def _attention(
        self, state: str, name: str, keys: str, values: str, bias: str
    ) -> list[NodeProto]:
        scores = (
            [helper.make_node("Add", [f"{name} raw", bias], [f"{name} scores"])] if bias else []
        )
        return [
            *self._heads(state, f"{name} query", f"{name} queries"),
            helper.make_node("Transpose", [keys], [f"{name} turned"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", [f"{name} queries", f"{name} turned"], [f"{name} raw"]),
            *scores,
            helper.make_node(
                "Softmax",
                [f"{name} scores" if bias else f"{name} raw"],
                [f"{name} shares"],
                axis=-1,
            ),
            helper.make_node("MatMul", [f"{name} shares", values], [f"{name} mixed"]),
            helper.make_node("Transpose", [f"{name} mixed"], [f"{name} back"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [f"{name} back", "joined"], [f"{name} out"]),
        ]
