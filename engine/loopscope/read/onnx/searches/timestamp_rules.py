"""The rules for timestamps in Whisper's transcripts, as ONNX nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from loopscope.read.onnx.searches.decoder_search import END, LOWEST, OnnxNodes

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
