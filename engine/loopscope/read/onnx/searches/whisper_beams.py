"""WhisperBeamSearch as a loop. Its encoder reads sound, its first tokens are forced, and rules
exclude words by the timestamps of the transcript.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, TensorProto, helper

from loopscope.read.onnx.node_attributes import AttributeMap
from loopscope.read.onnx.searches.beams import Beams
from loopscope.read.onnx.searches.decoder_search import (
    END,
    LOWEST,
    LayerCache,
    OnnxNodes,
    caches_of,
    graph,
    graph_of,
)
from loopscope.read.onnx.searches.encoder_beams import EncoderBeams, has_hidden_input

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


_LATEST_FIRST = 50
"""Maximum index of the first timestamp of a transcript: one second, at 0.02 seconds each."""


@dataclass(frozen=True, slots=True)
class TimestampRules:
    """Token ids that the rules refer to. All words from ``timestamps`` on are timestamps."""

    timestamps: int
    end: int
    never: tuple[int, ...]
    """Words that are excluded always."""
    only_first: tuple[int, ...]
    """Words that are excluded after the first timestamp."""

    def apply(self, nodes: OnnxNodes, scores: str, sequences: str) -> str:
        """Return the scores ``[rows, words]``, with the lowest score for excluded words.

        ``sequences`` are the tokens so far, ``[rows, tokens]``. A timestamp is excluded if it is
        earlier than the last one, or if it would follow a pair of timestamps. A timestamp that
        follows text must be followed by its second half. All words but timestamps are excluded if
        the timestamps together are likelier than the likeliest of these words.
        """
        words = nodes.add(
            "Range",
            nodes.constant(0, np.int64),
            nodes.scalar(nodes.length(scores, 1)),
            nodes.constant(1, np.int64),
        )
        is_timestamp = self._is_timestamp(nodes, words)
        excluded = self._excluded(nodes, words, is_timestamp, sequences)
        scores = nodes.add("Where", excluded, nodes.constant(LOWEST, np.float32), scores)
        is_text = nodes.add("Not", is_timestamp)
        return nodes.add(
            "Where",
            nodes.add("And", self._must_be_timestamp(nodes, scores), is_text),
            nodes.constant(LOWEST, np.float32),
            scores,
        )

    def _is_timestamp(self, nodes: OnnxNodes, tokens: str) -> str:
        return nodes.add("Greater", tokens, nodes.constant(self.timestamps - 1, np.int64))

    def _excluded(self, nodes: OnnxNodes, words: str, is_timestamp: str, sequences: str) -> str:
        """Return the mask of the words that the tokens so far exclude, ``[rows, words]``."""
        tokens = nodes.add("Cast", sequences, to=TensorProto.INT64)
        stamps = nodes.add("Cast", self._is_timestamp(nodes, tokens), to=TensorProto.INT64)
        zero = nodes.constant(0, np.int64)
        last = _last_column(nodes, stamps)
        before = nodes.add("Sub", _sum(nodes, stamps), last)
        last_two = nodes.columns(
            stamps, nodes.constant([-2], np.int64), nodes.constant([END], np.int64)
        )
        previous = nodes.add("Sub", _sum(nodes, last_two), last)
        has_earlier = nodes.add("Greater", before, zero)
        is_first = nodes.add("Not", has_earlier)
        follows = nodes.add("Or", is_first, nodes.add("Greater", previous, zero))
        ends_in_timestamp = nodes.add("Greater", last, zero)
        is_paired = nodes.add("And", ends_in_timestamp, follows)
        is_open = nodes.add("And", ends_in_timestamp, nodes.add("Not", follows))
        earliest = nodes.add(
            "Sub",
            nodes.add("Add", _latest(nodes, tokens, stamps), nodes.constant(1, np.int64)),
            nodes.add("Cast", is_open, to=TensorProto.INT64),
        )
        is_early = nodes.add("And", is_timestamp, nodes.add("Less", words, earliest))
        limit = nodes.constant(self.timestamps + _LATEST_FIRST, np.int64)
        is_text = nodes.add("Less", words, nodes.constant(self.end, np.int64))
        excluded = nodes.add("Or", self._is_any(nodes, words, self.never), is_early)
        for condition, group in (
            (has_earlier, self._is_any(nodes, words, self.only_first)),
            (is_paired, is_timestamp),
            (is_open, is_text),
            (is_first, nodes.add("Greater", words, limit)),
        ):
            excluded = nodes.add("Or", excluded, nodes.add("And", condition, group))
        return excluded

    def _is_any(self, nodes: OnnxNodes, words: str, ids: tuple[int, ...]) -> str:
        first, *others = (nodes.add("Equal", words, nodes.constant(i, np.int64)) for i in ids)
        for other in others:
            first = nodes.add("Or", first, other)
        return first

    def _must_be_timestamp(self, nodes: OnnxNodes, scores: str) -> str:
        """Return True for rows whose timestamps are likelier than each other word, ``[rows, 1]``.

        The sum is computed relative to the likeliest timestamp, because a score may be very low.
        """
        begin = nodes.constant([self.timestamps], np.int64)
        text = nodes.columns(scores, nodes.constant([0], np.int64), begin)
        stamps = nodes.columns(scores, begin, nodes.constant([END], np.int64))
        likeliest = _maximum(nodes, stamps)
        total = _sum(nodes, nodes.add("Exp", nodes.add("Sub", stamps, likeliest)))
        together = nodes.add("Add", nodes.add("Log", total), likeliest)
        return nodes.add("Greater", together, _maximum(nodes, text))


# Reductions of one axis have other inputs in each opset, so these use operations that do not.


def _maximum(nodes: OnnxNodes, table: str) -> str:
    """Return the maximum of each row, ``[rows, 1]``."""
    return nodes.several(2, "TopK", table, nodes.constant([1], np.int64), axis=1)[0]


def _sum(nodes: OnnxNodes, table: str) -> str:
    """Return the sum of each row, ``[rows, 1]``."""
    return _last_column(nodes, nodes.add("CumSum", table, nodes.constant(1, np.int64)))


def _last_column(nodes: OnnxNodes, table: str) -> str:
    return nodes.columns(table, nodes.constant([-1], np.int64), nodes.constant([END], np.int64))


def _latest(nodes: OnnxNodes, tokens: str, stamps: str) -> str:
    """Return the last timestamp of each row, ``[rows, 1]``; the first token if there is none."""
    numbers = nodes.add(
        "Range",
        nodes.constant(0, np.int64),
        nodes.scalar(nodes.length(tokens, 1)),
        nodes.constant(1, np.int64),
    )
    place = _maximum(nodes, nodes.add("Mul", stamps, numbers))
    return nodes.add("GatherElements", tokens, place, axis=1)
