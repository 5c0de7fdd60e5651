"""BeamSearch over an encoder and a decoder, such as T5's, written as the loop that it is."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, helper

from loopscope.read.onnx.attributes import Given
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
"""The ``model_type``."""
_HIDDEN = "encoder_hidden_states"


class EncoderBeams(Beams):
    """The encoder runs once, before the loop.

    Its inputs are tokens and mask, and in the older of two forms the first tokens of the decoder,
    for which it gives the logits, hidden states and first caches as well; in the newer one it only
    gives the keys and values of what it has read.
    """

    __slots__ = ()
    STATE = ("tokens", "sequences")
    CACHE_AXIS = 0

    @classmethod
    def understood(cls, attributes: Given) -> tuple[list[GraphProto], list[LayerCache]] | None:
        encoder, decoder = graph(attributes, "encoder"), graph(attributes, "decoder")
        if (
            encoder is None
            or decoder is None
            or number(attributes, "model_type", 0) != _ENCODER_DECODER
        ):
            return None
        caches = caches_of(decoder.output[1:], heads=1)
        taken = (
            2 + _takes_hidden(decoder) + 2 * len(caches)
        )  # keys and values of its own, and of the encoder
        given = {2: len(caches), 3: 2 + 2 * len(caches)}.get(len(encoder.input))
        if not caches or len(decoder.input) != taken or len(encoder.output) != given:
            return None
        return [encoder, decoder], caches

    @property
    def is_computed(self) -> bool:
        begins = self.number("decoder_start_token_id", -1) >= 0
        return (
            super().is_computed
            and begins
            and (self._gives_logits or not _takes_hidden(self.graphs[1]))
        )

    @property
    def _gives_logits(self) -> bool:
        return len(self.graphs[0].input) > 2

    def begun(self, nodes: OnnxNodes, rows: str) -> list[str]:
        tokens = self.input("input_ids")
        mask = self.input("attention_mask") or self._mask(nodes, tokens)
        start = self.number("decoder_start_token_id")
        first = (
            [nodes.filled(start, np.int32, nodes.length(tokens, 0), 1)]
            if self._gives_logits
            else []
        )
        outputs = [f"{self.mark}encoder {place}" for place in range(len(self.graphs[0].output))]
        nodes.made.append(run("encoder", [tokens, mask, *first], outputs))
        begin = nodes.filled(start, np.int32, nodes.length(rows, 0), 1)
        crosses = outputs[-len(self.caches) :]
        self._for_beams(
            nodes,
            rows,
            {"mask of the encoder": mask, **dict(zip(self._crosses, crosses, strict=True))},
        )
        if not self._gives_logits:
            return [begin, begin, *(self._no_keys(nodes, cache, rows) for cache in self.caches)]
        self._for_beams(
            nodes, rows, {"first logits": self.last(nodes, outputs[0]), _HIDDEN: outputs[1]}
        )
        return [
            begin,
            begin,
            *(nodes.add("Gather", one, rows, axis=0) for one in outputs[2 : 2 + len(self.caches)]),
        ]

    def _mask(self, nodes: OnnxNodes, tokens: str) -> str:
        """0 for padding that comes before all words, and else 1."""
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
        """What each beam takes of its one of the batch, under a name that the loop's body knows."""
        nodes.made += [
            helper.make_node("Gather", [value, rows], [f"{self.mark}{name}"], name=name, axis=0)
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
        decoder = self.graphs[1]
        hidden = [_HIDDEN] if _takes_hidden(decoder) else []
        outside = [f"{self.mark}{name}" for name in ("mask of the encoder", *hidden)]
        inputs = [
            sequences if _takes_all(decoder) else tokens,
            *outside,
            *pasts,
            *(f"{self.mark}{name}" for name in self._crosses),
        ]
        outputs = [f"{self.mark}logits", *presents]
        if not self._gives_logits:
            nodes.made.append(run("decoder", inputs, outputs))
            return self.last(nodes, outputs[0])
        first, later = OnnxNodes(f"{self.mark}first "), OnnxNodes(f"{self.mark}later ")
        known = [first.add("Identity", one) for one in (f"{self.mark}first logits", *pasts)]
        inner = [f"{one} of the decoder" for one in outputs]
        later.made.append(run("decoder", inputs, inner))
        found = [self.last(later, inner[0]), *inner[1:]]
        self.first_or_not(
            nodes,
            graph_of(first.made, "encoder", [], known),
            graph_of(later.made, "decoder", [], found),
            outputs,
        )
        return outputs[0]

    def gone_on(self, nodes: OnnxNodes, state: list[str], token: str, rows: str) -> list[str]:
        _, sequences = state
        return [
            token,
            nodes.add("Concat", nodes.add("Gather", sequences, rows, axis=0), token, axis=1),
        ]


def _takes_hidden(decoder: GraphProto) -> bool:
    return len(decoder.input) > 2 and decoder.input[2].name == _HIDDEN


def _takes_all(decoder: GraphProto) -> bool:
    """Whether all tokens are given to it each time, and not the last one alone."""
    lengths = decoder.input[0].type.tensor_type.shape.dim
    return len(lengths) < 2 or lengths[1].dim_value != 1
