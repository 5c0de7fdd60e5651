"""BeamSearch, written as the loop that it is: several sequences for each of the batch, of which the best go on."""

from __future__ import annotations

import numpy as np
from onnx import FunctionProto, GraphProto, TensorProto, helper

from engine.read.onnx.searches.decoder_search import OURS, Nodes, Search, graph_of

_STATE = ("tokens", "words", "mask", "sequences", "beam scores", "ended", "ended scores", "ended count", "done")
"""Of the loop: tokens, words, mask and sequences of each beam, a row each; ``[batch, beams]`` scores; the sequences that have ended, their
scores and how many they are; and for which of the batch nothing can become better."""
_UNLIKELY = -1e9
"""The score of all beams but the first at the beginning, when they are the same."""


class Beams(Search):
    """The sequences that are best as a whole."""

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

    @property
    def is_computed(self) -> bool:
        """What only Whisper has is not."""
        return not self.input("decoder_input_ids") and not self.input("logits_processor")

    def function(self) -> FunctionProto:
        nodes = Nodes(self.mark)
        one = nodes.constant([1], np.int64)
        most, beams, returned = (
            nodes.add("Cast", nodes.add("Reshape", self.input(name), one), to=TensorProto.INT64)
            for name in ("max_length", "num_beams", "num_return_sequences")
        )
        batch, length = (nodes.length(self.input("input_ids"), axis) for axis in (0, 1))
        tokens = self._for_beams(nodes, self.input("input_ids"), beams)
        pad = nodes.constant(self.number("pad_token_id"), np.int32)
        words = nodes.add("Cast", nodes.add("Not", nodes.add("Equal", tokens, pad)), to=TensorProto.INT32)
        mask = self._for_beams(nodes, self.input("attention_mask"), beams) if self.input("attention_mask") else words
        rest = nodes.filled(_UNLIKELY, np.float32, batch, nodes.add("Sub", beams, one))
        scores = nodes.add("Concat", nodes.filled(0, np.float32, batch, 1), rest, axis=1)
        ended = nodes.filled(self.number("pad_token_id"), np.int32, batch, beams, most)
        none = [nodes.filled(0, np.float32, batch, beams), nodes.filled(0, np.int32, batch), nodes.filled(False, np.bool_, batch)]
        caches = [self.empty(nodes, cache, nodes.add("Mul", batch, beams)) for cache in self.caches]
        state = [tokens, words, mask, tokens, scores, ended, *none, *caches]
        ends = [f"{self.mark}end {number}" for number in range(len(state) + 1)]
        trips = nodes.scalar(nodes.add("Sub", most, length))
        nodes.made.append(helper.make_node("Loop", [trips, "", *state], ends, name="tokens", body=self._body()))
        given = (*ends[3 : len(_STATE)], self._penalty(nodes), returned)
        best = nodes.several(2, "BestBeams", *given, domain=OURS, pad_token_id=self.number("pad_token_id"))
        outputs = [*best, self._all_scores(nodes, ends[-1], nodes.add("Sub", most, length))]
        return self.made(nodes, outputs[: len(self.node.output)])

    def _all_scores(self, nodes: Nodes, found: str, iterations: str) -> str:
        """Of each iteration those of all words, and zeros for those that were not needed."""
        if not self.asks_for(2):
            return found
        rest = nodes.add("Sub", iterations, nodes.length(found, 0))
        lengths = (nodes.length(found, axis) for axis in (1, 2, 3))
        return nodes.add("Concat", found, nodes.filled(0, np.float32, rest, *lengths), axis=0)

    def _penalty(self, nodes: Nodes) -> str:
        if not self.input("length_penalty"):
            return nodes.constant(1, np.float32)
        return nodes.scalar(nodes.add("Cast", self.input("length_penalty"), to=TensorProto.FLOAT))

    def _for_beams(self, nodes: Nodes, of_batch: str, beams: str) -> str:
        """Each row as often as there are beams."""
        batch, length = (nodes.length(of_batch, axis) for axis in (0, 1))
        between = nodes.add("Reshape", of_batch, nodes.shape(batch, 1, length))
        repeated = nodes.add("Expand", between, nodes.shape(batch, beams, length))
        return nodes.add("Reshape", repeated, nodes.shape(nodes.add("Mul", batch, beams), length))

    def for_rows(self, nodes: Nodes, of_batch: str, rows: str) -> str:
        return self._for_beams(nodes, of_batch, nodes.add("Div", nodes.length(rows, 0), nodes.length(of_batch, 0)))

    def _body(self) -> GraphProto:
        """One token more for each beam."""
        names = [f"{self.mark}{name}" for name in ("iteration", "go on", *_STATE)]
        pasts, presents = ([f"{self.mark}{name} {number}" for number in range(len(self.caches))] for name in ("past", "present"))
        tokens, words, mask, sequences, beam_scores, *ended = names[2:]
        nodes = Nodes(f"{self.mark}body ")
        logits = self.decoded(nodes, [tokens, self.positions(nodes, tokens, words), mask, *pasts], presents)
        scores = self.allowed(nodes, nodes.add("LogSoftmax", logits, axis=-1), sequences)
        summed = self._summed(nodes, scores, beam_scores)
        candidates = self._candidates(nodes, summed)
        next_scores, token, rows, *ended_then = nodes.several(
            7,
            "BeamScorer",
            *candidates,
            sequences,
            *ended,
            self._penalty(nodes),
            domain=OURS,
            eos_token_id=self.number("eos_token_id"),
            pad_token_id=self.number("pad_token_id"),
            early_stopping=self.number("early_stopping"),
        )
        seen = nodes.add("Expand", nodes.constant([[1]], np.int32), nodes.add("Shape", token))
        every = nodes.add("ReduceMin", nodes.add("Cast", ended_then[-1], to=TensorProto.INT32), keepdims=0)
        ends = [
            nodes.add("Not", nodes.add("Cast", every, to=TensorProto.BOOL)),
            token,
            *(nodes.add("Concat", one, seen, axis=1) for one in (words, mask)),
            nodes.add("Concat", nodes.add("Gather", sequences, rows, axis=0), token, axis=1),
            next_scores,
            *ended_then,
        ]
        kept = [nodes.add("Gather", one, rows, axis=1) for one in presents]
        return graph_of(nodes.made, "token", [*names, *pasts], [*ends, *kept, summed])

    def _summed(self, nodes: Nodes, scores: str, beam_scores: str) -> str:
        """The scores of the words added to those of their beams, ``[batch, beams, words]``."""
        batch, beams = (nodes.length(beam_scores, axis) for axis in (0, 1))
        summed = nodes.add("Add", scores, nodes.add("Reshape", beam_scores, nodes.constant([-1, 1], np.int64)))
        return nodes.add("Reshape", summed, nodes.shape(batch, beams, nodes.length(scores, 1)))

    def _candidates(self, nodes: Nodes, summed: str) -> list[str]:
        """Of each of the batch the best words over all its beams, twice as many as beams: their scores, words, and beams."""
        batch, beams, words = (nodes.length(summed, axis) for axis in (0, 1, 2))
        flat = nodes.add("Reshape", summed, nodes.shape(batch, nodes.add("Mul", beams, words)))
        best, places = nodes.several(2, "TopK", flat, nodes.add("Mul", beams, nodes.constant([2], np.int64)), axis=1)
        word, beam = (nodes.add("Cast", nodes.add(kind, places, words), to=TensorProto.INT32) for kind in ("Mod", "Div"))
        return [best, word, beam]
