"""GreedySearch and Sampling as a loop that runs the decoder's graph once per token."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from onnx import FunctionProto, GraphProto, TensorProto, helper

from loopscope.read.onnx.searches.decoder_search import SEARCH_DOMAIN, OnnxNodes, Search, graph_of

_STATE = ("tokens", "words", "mask", "sequences", "finished")
"""Carried values: new tokens, word mask of all tokens, attention mask, all tokens, finished
sequences.
"""
_INPUTS = (
    "input_ids",
    "max_length",
    "min_length",
    "repetition_penalty",
    "vocab_mask",
    "prefix_vocab_mask",
    "attention_mask",
)


class _TokenSearch(Search):
    """A search that adds one token to each sequence per iteration."""

    __slots__ = ()
    NEEDED = 2
    STATE: ClassVar[tuple[str, ...]] = ()
    """Carried values beside ``_STATE`` and the caches."""

    @abstractmethod
    def initial_state(self, nodes: OnnxNodes) -> list[str]:
        """Return the initial values of ``STATE``."""

    @abstractmethod
    def select_token(self, nodes: OnnxNodes, scores: str) -> list[str]:
        """Return the next tokens, ``[batch, 1]`` in i32, and the next values of ``STATE``."""

    def function(self) -> FunctionProto:
        nodes = OnnxNodes(self.prefix)
        tokens, pad = self.input("input_ids"), nodes.constant(self.number("pad_token_id"), np.int32)
        batch, length = (nodes.length(tokens, axis) for axis in (0, 1))
        max_length = nodes.add(
            "Cast",
            nodes.add("Reshape", self.input("max_length"), nodes.constant([1], np.int64)),
            to=TensorProto.INT64,
        )
        words = nodes.add(
            "Cast", nodes.add("Not", nodes.add("Equal", tokens, pad)), to=TensorProto.INT32
        )
        finished = nodes.add("Expand", nodes.constant([[False]], np.bool_), nodes.shape(batch, 1))
        caches = [self.empty(nodes, cache, batch) for cache in self.caches]
        state = [
            tokens,
            words,
            self.input("attention_mask") or words,
            tokens,
            finished,
            *self.initial_state(nodes),
            *caches,
        ]
        ends = [f"{self.prefix}end {number}" for number in range(len(state))]
        trips = nodes.scalar(nodes.add("Sub", max_length, length))
        nodes.nodes.append(
            helper.make_node("Loop", [trips, "", *state], ends, name="tokens", body=self._body())
        )
        sequences = ends[_STATE.index("sequences")]
        missing = nodes.shape(batch, nodes.add("Sub", max_length, nodes.length(sequences, 1)))
        filled = nodes.add(
            "Expand", nodes.add("Reshape", pad, nodes.constant([1, 1], np.int64)), missing
        )
        return self.as_function(nodes, [nodes.add("Concat", sequences, filled, axis=1)])

    def _body(self) -> GraphProto:
        """Return the loop's body, which adds one token."""
        names = [f"{self.prefix}{name}" for name in ("iteration", "go on", *_STATE, *self.STATE)]
        pasts, presents = (
            [f"{self.prefix}{name} {number}" for number in range(len(self.caches))]
            for name in ("past", "present")
        )
        tokens, words, mask, sequences, finished = names[2 : 2 + len(_STATE)]
        nodes = OnnxNodes(f"{self.prefix}body ")
        logits = self.decoded(
            nodes, [tokens, self.positions(nodes, tokens, words), mask, *pasts], presents
        )
        best, *state = self.select_token(nodes, self.allowed(nodes, logits, sequences))
        finished_next = nodes.add(
            "Or",
            finished,
            nodes.add("Equal", best, nodes.constant(self.number("eos_token_id"), np.int32)),
        )
        token = nodes.add(
            "Where", finished_next, nodes.constant(self.number("pad_token_id"), np.int32), best
        )
        seen = nodes.add("Expand", nodes.constant([[1]], np.int32), nodes.add("Shape", token))
        all_finished = nodes.add(
            "ReduceMin", nodes.add("Cast", finished_next, to=TensorProto.INT32), keepdims=0
        )
        ends = [
            nodes.add("Not", nodes.add("Cast", all_finished, to=TensorProto.BOOL)),
            token,
            *(nodes.add("Concat", mask_name, seen, axis=1) for mask_name in (words, mask)),
            nodes.add("Concat", sequences, token, axis=1),
            finished_next,
            *state,
        ]
        return graph_of(nodes.nodes, "token", [*names, *pasts], [*ends, *presents])


class Greedy(_TokenSearch):
    """Search that selects the token with the highest score."""

    __slots__ = ()
    INPUTS = _INPUTS

    @property
    def is_supported(self) -> bool:
        return not self.has_output(1)

    def initial_state(self, nodes: OnnxNodes) -> list[str]:
        return []

    def select_token(self, nodes: OnnxNodes, scores: str) -> list[str]:
        return [
            nodes.add("Cast", nodes.add("ArgMax", scores, axis=1, keepdims=1), to=TensorProto.INT32)
        ]


class Sampling(_TokenSearch):
    """Search that draws a token from the probable ones by its score. Random numbers follow from the
    seed.
    """

    __slots__ = ()
    INPUTS = (*_INPUTS, "presence_mask", "seed")
    STATE = ("random state",)

    @property
    def is_supported(self) -> bool:
        """False for outputs that ONNX Runtime does not compute as documented.

        It does not write the filtered logits, and reads the presence mask as a single number.
        """
        return not self.has_output(1) and not self.real("presence_penalty", 0)

    def initial_state(self, nodes: OnnxNodes) -> list[str]:
        """Return the initial state of minstd_rand0 (C++ standard library); without a seed, that of
        seed 0.
        """
        if not self.input("seed"):
            return [nodes.constant(1, np.int64)]
        seed = nodes.scalar(nodes.add("Cast", self.input("seed"), to=TensorProto.INT64))
        rest = nodes.add("Mod", seed, nodes.constant(2**31 - 1, np.int64))
        return [nodes.add("Max", rest, nodes.constant(1, np.int64))]

    def select_token(self, nodes: OnnxNodes, scores: str) -> list[str]:
        temperature = self.real("temperature", 1)
        if temperature > 0 and temperature != 1:
            scores = nodes.add("Div", scores, nodes.constant(temperature, np.float32))
        return nodes.several(
            2,
            "SampledToken",
            scores,
            f"{self.prefix}random state",
            domain=SEARCH_DOMAIN,
            top_p=self.real("top_p", 0),
            filter_value=self.real("filter_value", -1e20),
            min_tokens_to_keep=self.number("min_tokens_to_keep"),
            from_the_top=self.number("custom"),
        )
