"""Tiny encoders and decoders of random weights, with the inputs and outputs that ONNX Runtime's
BeamSearch requires of T5, and WhisperBeamSearch of Whisper.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

WORDS, HEADS, WIDTH, FEATURES, MOST = 11, 2, 8, 3, 24


def graphs(
    seed: int, *, gives_logits: bool, hidden: bool = False, whole: bool = False, layers: int = 1
) -> Mapping[str, GraphProto]:
    """Both; ``gives_logits``: the older form, whose encoder also runs the decoder once; ``hidden``:
    whose decoder takes hidden states; ``whole``: it takes all tokens each time, and its caches are
    not used.
    """
    drawn = _Drawn(seed)
    names = _cache_names(layers)
    encoder, decoder = drawn.encoder(layers), drawn.decoder(layers, past=True, whole=whole)
    ids = [_ints("encoder_input_ids"), _ints("encoder_attention_mask")]
    given = [_floats(f"present_{name}", 4) for name in names]
    outputs, nodes = given[2 * layers :], encoder
    if gives_logits:
        ids.append(_ints("decoder_input_ids"))
        outputs = [_floats("logits", 3, WORDS), _floats("encoder_hidden_states", 3), *given]
        nodes = [*encoder, *drawn.decoder(layers, past=False, tokens="decoder_input_ids")]
    inputs = [_ints("input_ids", None if whole else 1)]
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


def whisper_graphs(
    seed: int, *, words: int = WORDS, hidden: bool = True, whole: bool = False, layers: int = 1
) -> Mapping[str, GraphProto]:
    """Return Whisper's encoder, which also runs the decoder on the first tokens, and its decoder.

    ``hidden``: the decoder has an input for hidden states, which it does not read, because ONNX
    Runtime only sets its shape. ``whole``: the decoder reads all tokens each time.
    """
    drawn, names = _Drawn(seed, words), _cache_names(layers)
    caches = [_floats(f"present_{name}", 4) for name in names]
    past = [_floats(f"past_{name}", 4) for name in names]
    states = _floats("encoder_hidden_states", 3)
    logits = _floats("logits", 3, words)
    encoder = [
        *drawn.encoder(layers, sound=True),
        *drawn.decoder(layers, past=False, tokens="decoder_input_ids", masked=False),
    ]
    decoder = drawn.decoder(layers, past=True, whole=whole, masked=False)
    sound = helper.make_tensor_value_info(
        "encoder_input_ids", TensorProto.FLOAT, ["batch", FEATURES, "frames"]
    )
    ids = _ints("input_ids", None if whole else 1)
    weights = drawn.initializers()
    return {
        "encoder": helper.make_graph(
            encoder,
            "encoder",
            [sound, _ints("decoder_input_ids")],
            [logits, states, *caches],
            weights,
        ),
        "decoder": helper.make_graph(
            decoder,
            "decoder",
            [ids, *([states] if hidden else []), *past],
            [logits, *caches[: 2 * layers]],
            weights,
        ),
    }


def _cache_names(layers: int) -> list[str]:
    return [
        f"{kind}_{part}_{layer}"
        for part in ("self", "cross")
        for layer in range(layers)
        for kind in ("key", "value")
    ]


def _ints(name: str, tokens: int | None = None) -> ValueInfoProto:
    shape = ["batch", f"{name} tokens" if tokens is None else tokens]
    return helper.make_tensor_value_info(name, TensorProto.INT32, shape)


def _floats(name: str, rank: int, last: int = WIDTH) -> ValueInfoProto:
    shape: list[str | int | None] = (
        ["batch", HEADS, f"{name} tokens", WIDTH // HEADS]
        if rank == 4
        else ["batch", f"{name} tokens", last]
    )
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


class _Drawn:
    """Weights, and the nodes that use them."""

    def __init__(self, seed: int, words: int = WORDS) -> None:
        self._words = words
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

    def encoder(self, layers: int, *, sound: bool = False) -> list[NodeProto]:
        states = ["encoder_hidden_states"]
        if sound:
            nodes = [
                helper.make_node("Transpose", ["encoder_input_ids"], ["frames"], perm=[0, 2, 1]),
                helper.make_node("MatMul", ["frames", self._matrix("hear", FEATURES)], states),
            ]
        else:
            read = self._matrix("read", self._words)
            nodes = [helper.make_node("Gather", [read, "encoder_input_ids"], states)]
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
        self,
        layers: int,
        *,
        past: bool,
        whole: bool = False,
        tokens: str = "input_ids",
        masked: bool = True,
    ) -> list[NodeProto]:
        words = self._matrix("write", self._words)
        if masked:
            nodes = [helper.make_node("Gather", [words, tokens], ["state 0"]), *self._mask()]
        else:
            nodes = [
                helper.make_node("Gather", [words, tokens], ["embedded"]),
                *self._places(tokens, "past_key_self_0" if past and not whole else ""),
                helper.make_node("Add", ["embedded", "at places"], ["state 0"]),
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
            bias = "bias" if masked else ""
            nodes += self._attention(state, f"cross_{layer}", keys, values, bias)
            nodes.append(
                helper.make_node("Sum", [state, f"self_{layer} out", f"cross_{layer} out"], [ends])
            )
        nodes.append(
            helper.make_node(
                "MatMul", [f"state {layers}", self._matrix("out", WIDTH, self._words)], ["logits"]
            )
        )
        return nodes

    def _places(self, tokens: str, cache: str) -> list[NodeProto]:
        """Return the embedding of the tokens' places, which begin after the cache's tokens."""
        first, last, one = (self._weight(f"place {n}", np.array(n)) for n in (0, 2, 1))
        if cache:
            begin = [
                helper.make_node("Shape", [cache], ["lengths"]),
                helper.make_node("Gather", ["lengths", last], ["begin"], axis=0),
            ]
        else:
            begin = [helper.make_node("Identity", [first], ["begin"])]
        return [
            *begin,
            helper.make_node("Shape", [tokens], ["shape of tokens"]),
            helper.make_node("Gather", ["shape of tokens", one], ["count"], axis=0),
            helper.make_node("Add", ["begin", "count"], ["end"]),
            helper.make_node("Range", ["begin", "end", one], ["places"]),
            helper.make_node("Gather", [self._matrix("place", MOST), "places"], ["at places"]),
        ]

    def _mask(self) -> list[NodeProto]:
        return [
            helper.make_node("Cast", ["encoder_attention_mask"], ["seen"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["one", "seen"], ["unseen"]),
            helper.make_node("Mul", ["unseen", "much"], ["far"]),
            helper.make_node("Unsqueeze", ["far", "masked"], ["bias"]),
        ]

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
