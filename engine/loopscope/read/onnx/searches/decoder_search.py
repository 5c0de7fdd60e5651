"""What all searches of the domain com.microsoft have in common: the decoder's graph, its caches,
and the scores of what comes next.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from loopscope.read.onnx.attributes import Given

GRAPHS = "loopscope.graphs"
"""The domain of nodes that run the graph in their attribute ``graph`` once, their inputs its
inputs.
"""
OURS = "loopscope"
"""The domain of what a search does and ONNX has no operation for."""
_FIRST_OPSET = 11
"""The first of ONNX in which all operations used here mean what they mean now."""
_BEFORE_PASTS = 3
"""The decoder's inputs before its caches: tokens, positions, mask."""
_LOWEST = float(np.finfo(np.float32).min)
_WORDS = ("eos_token_id", "pad_token_id", "vocab_size", "decoder_start_token_id")
END = 2**62
"""As the end of a slice: that of the axis."""
_LONGEST_RUN = 64


@dataclass(frozen=True, slots=True)
class LayerCache:
    """Of one layer: ``[2, rows, heads, tokens, width]``, or keys and values apart."""

    kind: int
    heads: int
    width: int


@dataclass(slots=True, eq=False)
class OnnxNodes:
    """Nodes of one graph under way; names begin with a mark that the graphs inside do not use."""

    mark: str
    made: list[NodeProto] = field(default_factory=list[NodeProto])

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The output's name."""
        (output,) = self.several(1, kind, *inputs, **attributes)
        return output

    def several(self, outputs: int, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        """The outputs' names."""
        name = f"{kind}_{len(self.made)}"
        made = [self.mark + name, *(f"{self.mark}{name} {one}" for one in range(1, outputs))]
        self.made.append(helper.make_node(kind, list(inputs), made, name=name, **attributes))
        return made

    def constant(self, value: Any, dtype: type) -> str:
        return self.add("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def length(self, tensor: str, axis: int) -> str:
        """Of an axis, [1]."""
        return self.add("Gather", self.add("Shape", tensor), self.constant([axis], np.int64))

    def columns(self, tensor: str, begin: str, end: str) -> str:
        """Along axis 1."""
        return self.add("Slice", tensor, begin, end, self.constant([1], np.int64))

    def shape(self, *lengths: str | int) -> str:
        """Of lengths that are [1] tensors or numbers."""
        return self.add(
            "Concat",
            *(one if isinstance(one, str) else self.constant([one], np.int64) for one in lengths),
            axis=0,
        )

    def scalar(self, tensor: str) -> str:
        """Of one element, without its axes."""
        return self.add("Reshape", tensor, self.constant(np.zeros(0), np.int64))

    def filled(self, value: Any, dtype: type, *lengths: str | int) -> str:
        """A tensor of these lengths, all of it one number."""
        return self.add(
            "ConstantOfShape",
            self.shape(*lengths),
            value=numpy_helper.from_array(np.array([value], dtype)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Search(ABC):
    """One node of a search, whose loop is written here."""

    node: NodeProto
    attributes: Given
    graphs: Sequence[GraphProto]
    """The decoder, or another that comes first and then the decoder."""
    caches: Sequence[LayerCache]
    mark: str
    """What no name in the graphs begins with."""

    INPUTS: ClassVar[Sequence[str]]
    """By number, as ONNX Runtime's page has them."""
    NEEDED: ClassVar[int]
    """So many inputs are always there."""

    @classmethod
    def of(cls, node: NodeProto, attributes: Given, version: int) -> FunctionProto | None:
        """A function of the node's inputs; None for a search whose graphs are others, or that is
        asked for what is not computed here.
        """
        counted = cls.NEEDED <= len(node.input) <= len(cls.INPUTS) and all(node.input[: cls.NEEDED])
        understood = (
            cls.understood(attributes)
            if _bounded(attributes) and version >= _FIRST_OPSET and counted
            else None
        )
        if understood is None:
            return None
        search = cls(node, attributes, *understood, _unused_mark(understood[0]))
        return search.function() if search.is_computed else None

    @classmethod
    def understood(cls, attributes: Given) -> tuple[list[GraphProto], list[LayerCache]] | None:
        """The graphs of a decoder alone, and its caches; None where there is another, or its
        inputs and outputs are others.
        """
        decoder = graph(attributes, "decoder")
        if decoder is None or number(attributes, "model_type", 0) or "encoder" in attributes:
            return None
        caches = caches_of(decoder.input[_BEFORE_PASTS:], heads=2)
        graphs = [one for one in (graph(attributes, "init_decoder"), decoder) if one is not None]
        if not caches or not all(
            len(one.input) == _BEFORE_PASTS + len(caches) and len(one.output) == 1 + len(caches)
            for one in graphs
        ):
            return None
        return graphs, caches

    @property
    @abstractmethod
    def is_computed(self) -> bool:
        """Whether nothing that this node asks for is left out here."""

    @abstractmethod
    def function(self) -> FunctionProto:
        """The loop, and what comes before and after it."""

    def made(self, nodes: OnnxNodes, outputs: Sequence[str]) -> FunctionProto:
        names = [self.input_name(name) for name in self.INPUTS[: len(self.node.input)]]
        return FunctionProto(
            name=self.node.op_type,
            domain=self.node.domain,
            input=names,
            output=outputs,
            node=nodes.made,
        )

    def input_name(self, name: str) -> str:
        return f"{self.mark}{name}"

    def input(self, name: str) -> str:
        """The function's name of an input; empty where the node leaves it out."""
        place = self.INPUTS.index(name)
        return (
            self.input_name(name) if place < len(self.node.input) and self.node.input[place] else ""
        )

    def asks_for(self, output: int) -> bool:
        """Whether an output has a name."""
        return output < len(self.node.output) and bool(self.node.output[output])

    def number(self, name: str, default: int = 0) -> int:
        return number(self.attributes, name, default)

    def real(self, name: str, default: float) -> float:
        return float(self.attributes[name].f) if name in self.attributes else default

    def empty(self, nodes: OnnxNodes, cache: LayerCache, rows: str) -> str:
        """A cache of no tokens."""
        zero = helper.make_tensor("zero", cache.kind, [1], [0.0])
        return nodes.add(
            "ConstantOfShape", nodes.shape(2, rows, cache.heads, 0, cache.width), value=zero
        )

    def positions(self, nodes: OnnxNodes, tokens: str, words: str) -> str:
        """Of the tokens that are new: how many words come before them, whatever a mask says, and
        0 where one is padding.
        """
        counted = nodes.add(
            "Sub",
            nodes.add("CumSum", words, nodes.constant(1, np.int64)),
            nodes.constant(1, np.int32),
        )
        start = nodes.add("Sub", nodes.length(words, 1), nodes.length(tokens, 1))
        return nodes.columns(
            nodes.add("Mul", counted, words), start, nodes.constant([END], np.int64)
        )

    def decoded(self, nodes: OnnxNodes, inputs: list[str], presents: list[str]) -> str:
        """The logits of the last token, ``[rows, words]`` in f32; with two graphs, by the one or
        the other.
        """
        outputs = [f"{self.mark}logits", *presents]
        if len(self.graphs) == 1:
            nodes.made.append(run("decoder", inputs, outputs))
        else:
            branches = []
            for name in ("init_decoder", "decoder"):
                inner = [f"{one} of {name}" for one in outputs]
                branches.append(graph_of([run(name, inputs, inner)], name, [], inner))
            self.first_or_not(nodes, branches[0], branches[1], outputs)
        return self.last(nodes, outputs[0])

    def first_or_not(
        self, nodes: OnnxNodes, first: GraphProto, later: GraphProto, outputs: list[str]
    ) -> None:
        """The one in the first iteration, and then the other."""
        nodes.made.append(
            helper.make_node(
                "If",
                [self._is_first(nodes)],
                outputs,
                name="first token",
                then_branch=first,
                else_branch=later,
            )
        )

    def last(self, nodes: OnnxNodes, logits: str) -> str:
        """The logits of the last token, ``[rows, words]`` in f32."""
        last = nodes.add(
            "Cast",
            nodes.add("Gather", logits, nodes.constant(-1, np.int64), axis=1),
            to=TensorProto.FLOAT,
        )
        size = self.number("vocab_size")
        return (
            nodes.columns(last, nodes.constant([0], np.int64), nodes.constant([size], np.int64))
            if size > 0
            else last
        )

    def allowed(self, nodes: OnnxNodes, scores: str, sequences: str) -> str:
        """The scores of the next token, ``[rows, words]``: what is not allowed has the lowest;
        in ONNX Runtime's order.
        """
        if self.input("repetition_penalty"):
            scores = self._repeated_less(nodes, scores, sequences)
        if self.number("no_repeat_ngram_size") > 0:
            scores = self._without_repetition(
                nodes, scores, sequences, self.number("no_repeat_ngram_size")
            )
        if self.input("vocab_mask"):
            scores = self._lowest_where(
                nodes,
                nodes.add("Equal", self.input("vocab_mask"), nodes.constant(0, np.int32)),
                scores,
            )
        if self.input("prefix_vocab_mask"):
            masked = self.for_rows(
                nodes,
                nodes.add("Equal", self.input("prefix_vocab_mask"), nodes.constant(0, np.int32)),
                scores,
            )
            scores = self._lowest_where(
                nodes, nodes.add("And", self._is_first(nodes), masked), scores
            )
        if self.input("min_length"):
            scores = self._lowest_where(
                nodes, self._too_short_to_end(nodes, scores, sequences), scores
            )
        return scores

    def for_rows(self, nodes: OnnxNodes, of_batch: str, rows: str) -> str:
        """What there is for each of the batch, for each row of ``rows``."""
        return of_batch

    def _is_first(self, nodes: OnnxNodes) -> str:
        return nodes.add("Equal", f"{self.mark}iteration", nodes.constant(0, np.int64))

    def _lowest_where(self, nodes: OnnxNodes, hidden: str, scores: str) -> str:
        return nodes.add("Where", hidden, nodes.constant(_LOWEST, np.float32), scores)

    def _repeated_less(self, nodes: OnnxNodes, scores: str, sequences: str) -> str:
        """The scores of words that are in a sequence, divided by the penalty where they are
        above 0, and times it below.
        """
        penalty, there = (
            self.input("repetition_penalty"),
            nodes.add("GatherElements", scores, sequences, axis=1),
        )
        below = nodes.add("Less", there, nodes.constant(0, np.float32))
        less = nodes.add(
            "Where", below, nodes.add("Mul", there, penalty), nodes.add("Div", there, penalty)
        )
        return nodes.add("ScatterElements", scores, sequences, less, axis=1)

    def _without_repetition(self, nodes: OnnxNodes, scores: str, sequences: str, size: int) -> str:
        """No word that would end a run of ``size`` words that is in the sequence already."""
        length, last = nodes.length(sequences, 1), nodes.constant([END], np.int64)
        count = nodes.add(
            "Max",
            nodes.add("Sub", length, nodes.constant([size - 1], np.int64)),
            nodes.constant([0], np.int64),
        )
        ends = nodes.columns(sequences, nodes.constant([size - 1], np.int64), last)
        alike = nodes.add("Equal", ends, ends)
        for place in range(size - 1):
            begin = nodes.constant([place], np.int64)
            words = nodes.columns(sequences, begin, nodes.add("Add", count, begin))
            start = nodes.constant([place + 1 - size], np.int64)
            end = nodes.constant([place + 2 - size or END], np.int64)
            alike = nodes.add(
                "And", alike, nodes.add("Equal", words, nodes.columns(sequences, start, end))
            )
        # Words that are allowed go to a column of their own, which is cut off.
        aside = nodes.add("Cast", nodes.length(scores, 1), to=TensorProto.INT32)
        places = nodes.add("Where", alike, ends, aside)
        lowest = nodes.add(
            "Expand", nodes.constant([[_LOWEST]], np.float32), nodes.add("Shape", places)
        )
        spare = nodes.columns(scores, nodes.constant([0], np.int64), nodes.constant([1], np.int64))
        written = nodes.add(
            "ScatterElements", nodes.add("Concat", scores, spare, axis=1), places, lowest, axis=1
        )
        return nodes.columns(written, nodes.constant([0], np.int64), nodes.constant([-1], np.int64))

    def _too_short_to_end(self, nodes: OnnxNodes, scores: str, sequences: str) -> str:
        """Where the end is not allowed yet, before the least length."""
        words = nodes.scalar(nodes.length(scores, 1))
        numbers = nodes.add(
            "Range", nodes.constant(0, np.int64), words, nodes.constant(1, np.int64)
        )
        end = nodes.add("Equal", numbers, nodes.constant(self.number("eos_token_id"), np.int64))
        least = nodes.add("Cast", self.input("min_length"), to=TensorProto.INT64)
        short = nodes.add("Less", nodes.length(sequences, 1), least)
        return nodes.add("And", end, short)


def graph_of(
    nodes: Sequence[NodeProto], name: str, inputs: Sequence[str], outputs: Sequence[str]
) -> GraphProto:
    """Types are left out: those of the tokens follow from the decoder."""
    graph = GraphProto(name=name, node=nodes)
    for one in inputs:
        graph.input.add(name=one)
    for one in outputs:
        graph.output.add(name=one)
    return graph


def run(name: str, inputs: list[str], outputs: list[str]) -> NodeProto:
    """Of the graph in the search's attribute of that name, which may be large: it is not copied."""
    node = helper.make_node(name, inputs, outputs, name=name, domain=GRAPHS)
    node.attribute.add(name="graph", ref_attr_name=name, type=AttributeProto.GRAPH)
    return node


def _bounded(attributes: Given) -> bool:
    """Whether its numbers are words, and runs of words are not longer than nodes are made for."""
    words = all(-(2**31) <= number(attributes, name, 0) < 2**31 for name in _WORDS)
    return words and number(attributes, "no_repeat_ngram_size", 0) <= _LONGEST_RUN


def graph(attributes: Given, name: str) -> GraphProto | None:
    found = attributes.get(name)
    return found.g if found is not None and found.HasField("g") else None


def number(attributes: Given, name: str, default: int) -> int:
    return int(attributes[name].i) if name in attributes else default


def _unused_mark(graphs: Sequence[GraphProto]) -> str:
    """How the names that are made here begin: graphs may use names of the graphs around them,
    which none of these may hide.
    """
    used: set[str] = set()
    waiting = [*graphs]
    while waiting:
        inner = waiting.pop()
        used.update(one.name for one in inner.output)
        for node in inner.node:
            used.update(node.input)
            waiting += [graph for one in node.attribute for graph in (one.g, *one.graphs)]
    # What is not UTF-8 comes as bytes, and is refused once the graphs are looked at.
    texts = (name for name in used if isinstance(name, str))
    marks = [len(found[1]) for found in map(_MARKS.match, texts) if found]
    return f"search{chr(39) * (max(marks) + 1 if marks else 0)}/"


_MARKS = re.compile("search('*)/")


def caches_of(declared: Sequence[ValueInfoProto], heads: int) -> list[LayerCache]:
    """As inputs or outputs say, whose axis ``heads`` is that of the heads, before tokens and
    widths; nothing where one does not.
    """
    found = [_cache(one, heads) for one in declared]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else []


def _cache(declared: ValueInfoProto, heads: int) -> LayerCache | None:
    tensor = declared.type.tensor_type
    lengths = [one.dim_value for one in tensor.shape.dim]
    if (
        len(lengths) != heads + 3
        or min(lengths[heads], lengths[-1]) < 1
        or tensor.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16)
    ):
        return None
    return LayerCache(tensor.elem_type, lengths[heads], lengths[-1])
