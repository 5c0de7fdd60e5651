"""The Model: graphs of nodes with ports and edges, and the bodies of control-flow nodes.

Everything is stored as in the file.
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
"""Id of a node inside its own graph; a body and the graph around it may use the same ids."""

ForeignBody = NewType("ForeignBody", str)
"""Name of a graph of an unknown operation: its attribute name, encoded as an address segment."""
BodyName = Literal["body", "then", "else"] | ForeignBody
FOREIGN = " with graphs"
"""Suffix of the opset of an unknown operation with graphs, so that no catalogue contains it."""
Dialect = Literal["openvino", "onnx"]
Form = Literal["tensor", "sequence", "optional", "optional sequence", "map"]
"""Kind of a value in ONNX; in OpenVINO every value is a tensor."""
NO_ATTRIBUTES: Mapping[str, object] = MappingProxyType({})


def _no_attributes() -> Mapping[str, object]:
    """Return the empty mapping; Python 3.11 rejects a mapping proxy as a direct default."""
    return NO_ATTRIBUTES


LOOP, TENSOR_ITERATOR, IF = "Loop", "TensorIterator", "If"
SCAN, SEQUENCE_MAP = "Scan", "SequenceMap"
"""Loop operations of ONNX only.

The slices of a Scan lose the axis along which they are taken. Those of a SequenceMap are the
elements of a sequence.
"""
_LOOPS = frozenset({LOOP, TENSOR_ITERATOR, SCAN, SEQUENCE_MAP})


class Port(Struct, frozen=True):
    """An input or output of a node, with its declaration, which may be missing or wrong."""

    id: int
    element_type: ElementType | None = None
    shape: PartialShape = DYNAMIC
    names: tuple[str, ...] = ()
    """Tensor names of output ports; in ONNX also of input ports, because names connect the nodes.
    """
    rt_info: Mapping[str, object] = NO_ATTRIBUTES
    form: Form = "tensor"
    """Kind of the value; element type and shape describe the tensors inside it."""

    def __hash__(self) -> int:
        return hash((self.id, self.element_type, self.shape, self.names, self.form))


class Edge(NamedTuple):
    """A connection of an output port to an input port, by layer and port ids as in the file."""

    from_layer: LayerId
    from_port: int
    to_layer: LayerId
    to_port: int


class OutputRef(Struct, frozen=True):
    """A tensor inside a graph: output number ``output`` (0-based position) of a node."""

    layer: LayerId
    output: int


class InputMap(Struct, frozen=True):
    """A ``port_map`` input: outer input ``external`` (-1: none) feeds Parameter ``internal``."""

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
        """True if the Parameter receives the iteration number.

        As in OpenVINO, the purpose is ignored if an outer input is named.
        """
        return self.external == -1 and self.purpose == "current_iteration"


class OutputMap(Struct, frozen=True):
    """A ``port_map`` output: body Result ``internal`` feeds an outer output (``external`` -1:
    none).

    The outputs of the node are the entries other than -1, sorted by ``external``.
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
    """True for ONNX scan outputs: iterations are stacked along a new axis instead of concatenated.
    """


class BackEdge(Struct, frozen=True):
    """A carried value: body Result ``from_layer`` feeds Parameter ``to_layer`` of the next
    iteration.
    """

    from_layer: LayerId
    to_layer: LayerId


class Body(Struct, frozen=True, eq=False):
    """A nested graph of a control-flow node with its bindings to the outer graph."""

    name: BodyName
    graph: ModelGraph
    inputs: tuple[InputMap, ...] = ()
    outputs: tuple[OutputMap, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()

    @property
    def outer_outputs(self) -> tuple[OutputMap, ...]:
        """The entries of outputs 0, 1, 2, ... of the outer node, in that order.

        The first entry of a repeated number counts, as in OpenVINO.
        """
        first = {entry.external: entry for entry in reversed(self.outputs) if entry.external != -1}
        return tuple(first[external] for external in sorted(first))


class Node(Struct, frozen=True, eq=False):
    """An operation of a graph: a ``<layer>`` of an IR file, a NodeProto of an ONNX file."""

    id: LayerId
    name: str
    type: str
    """Operation type, spelled as in the file (``Add``, ``Const``, ``Loop``)."""
    opset: str = ""
    """Opset, spelled as in the file (``opset1``); for ONNX the domain and version (``ai.onnx 13``).
    """
    attributes: Mapping[str, object] = NO_ATTRIBUTES
    """Attributes by name: verbatim text in the IR; typed and frozen values in ONNX."""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    bodies: tuple[Body, ...] = ()
    constant: Constant | None = None
    rt_info: Mapping[str, object] = NO_ATTRIBUTES
    line: int = 0
    """Line of the file at which the node begins; 0 when unknown."""
    output_names: tuple[str, ...] = ()
    """Tensor names that the file assigns to a Result itself."""
    source: int = 0
    """Number of the node in ``Model.source``, from 1; 0 for a node that is not in an ONNX file."""

    @property
    def is_foreign(self) -> bool:
        """True if the bodies belong to an unknown operation, whatever the type is called."""
        return self.opset.endswith(FOREIGN)

    @property
    def is_function(self) -> bool:
        """True for a call of an ONNX function, whose body runs once."""
        return self.opset.startswith("function ")

    @property
    def is_loop(self) -> bool:
        """True if the body runs once for each iteration."""
        return (
            self.type in _LOOPS
            and bool(self.bodies)
            and not self.is_foreign
            and not self.is_function
        )

    def body(self, name: BodyName) -> Body:
        """Return the nested graph of this name; ``KeyError`` when the node does not have it."""
        for body in self.bodies:
            if body.name == name:
                return body
        raise KeyError(name)


@dataclass(frozen=True, eq=False)
class ModelGraph:
    """A closed graph: nodes in document order and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    name: str = ""
    rt_info: Mapping[str, object] = field(default_factory=_no_attributes)
    replaced_initializers: tuple[str, ...] = ()
    """Names of ONNX initializers that a later initializer replaces; their data is not read."""
    source: int = 0
    """Number of the graph in ``Model.source``, from 1; 0 for a graph that is not in an ONNX file.
    """

    @cached_property
    def by_id(self) -> Mapping[LayerId, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def parameters(self) -> tuple[Node, ...]:
        """The Parameter nodes in document order: the inputs of the graph."""
        return tuple(node for node in self.nodes if node.type == "Parameter")

    @cached_property
    def results(self) -> tuple[Node, ...]:
        """The Result nodes in document order: the outputs of the graph."""
        return tuple(node for node in self.nodes if node.type == "Result")

    @cached_property
    def sources(self) -> Mapping[LayerId, tuple[OutputRef | None, ...]]:
        """The tensors that feed the inputs of each node, by position.

        None for an unconnected input.
        """
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
        """The (node, input number) pairs that each used output feeds."""
        consumers: dict[OutputRef, list[tuple[LayerId, int]]] = {}
        for layer, sources in self.sources.items():
            for index, source in enumerate(sources):
                if source is not None:
                    consumers.setdefault(source, []).append((layer, index))
        return {source: tuple(uses) for source, uses in consumers.items()}

    def tensor(self, source: OutputRef) -> Port:
        """Return the output port of a tensor."""
        return self.by_id[source.layer].outputs[source.output]


class GraphPlace(NamedTuple):
    """The place of a graph in an ONNX file."""

    first: int
    """Number of the graph's first node, counted over all graphs."""
    function: int | None
    """Index of the model function that contains the graph; None for the outermost graph."""
    path: tuple[tuple[int, str], ...]
    """Node index and attribute name of each step from the outermost graph or function."""


@dataclass(frozen=True, slots=True, eq=False)
class OnnxSource:
    """The ONNX file of a model, parsed again only when the model is written.

    It contains opsets, functions, metadata, declared types, documentation
    and the original form of attributes.
    """

    outline: bytes
    """The ModelProto without the data of large tensors."""
    places: tuple[GraphPlace, ...]
    """The graphs in ascending order of their first node; a called function once per call."""
    calls: Mapping[int, tuple[Body, ...]]
    """Bodies that the reader made for function calls and rewritten operations, by node number.

    A node with exactly these bodies is unchanged and is written as in the file.
    """


@dataclass(frozen=True, slots=True)
class Signature:
    """An input or output of a model."""

    name: str
    """Name of the Parameter or Result layer."""
    names: tuple[str, ...]
    """All tensor names of the input or output."""
    element_type: ElementType | None
    shape: PartialShape
    layer: LayerId
    form: Form = "tensor"


@dataclass(frozen=True, eq=False)
class Model:
    """A whole model: its outermost graph and its origin."""

    graph: ModelGraph
    name: str = ""
    version: int = 11
    """IR version of the file."""
    dialect: Dialect = "openvino"
    file: str = ""
    """Path of the file; empty when the model was not read from a file."""
    converted_from: str = ""
    """Format that the model was converted from, in words; empty when it was read directly."""
    rt_info: Mapping[str, object] = field(default_factory=_no_attributes)
    meta_data: Mapping[str, object] = field(default_factory=_no_attributes)
    notes: tuple[str, ...] = field(default=())
    """Notes of the reader for the user."""
    unopened: Model | None = None
    """The model before operators such as LSTM were opened as loops; None if none is opened."""
    source: OnnxSource | None = None
    """The parts of an ONNX file that the model lacks, for writing it again."""

    def __repr__(self) -> str:
        """Return a short text: the nodes of a model are too many to print."""
        inputs, outputs = (
            ", ".join(
                f"{signature.name!r} {signature.element_type}{signature.shape}"
                for signature in side[:8]
            )
            for side in (self.inputs, self.outputs)
        )
        signature = f"{inputs or 'no inputs'} -> {outputs or 'no outputs'}"
        return f"<Model {self.name!r}, {len(self.graph.nodes)} nodes: {signature}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        """Return the rich display of a notebook, by MIME type."""
        return mime_bundle(self)

    @cached_property
    def inputs(self) -> tuple[Signature, ...]:
        """The inputs in document order of the Parameter layers."""
        return tuple(_parameter_signature(node) for node in self.graph.parameters)

    @cached_property
    def inputs_called(self) -> Mapping[str, tuple[Signature, ...]]:
        """The inputs by name.

        A tensor name of only one input takes precedence, then the input's own name, then a shared
        tensor name.
        """
        by_tensor: dict[str, list[Signature]] = {}
        by_name: dict[str, list[Signature]] = {}
        for signature in self.inputs:
            by_name.setdefault(signature.name, []).append(signature)
            for name in dict.fromkeys(signature.names):
                by_tensor.setdefault(name, []).append(signature)
        unique = {
            name: signatures for name, signatures in by_tensor.items() if len(signatures) == 1
        }
        return {
            name: tuple(signatures)
            for name, signatures in {**by_tensor, **by_name, **unique}.items()
        }

    @cached_property
    def outputs(self) -> tuple[Signature, ...]:
        """The outputs in document order of the Result layers."""
        return tuple(_result_signature(self.graph, node) for node in self.graph.results)


def expect_model(argument: object, taker: str) -> None:
    """Raise ``TypeError`` if ``taker`` was called with something other than a Model."""
    if not isinstance(argument, Model):
        advice = (
            "loopscope.read_model(path) reads one"
            if isinstance(argument, (str, bytes, PathLike))
            else "a graph's model() makes one"
        )
        raise TypeError(f"{taker} takes a Model, not {type(argument).__name__}: {advice}")


def _parameter_signature(node: Node) -> Signature:
    port = node.outputs[0] if node.outputs else Port(0)
    return Signature(node.name, port.names, port.element_type, port.shape, node.id, port.form)


def _result_signature(graph: ModelGraph, node: Node) -> Signature:
    sources = graph.sources[node.id]
    source = sources[0] if sources else None
    port = graph.tensor(source) if source else (node.inputs[0] if node.inputs else Port(0))
    names = tuple(dict.fromkeys((*node.output_names, *port.names)))
    return Signature(node.name, names, port.element_type, port.shape, node.id, port.form)
