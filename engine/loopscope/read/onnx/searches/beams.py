"""BeamSearch, written as the loop that it is: several sequences for each of the batch, of which
the best go on.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from onnx import FunctionProto, GraphProto, TensorProto, helper

from loopscope.read.onnx.searches.decoder_search import OURS, OnnxNodes, Search, graph_of

_SCORED = ("beam scores", "ended", "ended scores", "ended count", "done")
"""Of the loop: the scores ``[batch, beams]``; the sequences that have ended, their scores and how
many they are; and for which of the batch nothing can become better.
"""
_UNLIKELY = -1e9
"""The score of all beams but the first at the beginning, when they are the same."""


class Beams(Search):
    """The sequences that are best as a whole, of a decoder alone."""

    __slots__ = ()
    NEEDED = 5
    INPUTS = (
        "input_ids",
        "max_length",
        "min_length",
        "num_beams",
        "num_return_sequences",
        "length_penalty",
        "repetition_penalty",
        "vocab_mask",
        "prefix_vocab_mask",
        "attention_mask",
        "decoder_input_ids",
        "logits_processor",
    )
    STATE: ClassVar[tuple[str, ...]] = ("tokens", "words", "mask", "sequences")
    """Of the loop, a row for each beam: tokens that are new, which of all are words, the mask,
    all tokens; ``sequences`` is the last.
    """
    CACHE_AXIS: ClassVar[int] = 1
    """Of the rows."""

    @property
    def is_computed(self) -> bool:
        """What only Whisper has is not."""
        return not self.input("decoder_input_ids") and not self.input("logits_processor")

    def begun(self, nodes: OnnxNodes, rows: str) -> list[str]:
        """The initial values of ``STATE`` and of the caches; ``rows``: for each beam its number
        in the batch.
        """
        tokens = nodes.add("Gather", self.input("input_ids"), rows, axis=0)
        pad = nodes.constant(self.number("pad_token_id"), np.int32)
        words = nodes.add(
            "Cast", nodes.add("Not", nodes.add("Equal", tokens, pad)), to=TensorProto.INT32
        )
        mask = (
            nodes.add("Gather", self.input("attention_mask"), rows, axis=0)
            if self.input("attention_mask")
            else words
        )
        count = nodes.length(tokens, 0)
        return [
            tokens,
            words,
            mask,
            tokens,
            *(self.empty(nodes, cache, count) for cache in self.caches),
        ]

    def logits(
        self, nodes: OnnxNodes, state: list[str], pasts: list[str], presents: list[str]
    ) -> str:
        """Of the last token, ``[rows, words]``; ``state``: the names of ``STATE``."""
        tokens, words, mask, _ = state
        return self.decoded(
            nodes, [tokens, self.positions(nodes, tokens, words), mask, *pasts], presents
        )

    def gone_on(self, nodes: OnnxNodes, state: list[str], token: str, rows: str) -> list[str]:
        """The next values of ``STATE``, where each row goes on from one of the ``rows``, with a
        token ``[rows, 1]``.
        """
        _, words, mask, sequences = state
        seen = nodes.add("Expand", nodes.constant([[1]], np.int32), nodes.add("Shape", token))
        longer = [nodes.add("Concat", one, seen, axis=1) for one in (words, mask)]
        return [
            token,
            *longer,
            nodes.add("Concat", nodes.add("Gather", sequences, rows, axis=0), token, axis=1),
        ]

    def function(self) -> FunctionProto:
        nodes = OnnxNodes(self.mark)
        one = nodes.constant([1], np.int64)
        most, beams, returned = (
            nodes.add("Cast", nodes.add("Reshape", self.input(name), one), to=TensorProto.INT64)
            for name in ("max_length", "num_beams", "num_return_sequences")
        )
        batch = nodes.length(self.input("input_ids"), 0)
        begun = self.begun(nodes, _rows(nodes, nodes.add("Mul", batch, beams), beams))
        rest = nodes.filled(_UNLIKELY, np.float32, batch, nodes.add("Sub", beams, one))
        scored = [
            nodes.add("Concat", nodes.filled(0, np.float32, batch, 1), rest, axis=1),
            nodes.filled(self.number("pad_token_id"), np.int32, batch, beams, most),
            nodes.filled(0, np.float32, batch, beams),
            nodes.filled(0, np.int32, batch),
            nodes.filled(False, np.bool_, batch),
        ]
        count = len(self.STATE)
        state = [*begun[:count], *scored, *begun[count:]]
        iterations = nodes.add("Sub", most, nodes.length(begun[count - 1], 1))
        ends = [f"{self.mark}end {number}" for number in range(len(state) + self.asks_for(2))]
        nodes.made.append(
            helper.make_node(
                "Loop",
                [nodes.scalar(iterations), "", *state],
                ends,
                name="tokens",
                body=self._body(len(begun) - count),
            )
        )
        given = (*ends[count - 1 : count + len(_SCORED)], self._penalty(nodes), returned)
        outputs = nodes.several(
            2, "BestBeams", *given, domain=OURS, pad_token_id=self.number("pad_token_id")
        )
        if self.asks_for(2):
            outputs.append(self._all_scores(nodes, ends[-1], iterations))
        return self.made(nodes, outputs[: len(self.node.output)])

    def _all_scores(self, nodes: OnnxNodes, found: str, iterations: str) -> str:
        """Of each iteration those of all words, and zeros for those that were not needed."""
        rest = nodes.add("Sub", iterations, nodes.length(found, 0))
        lengths = (nodes.length(found, axis) for axis in (1, 2, 3))
        return nodes.add("Concat", found, nodes.filled(0, np.float32, rest, *lengths), axis=0)

    def _penalty(self, nodes: OnnxNodes) -> str:
        if not self.input("length_penalty"):
            return nodes.constant(1, np.float32)
        return nodes.scalar(nodes.add("Cast", self.input("length_penalty"), to=TensorProto.FLOAT))

    def for_rows(self, nodes: OnnxNodes, of_batch: str, rows: str) -> str:
        count = nodes.length(rows, 0)
        return nodes.add(
            "Gather",
            of_batch,
            _rows(nodes, count, nodes.add("Div", count, nodes.length(of_batch, 0))),
            axis=0,
        )

    def _body(self, caches: int) -> GraphProto:
        """One token more for each beam."""
        names = [f"{self.mark}{name}" for name in ("iteration", "go on", *self.STATE, *_SCORED)]
        pasts, presents = (
            [f"{self.mark}{name} {number}" for number in range(caches)]
            for name in ("past", "present")
        )
        state, (beam_scores, *ended) = names[2 : 2 + len(self.STATE)], names[2 + len(self.STATE) :]
        nodes = OnnxNodes(f"{self.mark}body ")
        logits = self.logits(nodes, state, pasts, presents)
        scores = self.allowed(nodes, nodes.add("LogSoftmax", logits, axis=-1), state[-1])
        summed = self._summed(nodes, scores, beam_scores)
        next_scores, token, rows, *ended_then = nodes.several(
            7,
            "BeamScorer",
            *self._candidates(nodes, summed),
            state[-1],
            *ended,
            self._penalty(nodes),
            domain=OURS,
            eos_token_id=self.number("eos_token_id"),
            pad_token_id=self.number("pad_token_id"),
            early_stopping=self.number("early_stopping"),
        )
        every = nodes.add(
            "ReduceMin", nodes.add("Cast", ended_then[-1], to=TensorProto.INT32), keepdims=0
        )
        going_on = nodes.add("Not", nodes.add("Cast", every, to=TensorProto.BOOL))
        kept = [nodes.add("Gather", one, rows, axis=self.CACHE_AXIS) for one in presents]
        ends = [going_on, *self.gone_on(nodes, state, token, rows), next_scores, *ended_then, *kept]
        return graph_of(
            nodes.made, "token", [*names, *pasts], [*ends, summed] if self.asks_for(2) else ends
        )

    def _summed(self, nodes: OnnxNodes, scores: str, beam_scores: str) -> str:
        """The scores of the words added to those of their beams, ``[batch, beams, words]``."""
        batch, beams = (nodes.length(beam_scores, axis) for axis in (0, 1))
        summed = nodes.add(
            "Add", scores, nodes.add("Reshape", beam_scores, nodes.constant([-1, 1], np.int64))
        )
        return nodes.add("Reshape", summed, nodes.shape(batch, beams, nodes.length(scores, 1)))

    def _candidates(self, nodes: OnnxNodes, summed: str) -> list[str]:
        """Of each of the batch the best words over all its beams, twice as many as beams: their
        scores, words, and beams.
        """
        batch, beams, words = (nodes.length(summed, axis) for axis in (0, 1, 2))
        flat = nodes.add("Reshape", summed, nodes.shape(batch, nodes.add("Mul", beams, words)))
        best, places = nodes.several(
            2, "TopK", flat, nodes.add("Mul", beams, nodes.constant([2], np.int64)), axis=1
        )
        word, beam = (
            nodes.add("Cast", nodes.add(kind, places, words), to=TensorProto.INT32)
            for kind in ("Mod", "Div")
        )
        return [best, word, beam]


def _rows(nodes: OnnxNodes, count: str, beams: str) -> str:
    """For each of all beams its number in the batch; both are ``[1]``."""
    numbers = nodes.add(
        "Range", nodes.constant(0, np.int64), nodes.scalar(count), nodes.constant(1, np.int64)
    )
    return nodes.add("Div", numbers, beams)
