"""GreedySearch of the domain com.microsoft, written as the loop that it is: the decoder's graph in it, token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

GRAPHS = "loopscope.graphs"
"""The domain of nodes that run the graph in their attribute ``graph`` once, their inputs its inputs."""
_FIRST_OPSET = 11
"""The first of ONNX in which all operations used here mean what they mean now."""
_BEFORE_PASTS = 3
"""The decoder's inputs before its caches: tokens, positions, mask."""
_LOWEST = float(np.finfo(np.float32).min)
_PAST_AXES = 5
_INPUTS = ("input_ids", "max_length", "min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask")
_LEAST, _REPETITION, _WORDS, _FIRST_WORDS, _MASK = range(2, 7)
"""Places of the inputs that may be left out: the least length, the penalty of repetition, masks of words, of tokens."""
_CARRIED, _SEQUENCES = 5, 3
"""Of the loop: tokens, which of all so far are words, the mask, sequences, which are finished; and where sequences stand."""
_END = 2**62
_LONGEST_RUN = 64


def greedy_search(node: NodeProto, attributes: Mapping[str, AttributeProto], version: int) -> FunctionProto | None:
    """A function of the node's inputs; None for a search that is not over a decoder alone with caches of known heads."""
    decoder = _graph(attributes, "decoder")
    alone = not _number(attributes, "model_type", 0) and "encoder" not in attributes
    if decoder is None or not alone or not _bounded(attributes) or version < _FIRST_OPSET or not 2 <= len(node.input) <= len(_INPUTS):
        return None
    caches = [_cache(one) for one in decoder.input[_BEFORE_PASTS:]]
    graphs = [one for one in (_graph(attributes, "init_decoder"), decoder) if one is not None]
    shaped = all(len(one.input) == _BEFORE_PASTS + len(caches) and len(one.output) == 1 + len(caches) for one in graphs)
    known = [one for one in caches if one is not None]
    if not caches or len(known) < len(caches) or not shaped:
        return None
    return _Search(node, attributes, graphs, known, _unused_mark(graphs)).function()


def _bounded(attributes: Mapping[str, AttributeProto]) -> bool:
    """Whether its numbers are words, and runs of words are not longer than nodes are made for."""
    words = all(-(2**31) <= _number(attributes, name, 0) < 2**31 for name in ("eos_token_id", "pad_token_id", "vocab_size"))
    return words and _number(attributes, "no_repeat_ngram_size", 0) <= _LONGEST_RUN


def _graph(attributes: Mapping[str, AttributeProto], name: str) -> GraphProto | None:
    found = attributes.get(name)
    return found.g if found is not None and found.HasField("g") else None


def _number(attributes: Mapping[str, AttributeProto], name: str, default: int) -> int:
    return int(attributes[name].i) if name in attributes else default


def _unused_mark(graphs: Sequence[GraphProto]) -> str:
    """How the names that are made here begin: graphs may use names of the graphs around them, which none of these may hide."""
    used: set[str] = set()
    waiting = [*graphs]
    while waiting:
        graph = waiting.pop()
        used.update(one.name for one in graph.output)
        for node in graph.node:
            used.update(node.input)
            waiting += [inner for one in node.attribute for inner in (one.g, *one.graphs)]
    mark = "search/"
    while any(name.startswith(mark) for name in used):
        mark = f"{mark[:-1]}'/"
    return mark


@dataclass(frozen=True, slots=True)
class _Cache:
    """Of one layer: ``[2, batch, heads, tokens, width]``."""

    kind: int
    heads: int
    width: int


def _cache(declared: ValueInfoProto) -> _Cache | None:
    """As the decoder's input says; None where it does not."""
    tensor = declared.type.tensor_type
    lengths = [one.dim_value for one in tensor.shape.dim]
    if len(lengths) != _PAST_AXES or min(lengths[2], lengths[4]) < 1 or tensor.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16):
        return None
    return _Cache(tensor.elem_type, lengths[2], lengths[4])


@dataclass(slots=True, eq=False)
class _Nodes:
    """Nodes of one graph under way; names begin with a mark that the graphs inside do not use."""

    mark: str
    made: list[NodeProto] = field(default_factory=list[NodeProto])

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The output's name."""
        name = f"{kind}_{len(self.made)}"
        self.made.append(helper.make_node(kind, list(inputs), [self.mark + name], name=name, **attributes))
        return self.mark + name

    def constant(self, value: Any, dtype: type) -> str:
        return self.add("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def length(self, tensor: str, axis: int) -> str:
        """Of an axis, [1]."""
        return self.add("Gather", self.add("Shape", tensor), self.constant([axis], np.int64))

    def columns(self, tensor: str, begin: str, end: str) -> str:
        """Along axis 1."""
        return self.add("Slice", tensor, begin, end, self.constant([1], np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    node: NodeProto
    attributes: Mapping[str, AttributeProto]
    graphs: Sequence[GraphProto]
    """The decoder, or the one of the first token and then the one of the others."""
    caches: Sequence[_Cache]

    mark: str
    """What no name in the graphs begins with."""

    def input(self, place: int) -> str:
        """The function's name of an input; empty where the node leaves it out."""
        return self.names[place] if place < len(self.node.input) and self.node.input[place] else ""

    @property
    def names(self) -> list[str]:
        return [f"{self.mark}{name}" for name in _INPUTS]

    def number(self, name: str) -> int:
        return _number(self.attributes, name, 0)

    def function(self) -> FunctionProto:
        nodes = _Nodes(self.mark)
        tokens, pad = self.input(0), nodes.constant(self.number("pad_token_id"), np.int32)
        batch, length = (nodes.length(tokens, axis) for axis in (0, 1))
        most = nodes.add("Cast", nodes.add("Reshape", self.input(1), nodes.constant([1], np.int64)), to=TensorProto.INT64)
        words = nodes.add("Cast", nodes.add("Not", nodes.add("Equal", tokens, pad)), to=TensorProto.INT32)
        column = nodes.add("Concat", batch, nodes.constant([1], np.int64), axis=0)
        finished = nodes.add("Expand", nodes.constant([[False]], np.bool_), column)
        state = [tokens, words, self.input(_MASK) or words, tokens, finished, *(self._empty(nodes, cache, batch) for cache in self.caches)]
        ends = [f"{self.mark}end {number}" for number in range(len(state))]
        trips = nodes.add("Reshape", nodes.add("Sub", most, length), nodes.constant(np.zeros(0), np.int64))
        loop = helper.make_node("Loop", [trips, "", *state], ends, name="tokens", body=self._body(len(state)))
        nodes.made.append(loop)
        missing = nodes.add("Concat", batch, nodes.add("Sub", most, nodes.length(ends[_SEQUENCES], 1)), axis=0)
        filled = nodes.add("Expand", nodes.add("Reshape", pad, nodes.constant([1, 1], np.int64)), missing)
        result = nodes.add("Concat", ends[_SEQUENCES], filled, axis=1)
        return FunctionProto(
            name=self.node.op_type, domain=self.node.domain, input=self.names[: len(self.node.input)], output=[result], node=nodes.made
        )

    def _empty(self, nodes: _Nodes, cache: _Cache, batch: str) -> str:
        """A cache of no tokens."""
        lengths = [nodes.constant([2], np.int64), batch, nodes.constant([cache.heads, 0, cache.width], np.int64)]
        zero = helper.make_tensor("zero", cache.kind, [1], [0.0])
        return nodes.add("ConstantOfShape", nodes.add("Concat", *lengths, axis=0), value=zero)

    def _body(self, count: int) -> GraphProto:
        """One token more."""
        names = [f"{self.mark}{name}" for name in ("iteration", "go on", "tokens", "words", "mask", "sequences", "finished")]
        pasts = [f"{self.mark}past {number}" for number in range(count - _CARRIED)]
        presents = [f"{self.mark}present {number}" for number in range(count - _CARRIED)]
        _, _, tokens, words, mask, sequences, finished = names
        nodes = _Nodes(f"{self.mark}body ")
        positions = self._positions(nodes, tokens, words)
        logits = self._decoded(nodes, [tokens, positions, mask, *pasts], presents)
        scores = self._scores(nodes, logits, sequences)
        best = nodes.add("Cast", nodes.add("ArgMax", scores, axis=1, keepdims=1), to=TensorProto.INT32)
        over = nodes.add("Or", finished, nodes.add("Equal", best, nodes.constant(self.number("eos_token_id"), np.int32)))
        token = nodes.add("Where", over, nodes.constant(self.number("pad_token_id"), np.int32), best)
        seen = nodes.add("Expand", nodes.constant([[1]], np.int32), nodes.add("Shape", token))
        every = nodes.add("ReduceMin", nodes.add("Cast", over, to=TensorProto.INT32), keepdims=0)
        ends = [
            nodes.add("Not", nodes.add("Cast", every, to=TensorProto.BOOL)),
            token,
            *(nodes.add("Concat", one, seen, axis=1) for one in (words, mask)),
            nodes.add("Concat", sequences, token, axis=1),
            over,
        ]
        return _graph_of(nodes.made, "token", [*names, *pasts], [*ends, *presents])

    def _positions(self, nodes: _Nodes, tokens: str, words: str) -> str:
        """Of the tokens that are new: how many words come before them, whatever a mask says, and 0 where one is padding."""
        counted = nodes.add("Sub", nodes.add("CumSum", words, nodes.constant(1, np.int64)), nodes.constant(1, np.int32))
        start = nodes.add("Sub", nodes.length(words, 1), nodes.length(tokens, 1))
        return nodes.columns(nodes.add("Mul", counted, words), start, nodes.constant([_END], np.int64))

    def _decoded(self, nodes: _Nodes, inputs: list[str], presents: list[str]) -> str:
        """The logits; with two graphs, by the one or the other."""
        outputs = [f"{self.mark}logits", *presents]
        if len(self.graphs) == 1:
            nodes.made.append(_run("decoder", inputs, outputs))
            return outputs[0]
        branches = []
        for name in ("init_decoder", "decoder"):
            inner = [f"{one} of {name}" for one in outputs]
            branches.append(_graph_of([_run(name, inputs, inner)], name, [], inner))
        then, otherwise = branches
        nodes.made.append(
            helper.make_node("If", [self._is_first(nodes)], outputs, name="first token", then_branch=then, else_branch=otherwise)
        )
        return outputs[0]

    def _scores(self, nodes: _Nodes, logits: str, sequences: str) -> str:
        """Of the next token, ``[batch, words]``: what is not allowed has the lowest; in ONNX Runtime's order."""
        scores = nodes.add("Gather", logits, nodes.constant(-1, np.int64), axis=1)
        scores = nodes.add("Cast", scores, to=TensorProto.FLOAT)
        size = self.number("vocab_size")
        if size > 0:
            scores = nodes.columns(scores, nodes.constant([0], np.int64), nodes.constant([size], np.int64))
        if self.input(_REPETITION):
            scores = self._repeated_less(nodes, scores, sequences)
        if self.number("no_repeat_ngram_size") > 0:
            scores = self._without_repetition(nodes, scores, sequences, self.number("no_repeat_ngram_size"))
        if self.input(_WORDS):
            scores = self._lowest_where(nodes, nodes.add("Equal", self.input(_WORDS), nodes.constant(0, np.int32)), scores)
        if self.input(_FIRST_WORDS):
            masked = nodes.add("Equal", self.input(_FIRST_WORDS), nodes.constant(0, np.int32))
            scores = self._lowest_where(nodes, nodes.add("And", self._is_first(nodes), masked), scores)
        if self.input(_LEAST):
            scores = self._lowest_where(nodes, self._too_short_to_end(nodes, scores, sequences), scores)
        return scores

    def _is_first(self, nodes: _Nodes) -> str:
        return nodes.add("Equal", f"{self.mark}iteration", nodes.constant(0, np.int64))

    def _lowest_where(self, nodes: _Nodes, hidden: str, scores: str) -> str:
        return nodes.add("Where", hidden, nodes.constant(_LOWEST, np.float32), scores)

    def _repeated_less(self, nodes: _Nodes, scores: str, sequences: str) -> str:
        """The scores of words that are in a sequence, divided by the penalty where they are above 0, and times it below."""
        penalty, there = self.input(_REPETITION), nodes.add("GatherElements", scores, sequences, axis=1)
        below = nodes.add("Less", there, nodes.constant(0, np.float32))
        less = nodes.add("Where", below, nodes.add("Mul", there, penalty), nodes.add("Div", there, penalty))
        return nodes.add("ScatterElements", scores, sequences, less, axis=1)

    def _without_repetition(self, nodes: _Nodes, scores: str, sequences: str, size: int) -> str:
        """No word that would end a run of ``size`` words that is in the sequence already."""
        length, last = nodes.length(sequences, 1), nodes.constant([_END], np.int64)
        count = nodes.add("Max", nodes.add("Sub", length, nodes.constant([size - 1], np.int64)), nodes.constant([0], np.int64))
        ends = nodes.columns(sequences, nodes.constant([size - 1], np.int64), last)
        alike = nodes.add("Equal", ends, ends)
        for place in range(size - 1):
            begin = nodes.constant([place], np.int64)
            words = nodes.columns(sequences, begin, nodes.add("Add", count, begin))
            start = nodes.constant([place + 1 - size], np.int64)
            end = nodes.constant([place + 2 - size or _END], np.int64)
            alike = nodes.add("And", alike, nodes.add("Equal", words, nodes.columns(sequences, start, end)))
        # Words that are allowed go to a column of their own, which is cut off.
        aside = nodes.add("Cast", nodes.length(scores, 1), to=TensorProto.INT32)
        places = nodes.add("Where", alike, ends, aside)
        lowest = nodes.add("Expand", nodes.constant([[_LOWEST]], np.float32), nodes.add("Shape", places))
        spare = nodes.columns(scores, nodes.constant([0], np.int64), nodes.constant([1], np.int64))
        written = nodes.add("ScatterElements", nodes.add("Concat", scores, spare, axis=1), places, lowest, axis=1)
        return nodes.columns(written, nodes.constant([0], np.int64), nodes.constant([-1], np.int64))

    def _too_short_to_end(self, nodes: _Nodes, scores: str, sequences: str) -> str:
        """Where the end is not allowed yet, before the least length."""
        words = nodes.add("Reshape", nodes.length(scores, 1), nodes.constant(np.zeros(0), np.int64))
        numbers = nodes.add("Range", nodes.constant(0, np.int64), words, nodes.constant(1, np.int64))
        end = nodes.add("Equal", numbers, nodes.constant(self.number("eos_token_id"), np.int64))
        least = nodes.add("Cast", self.input(_LEAST), to=TensorProto.INT64)
        short = nodes.add("Less", nodes.length(sequences, 1), least)
        return nodes.add("And", end, short)


def _run(name: str, inputs: list[str], outputs: list[str]) -> NodeProto:
    """Of the graph in the search's attribute of that name, which may be large: it is not copied."""
    node = helper.make_node(name, inputs, outputs, name=name, domain=GRAPHS)
    node.attribute.add(name="graph", ref_attr_name=name, type=AttributeProto.GRAPH)
    return node


def _graph_of(nodes: Sequence[NodeProto], name: str, inputs: Sequence[str], outputs: Sequence[str]) -> GraphProto:
    """Types are left out: those of the tokens follow from the decoder."""
    graph = GraphProto(name=name, node=nodes)
    for one in inputs:
        graph.input.add(name=one)
    for one in outputs:
        graph.output.add(name=one)
    return graph
