"""BeamSearch with an encoder and a decoder, such as T5's, as a loop."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, helper

from loopscope.read.onnx.node_attributes import AttributeMap
from loopscope.read.onnx.searches.beams import Beams
from loopscope.read.onnx.searches.decoder_search import (
    LayerCache,
    OnnxNodes,
    caches_of,
    graph,
    graph_of,
    number,
    run,
)

_ENCODER_DECODER = 1
"""Value of attribute ``model_type``."""
_HIDDEN = "encoder_hidden_states"
_MASK = "mask of the encoder"
_FIRST_LOGITS = "first logits"


class EncoderBeams(Beams):
    """Beam search whose encoder runs once, before the loop.

    There are two forms of the encoder. The older one has the inputs tokens, mask and first decoder
    tokens, and returns the first logits, hidden states and first caches as well. The newer one has
    the inputs tokens and mask, and returns only the keys and values for cross attention.
    """

    __slots__ = ()
    STATE = ("tokens", "sequences")
    CACHE_AXIS = 0

    @classmethod
    def supported(
        cls, attributes: AttributeMap
    ) -> tuple[list[GraphProto], list[LayerCache]] | None:
        encoder, decoder = graph(attributes, "encoder"), graph(attributes, "decoder")
        if (
            encoder is None
            or decoder is None
            or number(attributes, "model_type", 0) != _ENCODER_DECODER
        ):
            return None
        caches = caches_of(decoder.output[1:], heads=1)
        # Each layer has a cache for self-attention and one for cross-attention.
        expected_inputs = 2 + has_hidden_input(decoder, 2) + 2 * len(caches)
        expected_outputs = {2: len(caches), 3: 2 + 2 * len(caches)}.get(len(encoder.input))
        if (
            not caches
            or len(decoder.input) != expected_inputs
            or len(encoder.output) != expected_outputs
        ):
            return None
        return [encoder, decoder], caches

    @property
    def is_supported(self) -> bool:
        begins = self.number("decoder_start_token_id", -1) >= 0
        return (
            super().is_supported
            and begins
            and (self.gives_logits or not has_hidden_input(self.graphs[1], 2))
        )

    @property
    def gives_logits(self) -> bool:
        """True if the encoder's graph also runs the decoder on the first tokens."""
        return len(self.graphs[0].input) > 2

    def initial_state(self, nodes: OnnxNodes, rows: str) -> list[str]:
        tokens = self.input("input_ids")
        mask = self.input("attention_mask") or self._mask(nodes, tokens)
        start = self.number("decoder_start_token_id")
        first = (
            [nodes.filled(start, np.int32, nodes.length(tokens, 0), 1)] if self.gives_logits else []
        )
        begin = nodes.filled(start, np.int32, nodes.length(rows, 0), 1)
        self._for_beams(nodes, rows, {_MASK: mask})
        return [begin, begin, *self.encode(nodes, [tokens, mask, *first], rows)]

    def encode(self, nodes: OnnxNodes, inputs: list[str], rows: str) -> list[str]:
        """Run the encoder's graph and return the initial caches, one row per beam.

        Its other results get the names that the loop's body uses.
        """
        outputs = [f"{self.prefix}encoder {place}" for place in range(len(self.graphs[0].output))]
        nodes.nodes.append(run("encoder", inputs, outputs))
        named = dict(zip(self._crosses, outputs[-len(self.caches) :], strict=True))
        if not self.gives_logits:
            self._for_beams(nodes, rows, named)
            return [self._no_keys(nodes, cache, rows) for cache in self.caches]
        logits, hidden, *caches = outputs
        named |= {_FIRST_LOGITS: self.last(nodes, logits), _HIDDEN: hidden}
        self._for_beams(nodes, rows, named)
        return [
            nodes.add("Gather", present, rows, axis=0) for present in caches[: len(self.caches)]
        ]

    def word_count(self, nodes: OnnxNodes, scores: str) -> str:
        if not self.gives_logits:
            return super().word_count(nodes, scores)
        # Scores of zero iterations do not have an axis of words.
        return nodes.length(f"{self.prefix}{_FIRST_LOGITS}", 1)

    def shared_inputs(self) -> list[str]:
        """Return the decoder's inputs between the tokens and the caches, without the prefix."""
        return [_MASK, *self.hidden_input(2)]

    def hidden_input(self, place: int) -> list[str]:
        """Return the hidden states if the decoder reads them as its input at ``place``."""
        return [_HIDDEN] if has_hidden_input(self.graphs[1], place) else []

    def _mask(self, nodes: OnnxNodes, tokens: str) -> str:
        """Return 0 for padding before the first word, else 1."""
        padding = nodes.add("Equal", tokens, nodes.constant(self.number("pad_token_id"), np.int32))
        words = nodes.add("Cast", nodes.add("Not", padding), to=TensorProto.INT32)
        counted = nodes.add("CumSum", words, nodes.constant(1, np.int64))
        return nodes.add(
            "Cast", nodes.add("Greater", counted, nodes.constant(0, np.int32)), to=TensorProto.INT32
        )

    @property
    def _crosses(self) -> list[str]:
        return [f"cross {place}" for place in range(len(self.caches))]

    def _for_beams(self, nodes: OnnxNodes, rows: str, named: dict[str, str]) -> None:
        """Repeat values of the batch for each beam, under names that the loop's body uses."""
        nodes.nodes += [
            helper.make_node("Gather", [value, rows], [f"{self.prefix}{name}"], name=name, axis=0)
            for name, value in named.items()
        ]

    def _no_keys(self, nodes: OnnxNodes, cache: LayerCache, rows: str) -> str:
        zero = helper.make_tensor("zero", cache.kind, [1], [0.0])
        return nodes.add(
            "ConstantOfShape",
            nodes.shape(nodes.length(rows, 0), cache.heads, 0, cache.width),
            value=zero,
        )

    def logits(
        self, nodes: OnnxNodes, state: list[str], pasts: list[str], presents: list[str]
    ) -> str:
        tokens, sequences = state
        inputs = [
            sequences if _has_all_tokens_input(self.graphs[1]) else tokens,
            *(f"{self.prefix}{name}" for name in self.shared_inputs()),
            *pasts,
            *(f"{self.prefix}{name}" for name in self._crosses),
        ]
        outputs = [f"{self.prefix}logits", *presents]
        if not self.gives_logits:
            nodes.nodes.append(run("decoder", inputs, outputs))
            return self.last(nodes, outputs[0])
        first, later = OnnxNodes(f"{self.prefix}first "), OnnxNodes(f"{self.prefix}later ")
        known = [
            first.add("Identity", value) for value in (f"{self.prefix}{_FIRST_LOGITS}", *pasts)
        ]
        inner = [f"{value} of the decoder" for value in outputs]
        later.nodes.append(run("decoder", inputs, inner))
        results = [self.last(later, inner[0]), *inner[1:]]
        self.first_or_not(
            nodes,
            graph_of(first.nodes, "encoder", [], known),
            graph_of(later.nodes, "decoder", [], results),
            outputs,
        )
        return outputs[0]

    def next_state(self, nodes: OnnxNodes, state: list[str], token: str, rows: str) -> list[str]:
        _, sequences = state
        return [
            token,
            nodes.add("Concat", nodes.add("Gather", sequences, rows, axis=0), token, axis=1),
        ]


def has_hidden_input(decoder: GraphProto, place: int) -> bool:
    """Return True if the decoder's input at ``place`` is the hidden states of the encoder."""
    return len(decoder.input) > place and decoder.input[place].name == _HIDDEN


def _has_all_tokens_input(decoder: GraphProto) -> bool:
    """Return True if the decoder's input is all tokens so far rather than the last one."""
    lengths = decoder.input[0].type.tensor_type.shape.dim
    return len(lengths) < 2 or lengths[1].dim_value != 1
