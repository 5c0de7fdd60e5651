"""The Model: graphs of nodes with ports and edges, and the bodies inside control-flow nodes,
exactly as the file has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NewType

from msgspec import Struct

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.plugins import mime_bundle

LayerId = NewType("LayerId", int)
"""Means something only inside its own graph: bodies and their surroundings may repeat ids."""

ForeignBody = NewType("ForeignBody", str)
"""A graph of an operation that is unknown here: the name of its attribute, written as an address
segment.
"""
BodyName = Literal["body", "then", "else"] | ForeignBody
FOREIGN = " with graphs"
"""A suffix of the opset of an operation whose graphs cannot be run here, so that no catalogue
contains it.
"""
Dialect = Literal["openvino", "onnx"]
Form = Literal["tensor", "sequence", "optional", "optional sequence", "map"]
"""The kind of a value in ONNX; in OpenVINO every value is a tensor."""
NO_ATTRIBUTES: Mapping[str, object] = MappingProxyType({})


def _no_attributes() -> Mapping[str, object]:
    """Python 3.11 takes a mapping proxy for a mutable default, so that it has to come from a
    function.
    """
    return NO_ATTRIBUTES


LOOP, TENSOR_ITERATOR, IF = "Loop", "TensorIterator", "If"
SCAN, SEQUENCE_MAP = "Scan", "SequenceMap"
"""Only ONNX has them: a Scan's parts lose the axis that they are taken along, a SequenceMap's
are the elements of a sequence.
"""
_LOOPS = frozenset({LOOP, TENSOR_ITERATOR, SCAN, SEQUENCE_MAP})


class Port(Struct, frozen=True):
    """An input or output of a node, with what the file declares for it; declarations may be
    missing or wrong.
    """

    id: int
    element_type: ElementType | None = None
    shape: PartialShape = DYNAMIC
    names: tuple[str, ...] = ()
    """Tensor names (output ports; in ONNX also of input ports, by which nodes are connected)."""
    rt_info: Mapping[str, object] = NO_ATTRIBUTES
    form: Form = "tensor"
    """Element type and shape are those of the tensors in it."""

    def __hash__(self) -> int:
        return hash((self.id, self.element_type, self.shape, self.names, self.form))


class Edge(NamedTuple):
    """From an output port to an input port, by layer and port ids, as the file writes it."""

    from_layer: LayerId
    from_port: int
    to_layer: LayerId
    to_port: int


class OutputRef(Struct, frozen=True):
    """What feeds an input: output number ``output`` (0-based position) of a node of the same
    graph.
    """

    layer: LayerId
    output: int


class InputMap(Struct, frozen=True):
    """A ``port_map`` input: outer input number ``external`` (-1: none) feeds body Parameter
    ``internal``.
    """

    external: int
    internal: LayerId
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""
    """``current_iteration`` or empty."""

    @property
    def is_iteration_number(self) -> bool:
        """Whether the Parameter gets the iteration number: the purpose means nothing where an
        outer input is named (as in OpenVINO).
        """
        return self.external == -1 and self.purpose == "current_iteration"


class OutputMap(Struct, frozen=True):
    """A ``port_map`` output: body Result ``internal`` makes an outer output (``external`` -1:
    none).

    ``external`` orders the entries: sorted by it, those that are not -1 are the node's outputs 0,
    1, 2, ...
    """

    external: int
    internal: LayerId
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""
    """``execution_condition`` or empty."""
    stacked: bool = False
    """ONNX scan outputs: values of all iterations are stacked along a new axis instead of
    concatenated.
    """


class BackEdge(Struct, frozen=True):
    """Carries the value of body Result ``from_layer`` into body Parameter ``to_layer`` of the
    next iteration.
    """

    from_layer: LayerId
    to_layer: LayerId


class Body(Struct, frozen=True, eq=False):
    """A nested graph of a control-flow node and how it is bound to the outside."""

    name: BodyName
    graph: ModelGraph
    inputs: tuple[InputMap, ...] = ()
    outputs: tuple[OutputMap, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()

    @property
    def outer_outputs(self) -> tuple[OutputMap, ...]:
        """The entries that make outputs 0, 1, 2, ... of the outer node, in that order; of one
        number the first, as in OpenVINO.
        """
        first = {entry.external: entry for entry in reversed(self.outputs) if entry.external != -1}
        return tuple(first[external] for external in sorted(first))


class Node(Struct, frozen=True, eq=False):
    """One operation of a graph: a ``<layer>`` of an IR file, a NodeProto of an ONNX file."""

    id: LayerId
    name: str
    type: str
    """As the file spells it (``Add``, ``Const``, ``Loop``)."""
    opset: str = ""
    """As the file spells it (``opset1``); for ONNX the domain and version (``ai.onnx 13``)."""
    attributes: Mapping[str, object] = NO_ATTRIBUTES
    """IR: verbatim text by name. ONNX: typed values, frozen."""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    bodies: tuple[Body, ...] = ()
    constant: Constant | None = None
    rt_info: Mapping[str, object] = NO_ATTRIBUTES
    line: int = 0
    """Line of the file where it begins; 0 when unknown."""
    output_names: tuple[str, ...] = ()
    """Result only: tensor names that the file gives to the Result itself."""

    @property
    def is_foreign(self) -> bool:
        """Whether its bodies belong to an operation that is unknown here, whatever its type is
        called.
        """
        return self.opset.endswith(FOREIGN)

    @property
    def is_function(self) -> bool:
        """Whether it is the call of a function of ONNX, whose body runs once."""
        return self.opset.startswith("function ")

    @property
    def is_loop(self) -> bool:
        """Whether its body runs once for each iteration."""
        return (
            self.type in _LOOPS
            and bool(self.bodies)
            and not self.is_foreign
            and not self.is_function
        )

    def body(self, name: BodyName) -> Body:
        """The nested graph of that name; ``KeyError`` when the node has none."""
        for body in self.bodies:
            if body.name == name:
                return body
        raise KeyError(name)


@dataclass(frozen=True, eq=False)
class ModelGraph:
    """Nodes in document order and the edges between them; closed: nothing outside is visible in
    it.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    name: str = ""
    rt_info: Mapping[str, object] = field(default_factory=_no_attributes)
    replaced_initializers: tuple[str, ...] = ()
    """Names of ONNX initializers that a later initializer of the same graph replaces; their data
    is not read.
    """

    @cached_property
    def by_id(self) -> Mapping[LayerId, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def parameters(self) -> tuple[Node, ...]:
        """Parameter nodes in document order: the graph's inputs."""
        return tuple(node for node in self.nodes if node.type == "Parameter")

    @cached_property
    def results(self) -> tuple[Node, ...]:
        """Result nodes in document order: the graph's outputs."""
        return tuple(node for node in self.nodes if node.type == "Result")

    @cached_property
    def sources(self) -> Mapping[LayerId, tuple[OutputRef | None, ...]]:
        """For each node, what feeds each of its inputs, by position; None where no edge arrives."""
        inputs = {
            node.id: {port.id: index for index, port in enumerate(node.inputs)}
            for node in self.nodes
        }
        outputs = {
            node.id: {port.id: index for index, port in enumerate(node.outputs)}
            for node in self.nodes
        }
        fed: dict[LayerId, list[OutputRef | None]] = {
            node.id: [None] * len(node.inputs) for node in self.nodes
        }
        for edge in self.edges:
            to = inputs.get(edge.to_layer, {}).get(edge.to_port)
            output = outputs.get(edge.from_layer, {}).get(edge.from_port)
            if to is not None and output is not None:
                fed[edge.to_layer][to] = OutputRef(edge.from_layer, output)
        return {layer: tuple(sources) for layer, sources in fed.items()}

    @cached_property
    def consumers(self) -> Mapping[OutputRef, tuple[tuple[LayerId, int], ...]]:
        """For each output in use, the (node, input number) pairs that it feeds."""
        found: dict[OutputRef, list[tuple[LayerId, int]]] = {}
        for layer, sources in self.sources.items():
            for index, source in enumerate(sources):
                if source is not None:
                    found.setdefault(source, []).append((layer, index))
        return {source: tuple(uses) for source, uses in found.items()}

    def tensor(self, source: OutputRef) -> Port:
        """The output port that a source names."""
        return self.by_id[source.layer].outputs[source.output]


@dataclass(frozen=True, slots=True)
class Signature:
    """One input or output of a model."""

    name: str
    """Name of the Parameter or Result layer."""
    names: tuple[str, ...]
    """All tensor names by which it may be called."""
    element_type: ElementType | None
    shape: PartialShape
    layer: LayerId
    form: Form = "tensor"


@dataclass(frozen=True, eq=False)
class Model:
    """A whole model: its outermost graph, and where it came from."""

    graph: ModelGraph
    name: str = ""
    version: int = 11
    """IR version of the file."""
    dialect: Dialect = "openvino"
    file: str = ""
    """Path that it was read from; empty when it was not read from a file."""
    converted_from: str = ""
    """The format that a model was converted from, in words; empty for a model that was read
    directly.
    """
    rt_info: Mapping[str, object] = field(default_factory=_no_attributes)
    meta_data: Mapping[str, object] = field(default_factory=_no_attributes)
    notes: tuple[str, ...] = field(default=())
    """What the reader wants the user to know."""

    def __repr__(self) -> str:
        """Short: a model's nodes are no reading matter."""
        taken, given = (
            ", ".join(f"{one.name!r} {one.element_type}{one.shape}" for one in side[:8])
            for side in (self.inputs, self.outputs)
        )
        return f"<Model {self.name!r}, {len(self.graph.nodes)} nodes: {taken or 'no inputs'} -> {given or 'no outputs'}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        """Return the rich display of a notebook, by MIME type."""
        return mime_bundle(self)

    @cached_property
    def inputs(self) -> tuple[Signature, ...]:
        """In document order of the Parameter layers: name, all tensor names, element type,
        partial shape.
        """
        return tuple(_parameter_signature(node) for node in self.graph.parameters)

    @cached_property
    def inputs_called(self) -> Mapping[str, tuple[Signature, ...]]:
        """The inputs that a name means: by a tensor name that one has alone, else by their own
        names, else by a shared tensor name.
        """
        by_tensor: dict[str, list[Signature]] = {}
        by_name: dict[str, list[Signature]] = {}
        for one in self.inputs:
            by_name.setdefault(one.name, []).append(one)
            for name in dict.fromkeys(one.names):
                by_tensor.setdefault(name, []).append(one)
        alone = {name: found for name, found in by_tensor.items() if len(found) == 1}
        return {name: tuple(found) for name, found in {**by_tensor, **by_name, **alone}.items()}

    @cached_property
    def outputs(self) -> tuple[Signature, ...]:
        """In document order of the Result layers."""
        return tuple(_result_signature(self.graph, node) for node in self.graph.results)


def expect_model(given: object, taker: str) -> None:
    """``TypeError`` when ``taker`` was called with something else than a Model, such as a path."""
    if not isinstance(given, Model):
        read = (
            "loopscope.read_model(path) reads one"
            if isinstance(given, (str, bytes, PathLike))
            else "a graph's model() makes one"
        )
        raise TypeError(f"{taker} takes a Model, not {type(given).__name__}: {read}")


def _parameter_signature(node: Node) -> Signature:
    port = node.outputs[0] if node.outputs else Port(0)
    return Signature(node.name, port.names, port.element_type, port.shape, node.id, port.form)


def _result_signature(graph: ModelGraph, node: Node) -> Signature:
    sources = graph.sources[node.id]
    source = sources[0] if sources else None
    port = graph.tensor(source) if source else (node.inputs[0] if node.inputs else Port(0))
    names = tuple(dict.fromkeys((*node.output_names, *port.names)))
    return Signature(node.name, names, port.element_type, port.shape, node.id, port.form)
