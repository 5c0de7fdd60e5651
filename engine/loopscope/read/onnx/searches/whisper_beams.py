"""WhisperBeamSearch, whose encoder reads sound and whose first tokens are forced, as a loop."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, helper

from loopscope.read.onnx.node_attributes import AttributeMap
from loopscope.read.onnx.searches.beams import Beams
from loopscope.read.onnx.searches.decoder_search import (
    END,
    LayerCache,
    OnnxNodes,
    caches_of,
    graph,
    graph_of,
)
from loopscope.read.onnx.searches.encoder_beams import EncoderBeams, has_hidden_input
from loopscope.read.onnx.searches.timestamp_rules import TimestampRules

_WHISPER = 2
"""Value of attribute ``model_type``."""
_CROSS_QK, _NON_SPEECH = 3, 4
"""Outputs that ONNX Runtime does not compute on the CPU."""
_MOST_WORDS = 2**31
_WITH_TIMESTAMPS = 1
"""Value of input ``logits_processor`` that requests the rules for timestamps."""


class WhisperBeams(EncoderBeams):
    """Beam search over Whisper's encoder and decoder.

    The encoder has the inputs features ``[batch, features, frames]`` and first tokens, and also
    runs the decoder on these. ONNX Runtime refuses an encoder without the first tokens.

    On the CPU, ONNX Runtime ignores ``extra_decoding_ids``, and so does this class. Nodes with
    features that it does not compute there as documented are not supported: it refuses
    ``cross_qk``, leaves ``non_speech_probs`` unwritten, reads logits with the wrong stride if
    ``vocab_size`` is less than their width, and returns other sequences if caches share a buffer
    (a decoder with ``past_sequence_length``). It refuses f16 caches and fewer than two iterations,
    which this class runs.
    """

    __slots__ = ()
    INPUTS = (*Beams.INPUTS, "cross_qk_layer_head", "extra_decoding_ids", "temperature")

    @classmethod
    def supported(
        cls, attributes: AttributeMap
    ) -> tuple[list[GraphProto], list[LayerCache]] | None:
        encoder, decoder = graph(attributes, "encoder"), graph(attributes, "decoder")
        if encoder is None or decoder is None:
            return None
        caches = caches_of(decoder.output[1:], heads=1)
        # Each layer has a cache for self-attention and one for cross-attention.
        if (
            not caches
            or len(encoder.input) != 2
            or len(encoder.output) != 2 + 2 * len(caches)
            or len(decoder.input) != 1 + has_hidden_input(decoder, 1) + 2 * len(caches)
        ):
            return None
        return [encoder, decoder], caches

    @property
    def is_supported(self) -> bool:
        """False without first tokens, and without timestamps if there may be rules for them."""
        default = _WHISPER if self.node.op_type == "WhisperBeamSearch" else 0
        width = _width(self.graphs[1])
        first_timestamp = self.number("beginning_timestamp_token_id", -1)
        return (
            self.number("model_type", default) == _WHISPER
            and self.number("vocab_size", -1) in (-1, 0, width)
            and bool(
                self.input("decoder_input_ids") or self.number("decoder_start_token_id", -1) >= 0
            )
            and (0 < first_timestamp < (width or _MOST_WORDS) or not self.input("logits_processor"))
            and not (self.has_output(_CROSS_QK) or self.has_output(_NON_SPEECH))
        )

    @property
    def gives_logits(self) -> bool:
        return True

    def initial_state(self, nodes: OnnxNodes, rows: str) -> list[str]:
        features = self.input("input_ids")
        forced = self.input("decoder_input_ids") or nodes.filled(
            self.number("decoder_start_token_id"), np.int32, nodes.length(features, 0), 1
        )
        sequences = nodes.add("Gather", forced, rows, axis=0)
        last = nodes.columns(
            sequences, nodes.constant([-1], np.int64), nodes.constant([END], np.int64)
        )
        return [last, sequences, *self.encode(nodes, [features, forced], rows)]

    def shared_inputs(self) -> list[str]:
        return self.hidden_input(1)

    def allowed(self, nodes: OnnxNodes, scores: str, sequences: str) -> str:
        scores = super().allowed(nodes, scores, sequences)
        if self.input("temperature"):
            scores = nodes.add("Div", scores, self._divisor(nodes))
        if not self.input("logits_processor"):
            return scores
        rules, others = OnnxNodes(f"{self.prefix}rules "), OnnxNodes(f"{self.prefix}no rules ")
        with_rules = self._rules().apply(rules, scores, sequences)
        without = others.add("Identity", scores)
        processor = nodes.scalar(self.input("logits_processor"))
        output = f"{self.prefix}scores with timestamp rules"
        nodes.nodes.append(
            helper.make_node(
                "If",
                [nodes.add("Equal", processor, nodes.constant(_WITH_TIMESTAMPS, np.int32))],
                [output],
                name="timestamp rules",
                then_branch=graph_of(rules.nodes, "timestamps", [], [with_rules]),
                else_branch=graph_of(others.nodes, "no timestamps", [], [without]),
            )
        )
        return output

    def _divisor(self, nodes: OnnxNodes) -> str:
        """Return the temperature if it is positive, else 1."""
        temperature = nodes.add("Cast", self.input("temperature"), to=TensorProto.FLOAT)
        is_positive = nodes.add("Greater", temperature, nodes.constant(0, np.float32))
        return nodes.add("Where", is_positive, temperature, nodes.constant(1, np.float32))

    def _rules(self) -> TimestampRules:
        never, only_first = (
            tuple(self.number(f"{name}_token_id", -1) for name in names)
            for names in (
                ("no_timestamps", "start_of_lm"),
                ("decoder_start", "translate", "transcribe"),
            )
        )
        return TimestampRules(
            timestamps=self.number("beginning_timestamp_token_id"),
            end=self.number("eos_token_id"),
            never=never,
            only_first=only_first,
        )


def _width(decoder: GraphProto) -> int:
    """Return the declared number of words; 0 if it is not declared."""
    lengths = decoder.output[0].type.tensor_type.shape.dim
    return int(lengths[-1].dim_value) if lengths else 0
