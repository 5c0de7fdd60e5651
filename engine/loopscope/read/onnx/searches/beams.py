"""BeamSearch as a loop that continues the best sequences of each batch entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from onnx import FunctionProto, GraphProto, TensorProto, helper

from loopscope.read.onnx.searches.decoder_search import SEARCH_DOMAIN, OnnxNodes, Search, graph_of

_SCORED = ("beam scores", "ended", "ended scores", "ended count", "done")
"""Carried values of the scoring.

Scores of the beams ``[batch, beams]``, finished sequences, their scores and counts, and the batch
entries whose result cannot improve.
"""
_UNLIKELY = -1e9
"""Initial score of all beams but the first, because all beams are equal at the start."""


class Beams(Search):
    """Beam search with a decoder-only model."""

    __slots__ = ()
    NEEDED = 5
    INPUTS: ClassVar[Sequence[str]] = (
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
    """Carried values with a row per beam: new tokens, word mask, attention mask, all tokens.

    ``sequences`` must be the last.
    """
    CACHE_AXIS: ClassVar[int] = 1
    """Axis of the rows in the caches."""

    @property
    def is_supported(self) -> bool:
        """False for features that only Whisper models use."""
        return not self.input("decoder_input_ids") and not self.input("logits_processor")

    def initial_state(self, nodes: OnnxNodes, rows: str) -> list[str]:
        """Return the initial values of ``STATE`` and of the caches.

        ``rows`` contains the batch entry of each beam.
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
        """Return the logits of the last token, ``[rows, words]``. ``state`` contains the names of
        ``STATE``.
        """
        tokens, words, mask, _ = state
        return self.decoded(
            nodes, [tokens, self.positions(nodes, tokens, words), mask, *pasts], presents
        )

    def next_state(self, nodes: OnnxNodes, state: list[str], token: str, rows: str) -> list[str]:
        """Return the next values of ``STATE``: row i continues row ``rows[i]`` with its token,
        ``[rows, 1]``.
        """
        _, words, mask, sequences = state
        seen = nodes.add("Expand", nodes.constant([[1]], np.int32), nodes.add("Shape", token))
        longer = [nodes.add("Concat", mask_name, seen, axis=1) for mask_name in (words, mask)]
        return [
            token,
            *longer,
            nodes.add("Concat", nodes.add("Gather", sequences, rows, axis=0), token, axis=1),
        ]

    def function(self) -> FunctionProto:
        nodes = OnnxNodes(self.prefix)
        unit = nodes.constant([1], np.int64)
        max_length, beams, returned = (
            nodes.add("Cast", nodes.add("Reshape", self.input(name), unit), to=TensorProto.INT64)
            for name in ("max_length", "num_beams", "num_return_sequences")
        )
        batch = nodes.length(self.input("input_ids"), 0)
        initial_state = self.initial_state(
            nodes, _rows(nodes, nodes.add("Mul", batch, beams), beams)
        )
        rest = nodes.filled(_UNLIKELY, np.float32, batch, nodes.add("Sub", beams, unit))
        scored = [
            nodes.add("Concat", nodes.filled(0, np.float32, batch, 1), rest, axis=1),
            nodes.filled(self.number("pad_token_id"), np.int32, batch, beams, max_length),
            nodes.filled(0, np.float32, batch, beams),
            nodes.filled(0, np.int32, batch),
            nodes.filled(False, np.bool_, batch),
        ]
        count = len(self.STATE)
        state = [*initial_state[:count], *scored, *initial_state[count:]]
        iterations = nodes.add("Sub", max_length, nodes.length(initial_state[count - 1], 1))
        ends = [f"{self.prefix}end {number}" for number in range(len(state) + self.has_output(2))]
        nodes.nodes.append(
            helper.make_node(
                "Loop",
                [nodes.scalar(iterations), "", *state],
                ends,
                name="tokens",
                body=self._body(len(initial_state) - count),
            )
        )
        best_inputs = (*ends[count - 1 : count + len(_SCORED)], self._penalty(nodes), returned)
        outputs = nodes.several(
            2,
            "BestBeams",
            *best_inputs,
            domain=SEARCH_DOMAIN,
            pad_token_id=self.number("pad_token_id"),
        )
        if self.has_output(2):
            outputs.append(self._all_scores(nodes, ends[-1], iterations, batch, beams))
        return self.as_function(nodes, outputs[: len(self.node.output)])

    def _all_scores(
        self, nodes: OnnxNodes, scores: str, iterations: str, batch: str, beams: str
    ) -> str:
        """Return the word scores of every iteration, with zeros for iterations that did not run."""
        count = nodes.length(scores, 0)
        lengths = batch, beams, self.word_count(nodes, scores)
        rest = nodes.filled(0, np.float32, nodes.add("Sub", iterations, count), *lengths)
        computed = nodes.add("Reshape", scores, nodes.shape(count, *lengths))
        return nodes.add("Concat", computed, rest, axis=0)

    def word_count(self, nodes: OnnxNodes, scores: str) -> str:
        """Return the number of words, shape [1]. ``scores`` are those of all iterations."""
        return nodes.length(scores, 3)

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
        """Return the loop's body, which adds one token to each beam."""
        names = [f"{self.prefix}{name}" for name in ("iteration", "go on", *self.STATE, *_SCORED)]
        pasts, presents = (
            [f"{self.prefix}{name} {number}" for number in range(caches)]
            for name in ("past", "present")
        )
        state, (beam_scores, *finished) = (
            names[2 : 2 + len(self.STATE)],
            names[2 + len(self.STATE) :],
        )
        nodes = OnnxNodes(f"{self.prefix}body ")
        logits = self.logits(nodes, state, pasts, presents)
        scores = self.allowed(nodes, nodes.add("LogSoftmax", logits, axis=-1), state[-1])
        summed = self._summed(nodes, scores, beam_scores)
        next_scores, token, rows, *ended_then = nodes.several(
            7,
            "BeamScorer",
            *self._candidates(nodes, summed),
            state[-1],
            *finished,
            self._penalty(nodes),
            domain=SEARCH_DOMAIN,
            eos_token_id=self.number("eos_token_id"),
            pad_token_id=self.number("pad_token_id"),
            early_stopping=self.number("early_stopping"),
        )
        all_done = nodes.add(
            "ReduceMin", nodes.add("Cast", ended_then[-1], to=TensorProto.INT32), keepdims=0
        )
        continues = nodes.add("Not", nodes.add("Cast", all_done, to=TensorProto.BOOL))
        next_caches = [
            nodes.add("Gather", present, rows, axis=self.CACHE_AXIS) for present in presents
        ]
        ends = [
            continues,
            *self.next_state(nodes, state, token, rows),
            next_scores,
            *ended_then,
            *next_caches,
        ]
        return graph_of(
            nodes.nodes, "token", [*names, *pasts], [*ends, summed] if self.has_output(2) else ends
        )

    def _summed(self, nodes: OnnxNodes, scores: str, beam_scores: str) -> str:
        """Return the scores of the words plus those of their beams, ``[batch, beams, words]``."""
        batch, beams = (nodes.length(beam_scores, axis) for axis in (0, 1))
        summed = nodes.add(
            "Add", scores, nodes.add("Reshape", beam_scores, nodes.constant([-1, 1], np.int64))
        )
        return nodes.add("Reshape", summed, nodes.shape(batch, beams, nodes.length(scores, 1)))

    def _candidates(self, nodes: OnnxNodes, summed: str) -> list[str]:
        """Return scores, words and beams of the best continuations of each batch entry.

        There are twice as many candidates as beams.
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
    """Return the batch entry of each beam. ``count`` and ``beams`` have shape [1]."""
    numbers = nodes.add(
        "Range", nodes.constant(0, np.int64), nodes.scalar(count), nodes.constant(1, np.int64)
    )
    return nodes.add("Div", numbers, beams)
