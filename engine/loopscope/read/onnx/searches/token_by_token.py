"""GreedySearch and Sampling, written as the loop that they are: the decoder's graph in it, token
by token.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from onnx import FunctionProto, GraphProto, TensorProto, helper

from loopscope.read.onnx.searches.decoder_search import OURS, OnnxNodes, Search, graph_of

_STATE = ("tokens", "words", "mask", "sequences", "finished")
"""Of the loop: the tokens that are new, which of all so far are words, the mask, all so far, and
which sequences have ended.
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


class _OneByOne(Search):
    """A search that goes on with one token for each sequence."""

    __slots__ = ()
    NEEDED = 2
    STATE: ClassVar[tuple[str, ...]] = ()
    """What is carried beside ``_STATE`` and the caches."""

    @abstractmethod
    def begun(self, nodes: OnnxNodes) -> list[str]:
        """The initial values of ``STATE``."""

    @abstractmethod
    def chosen(self, nodes: OnnxNodes, scores: str) -> list[str]:
        """The next tokens, ``[batch, 1]`` in i32, and the next values of ``STATE``."""

    def function(self) -> FunctionProto:
        nodes = OnnxNodes(self.mark)
        tokens, pad = self.input("input_ids"), nodes.constant(self.number("pad_token_id"), np.int32)
        batch, length = (nodes.length(tokens, axis) for axis in (0, 1))
        most = nodes.add(
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
            *self.begun(nodes),
            *caches,
        ]
        ends = [f"{self.mark}end {number}" for number in range(len(state))]
        trips = nodes.scalar(nodes.add("Sub", most, length))
        nodes.made.append(
            helper.make_node("Loop", [trips, "", *state], ends, name="tokens", body=self._body())
        )
        sequences = ends[_STATE.index("sequences")]
        missing = nodes.shape(batch, nodes.add("Sub", most, nodes.length(sequences, 1)))
        filled = nodes.add(
            "Expand", nodes.add("Reshape", pad, nodes.constant([1, 1], np.int64)), missing
        )
        return self.made(nodes, [nodes.add("Concat", sequences, filled, axis=1)])

    def _body(self) -> GraphProto:
        """One token more."""
        names = [f"{self.mark}{name}" for name in ("iteration", "go on", *_STATE, *self.STATE)]
        pasts, presents = (
            [f"{self.mark}{name} {number}" for number in range(len(self.caches))]
            for name in ("past", "present")
        )
        tokens, words, mask, sequences, finished = names[2 : 2 + len(_STATE)]
        nodes = OnnxNodes(f"{self.mark}body ")
        logits = self.decoded(
            nodes, [tokens, self.positions(nodes, tokens, words), mask, *pasts], presents
        )
        best, *state = self.chosen(nodes, self.allowed(nodes, logits, sequences))
        over = nodes.add(
            "Or",
            finished,
            nodes.add("Equal", best, nodes.constant(self.number("eos_token_id"), np.int32)),
        )
        token = nodes.add(
            "Where", over, nodes.constant(self.number("pad_token_id"), np.int32), best
        )
        seen = nodes.add("Expand", nodes.constant([[1]], np.int32), nodes.add("Shape", token))
        every = nodes.add("ReduceMin", nodes.add("Cast", over, to=TensorProto.INT32), keepdims=0)
        ends = [
            nodes.add("Not", nodes.add("Cast", every, to=TensorProto.BOOL)),
            token,
            *(nodes.add("Concat", one, seen, axis=1) for one in (words, mask)),
            nodes.add("Concat", sequences, token, axis=1),
            over,
            *state,
        ]
        return graph_of(nodes.made, "token", [*names, *pasts], [*ends, *presents])


class Greedy(_OneByOne):
    """The token with the best score."""

    __slots__ = ()
    INPUTS = _INPUTS

    @property
    def is_computed(self) -> bool:
        return not self.asks_for(1)

    def begun(self, nodes: OnnxNodes) -> list[str]:
        return []

    def chosen(self, nodes: OnnxNodes, scores: str) -> list[str]:
        return [
            nodes.add("Cast", nodes.add("ArgMax", scores, axis=1, keepdims=1), to=TensorProto.INT32)
        ]


class Sampling(_OneByOne):
    """A token that is drawn, as the scores say, of those that are probable enough; the drawn
    numbers follow from the seed.
    """

    __slots__ = ()
    INPUTS = (*_INPUTS, "presence_mask", "seed")
    STATE = ("random state",)

    @property
    def is_computed(self) -> bool:
        """ONNX Runtime leaves the filtered logits unwritten, and takes the mask of presence for
        one number.
        """
        return not self.asks_for(1) and not self.real("presence_penalty", 0)

    def begun(self, nodes: OnnxNodes) -> list[str]:
        """The state that a generator of the C++ library, minstd_rand0, begins with; without a
        seed that of 0.
        """
        if not self.input("seed"):
            return [nodes.constant(1, np.int64)]
        seed = nodes.scalar(nodes.add("Cast", self.input("seed"), to=TensorProto.INT64))
        rest = nodes.add("Mod", seed, nodes.constant(2**31 - 1, np.int64))
        return [nodes.add("Max", rest, nodes.constant(1, np.int64))]

    def chosen(self, nodes: OnnxNodes, scores: str) -> list[str]:
        temperature = self.real("temperature", 1)
        if temperature > 0 and temperature != 1:
            scores = nodes.add("Div", scores, nodes.constant(temperature, np.float32))
        return nodes.several(
            2,
            "SampledToken",
            scores,
            f"{self.mark}random state",
            domain=OURS,
            top_p=self.real("top_p", 0),
            filter_value=self.real("filter_value", -1e20),
            min_tokens_to_keep=self.number("min_tokens_to_keep"),
            from_the_top=self.number("custom"),
        )
