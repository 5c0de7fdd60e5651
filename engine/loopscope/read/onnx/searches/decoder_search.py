"""Base of all searches of domain com.microsoft: the decoder's graph, its caches, and the scores of
the next token.
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

from loopscope.read.onnx.node_attributes import AttributeMap

GRAPH_DOMAIN = "loopscope.graphs"
"""Domain of nodes that run the graph in their attribute ``graph`` once, with their inputs as its
inputs.
"""
SEARCH_DOMAIN = "loopscope"
"""Domain of search steps that ONNX lacks operations for."""
_FIRST_OPSET = 11
"""First opset of ONNX in which all operations used here have their current meaning."""
_BEFORE_PASTS = 3
"""Number of decoder inputs before its caches: tokens, positions, mask."""
LOWEST = float(np.finfo(np.float32).min)
"""Score of excluded words."""
_WORDS = ("eos_token_id", "pad_token_id", "vocab_size", "decoder_start_token_id")
END = 2**62
"""End of a slice that reaches to the end of its axis."""
_MAX_NGRAM = 64


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The cache of one layer: ``[2, rows, heads, tokens, width]``, or keys and values as two
    tensors.
    """

    kind: int
    heads: int
    width: int


@dataclass(slots=True, eq=False)
class OnnxNodes:
    """Nodes of a graph under construction. Their names begin with a prefix that inner graphs do not
    use.
    """

    prefix: str
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        (output,) = self.several(1, kind, *inputs, **attributes)
        return output

    def several(self, outputs: int, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node and return the names of its outputs."""
        name = f"{kind}_{len(self.nodes)}"
        names = [
            self.prefix + name,
            *(f"{self.prefix}{name} {number}" for number in range(1, outputs)),
        ]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return names

    def constant(self, value: Any, dtype: type) -> str:
        return self.add("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def length(self, tensor: str, axis: int) -> str:
        """Return the length of an axis, as a tensor of shape [1]."""
        return self.add("Gather", self.add("Shape", tensor), self.constant([axis], np.int64))

    def columns(self, tensor: str, begin: str, end: str) -> str:
        """Slice a tensor along axis 1."""
        return self.add("Slice", tensor, begin, end, self.constant([1], np.int64))

    def shape(self, *lengths: str | int) -> str:
        """Return a shape tensor. Each length is a number or the name of a tensor of shape [1]."""
        return self.add(
            "Concat",
            *(
                length if isinstance(length, str) else self.constant([length], np.int64)
                for length in lengths
            ),
            axis=0,
        )

    def scalar(self, tensor: str) -> str:
        """Return a tensor of one element as a scalar."""
        return self.add("Reshape", tensor, self.constant(np.zeros(0), np.int64))

    def filled(self, value: Any, dtype: type, *lengths: str | int) -> str:
        """Return a tensor of these lengths whose elements are all ``value``."""
        return self.add(
            "ConstantOfShape",
            self.shape(*lengths),
            value=numpy_helper.from_array(np.array([value], dtype)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Search(ABC):
    """One search node, rewritten as a loop."""

    node: NodeProto
    attributes: AttributeMap
    graphs: Sequence[GraphProto]
    """The decoder, or the graph of the first iteration and then the decoder."""
    caches: Sequence[LayerCache]
    prefix: str
    """Prefix that no name in the graphs begins with."""

    INPUTS: ClassVar[Sequence[str]]
    """Names of the inputs in the order of ONNX Runtime's contrib operator documentation."""
    NEEDED: ClassVar[int]
    """Number of required inputs."""

    @classmethod
    def of(cls, node: NodeProto, attributes: AttributeMap, version: int) -> FunctionProto | None:
        """Return the node as a function of its inputs.

        None if its graphs have an unsupported signature, or the node requests an unsupported
        feature.
        """
        counted = cls.NEEDED <= len(node.input) <= len(cls.INPUTS) and all(node.input[: cls.NEEDED])
        supported = (
            cls.supported(attributes)
            if _bounded(attributes) and version >= _FIRST_OPSET and counted
            else None
        )
        if supported is None:
            return None
        search = cls(node, attributes, *supported, _unused_prefix(supported[0]))
        return search.function() if search.is_supported else None

    @classmethod
    def supported(
        cls, attributes: AttributeMap
    ) -> tuple[list[GraphProto], list[LayerCache]] | None:
        """Return the graphs and caches of a decoder-only model; None for any other signature."""
        decoder = graph(attributes, "decoder")
        if decoder is None or number(attributes, "model_type", 0) or "encoder" in attributes:
            return None
        caches = caches_of(decoder.input[_BEFORE_PASTS:], heads=2)
        graphs = [
            candidate
            for candidate in (graph(attributes, "init_decoder"), decoder)
            if candidate is not None
        ]
        if not caches or not all(
            len(candidate.input) == _BEFORE_PASTS + len(caches)
            and len(candidate.output) == 1 + len(caches)
            for candidate in graphs
        ):
            return None
        return graphs, caches

    @property
    @abstractmethod
    def is_supported(self) -> bool:
        """True if all features that the node requests are supported."""

    @abstractmethod
    def function(self) -> FunctionProto:
        """Return the loop with the nodes before and after it."""

    def as_function(self, nodes: OnnxNodes, outputs: Sequence[str]) -> FunctionProto:
        names = [self.input_name(name) for name in self.INPUTS[: len(self.node.input)]]
        return FunctionProto(
            name=self.node.op_type,
            domain=self.node.domain,
            input=names,
            output=outputs,
            node=nodes.nodes,
        )

    def input_name(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def input(self, name: str) -> str:
        """Return the function's name of an input; empty if the node omits it."""
        place = self.INPUTS.index(name)
        return (
            self.input_name(name) if place < len(self.node.input) and self.node.input[place] else ""
        )

    def has_output(self, output: int) -> bool:
        """Return True if the node has this output."""
        return output < len(self.node.output) and bool(self.node.output[output])

    def number(self, name: str, default: int = 0) -> int:
        return number(self.attributes, name, default)

    def real(self, name: str, default: float) -> float:
        return float(self.attributes[name].f) if name in self.attributes else default

    def empty(self, nodes: OnnxNodes, cache: LayerCache, rows: str) -> str:
        """Return a cache without tokens."""
        zero = helper.make_tensor("zero", cache.kind, [1], [0.0])
        return nodes.add(
            "ConstantOfShape", nodes.shape(2, rows, cache.heads, 0, cache.width), value=zero
        )

    def positions(self, nodes: OnnxNodes, tokens: str, words: str) -> str:
        """Return the positions of the new tokens: the number of words before each; 0 for padding.

        The attention mask does not affect them.
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
        """Return the logits of the last token, ``[rows, words]`` in f32.

        With two graphs, the first one runs in the first iteration only.
        """
        outputs = [f"{self.prefix}logits", *presents]
        if len(self.graphs) == 1:
            nodes.nodes.append(run("decoder", inputs, outputs))
        else:
            branches = []
            for name in ("init_decoder", "decoder"):
                inner = [f"{output} of {name}" for output in outputs]
                branches.append(graph_of([run(name, inputs, inner)], name, [], inner))
            self.first_or_not(nodes, branches[0], branches[1], outputs)
        return self.last(nodes, outputs[0])

    def first_or_not(
        self, nodes: OnnxNodes, first: GraphProto, later: GraphProto, outputs: list[str]
    ) -> None:
        """Add an If that runs ``first`` in the first iteration and ``later`` afterwards."""
        nodes.nodes.append(
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
        """Return the logits of the last token, ``[rows, words]`` in f32."""
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
        """Return the scores of the next token, ``[rows, words]``, with the lowest score for
        excluded words.

        The restrictions apply in ONNX Runtime's order.
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
        """Repeat a tensor with a row per batch entry, so that it matches ``rows``."""
        return of_batch

    def _is_first(self, nodes: OnnxNodes) -> str:
        return nodes.add("Equal", f"{self.prefix}iteration", nodes.constant(0, np.int64))

    def _lowest_where(self, nodes: OnnxNodes, hidden: str, scores: str) -> str:
        return nodes.add("Where", hidden, nodes.constant(LOWEST, np.float32), scores)

    def _repeated_less(self, nodes: OnnxNodes, scores: str, sequences: str) -> str:
        """Apply the repetition penalty: divide positive scores of words in the sequence, multiply
        negative ones.
        """
        penalty = self.input("repetition_penalty")
        repeated = nodes.add("GatherElements", scores, sequences, axis=1)
        is_negative = nodes.add("Less", repeated, nodes.constant(0, np.float32))
        penalized = nodes.add(
            "Where",
            is_negative,
            nodes.add("Mul", repeated, penalty),
            nodes.add("Div", repeated, penalty),
        )
        return nodes.add("ScatterElements", scores, sequences, penalized, axis=1)

    def _without_repetition(self, nodes: OnnxNodes, scores: str, sequences: str, size: int) -> str:
        """Exclude each word that would repeat an n-gram of ``size`` words of the sequence."""
        length, last = nodes.length(sequences, 1), nodes.constant([END], np.int64)
        count = nodes.add(
            "Max",
            nodes.add("Sub", length, nodes.constant([size - 1], np.int64)),
            nodes.constant([0], np.int64),
        )
        ends = nodes.columns(sequences, nodes.constant([size - 1], np.int64), last)
        is_repeated = nodes.add("Equal", ends, ends)
        for place in range(size - 1):
            begin = nodes.constant([place], np.int64)
            words = nodes.columns(sequences, begin, nodes.add("Add", count, begin))
            start = nodes.constant([place + 1 - size], np.int64)
            end = nodes.constant([place + 2 - size or END], np.int64)
            is_repeated = nodes.add(
                "And", is_repeated, nodes.add("Equal", words, nodes.columns(sequences, start, end))
            )
        # Allowed words are written to an extra column, which is cut off afterwards.
        aside = nodes.add("Cast", nodes.length(scores, 1), to=TensorProto.INT32)
        places = nodes.add("Where", is_repeated, ends, aside)
        lowest = nodes.add(
            "Expand", nodes.constant([[LOWEST]], np.float32), nodes.add("Shape", places)
        )
        spare = nodes.columns(scores, nodes.constant([0], np.int64), nodes.constant([1], np.int64))
        with_excluded = nodes.add(
            "ScatterElements", nodes.add("Concat", scores, spare, axis=1), places, lowest, axis=1
        )
        return nodes.columns(
            with_excluded, nodes.constant([0], np.int64), nodes.constant([-1], np.int64)
        )

    def _too_short_to_end(self, nodes: OnnxNodes, scores: str, sequences: str) -> str:
        """Return the mask that excludes the end token while a sequence is shorter than
        ``min_length``.
        """
        words = nodes.scalar(nodes.length(scores, 1))
        numbers = nodes.add(
            "Range", nodes.constant(0, np.int64), words, nodes.constant(1, np.int64)
        )
        end = nodes.add("Equal", numbers, nodes.constant(self.number("eos_token_id"), np.int64))
        minimum = nodes.add("Cast", self.input("min_length"), to=TensorProto.INT64)
        short = nodes.add("Less", nodes.length(sequences, 1), minimum)
        return nodes.add("And", end, short)


def graph_of(
    nodes: Sequence[NodeProto], name: str, inputs: Sequence[str], outputs: Sequence[str]
) -> GraphProto:
    """Return a graph without types: the types of the tokens follow from the decoder."""
    graph = GraphProto(name=name, node=nodes)
    for value_name in inputs:
        graph.input.add(name=value_name)
    for value_name in outputs:
        graph.output.add(name=value_name)
    return graph


def run(name: str, inputs: list[str], outputs: list[str]) -> NodeProto:
    """Return a node that runs the graph in the search's attribute ``name``.

    The graph is referenced, not copied, because it may be large.
    """
    node = helper.make_node(name, inputs, outputs, name=name, domain=GRAPH_DOMAIN)
    node.attribute.add(name="graph", ref_attr_name=name, type=AttributeProto.GRAPH)
    return node


def _bounded(attributes: AttributeMap) -> bool:
    """Return True if the token ids fit i32 and ``no_repeat_ngram_size`` is within the supported
    limit.
    """
    words = all(-(2**31) <= number(attributes, name, 0) < 2**31 for name in _WORDS)
    return words and number(attributes, "no_repeat_ngram_size", 0) <= _MAX_NGRAM


def graph(attributes: AttributeMap, name: str) -> GraphProto | None:
    attribute = attributes.get(name)
    return attribute.g if attribute is not None and attribute.HasField("g") else None


def number(attributes: AttributeMap, name: str, default: int) -> int:
    return int(attributes[name].i) if name in attributes else default


def _unused_prefix(graphs: Sequence[GraphProto]) -> str:
    """Return a prefix for new names that no name in the graphs begins with.

    Inner graphs may use names of outer graphs, which new names must not hide.
    """
    used: set[str] = set()
    waiting = [*graphs]
    while waiting:
        inner = waiting.pop()
        used.update(item.name for item in inner.output)
        for node in inner.node:
            used.update(node.input)
            waiting += [graph for item in node.attribute for graph in (item.g, *item.graphs)]
    # Names that are not UTF-8 are bytes here, and are refused when the scopes are read.
    texts = (name for name in used if isinstance(name, str))
    marks = [len(match[1]) for match in map(_PREFIX.match, texts) if match]
    return f"search{chr(39) * (max(marks) + 1 if marks else 0)}/"


_PREFIX = re.compile("search('*)/")


def caches_of(declared: Sequence[ValueInfoProto], heads: int) -> list[LayerCache]:
    """Return the caches that the inputs or outputs declare; empty if one of them is not a cache.

    ``heads`` is the axis of the heads, which precedes the axes of tokens and widths.
    """
    caches = [_cache(item, heads) for item in declared]
    known = [item for item in caches if item is not None]
    return known if len(known) == len(caches) else []


def _cache(declared: ValueInfoProto, heads: int) -> LayerCache | None:
    tensor = declared.type.tensor_type
    lengths = [dimension.dim_value for dimension in tensor.shape.dim]
    if (
        len(lengths) != heads + 3
        or min(lengths[heads], lengths[-1]) < 1
        or tensor.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16)
    ):
        return None
    return LayerCache(tensor.elem_type, lengths[heads], lengths[-1])
