"""Extraction of nodes of a graph as a model; what the nodes read from elsewhere becomes inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loopscope.checks.propagate import Propagated, propagate
from loopscope.ir.address import PlacedGraph, graphs, is_within
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    NO_ATTRIBUTES,
    Edge,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OnnxSource,
    OutputRef,
    Port,
)
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import Role
from loopscope.ops.dialect import catalogue_for
from loopscope.transform.graph_edits import with_every_node

NO_WEIGHTS: Mapping[LayerId, Constant] = {}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a model as a model, with the tensors that its inputs and outputs stand for."""

    model: Model
    graph: str
    """Static address of the graph that the part was cut out of."""
    inputs: tuple[OutputRef, ...]
    """Tensor of that graph for each input of the model, in order."""
    outputs: tuple[OutputRef, ...]
    """Tensor of that graph for each output of the model, in order."""


def boundary_outputs(graph: ModelGraph, layers: Collection[LayerId]) -> list[OutputRef]:
    """Return the tensors of some nodes that other nodes read, and those that nothing reads.

    Tensors of constants are not among them.
    """
    outputs = []
    for node in graph.nodes:
        if node.id not in layers or node.constant is not None:
            continue
        for number in range(len(node.outputs)):
            readers = graph.consumers.get(OutputRef(node.id, number), ())
            if not readers or any(reader not in layers for reader, _ in readers):
                outputs.append(OutputRef(node.id, number))
    return outputs


class Extraction:
    """Extraction of parts of one graph of a model.

    ``weights`` are Parameters of the graph that become constants.
    """

    def __init__(
        self,
        model: Model,
        place: PlacedGraph,
        catalogue: Catalogue,
        weights: Mapping[LayerId, Constant] = NO_WEIGHTS,
    ) -> None:
        self.model, self.place, self.weights = model, place, weights
        self.graph = place.graph
        self._given_catalogue = catalogue
        self._catalogue = catalogue_for(model.dialect, catalogue)

    @cached_property
    def _propagated(self) -> Propagated:
        return propagate(self.model, self._given_catalogue)

    def computing(self, layers: Collection[LayerId]) -> set[LayerId]:
        """Return the layers without Parameters, Results, variables and random numbers."""
        return {layer for layer in layers if self._computes(self.graph.by_id[layer])}

    def _computes(self, node: Node) -> bool:
        if node.type in ("Parameter", "Result"):
            return False
        operation = self._catalogue.find(node.type, node.opset)
        return operation is None or not (
            operation.stateful or operation.role in (Role.READ_VALUE, Role.ASSIGN)
        )

    def part(
        self, layers: Collection[LayerId], outputs: Sequence[OutputRef], *, whole: bool = False
    ) -> Part:
        """Return the model of some nodes whose outputs are the given tensors.

        ``whole`` also retains the Parameters that nothing reads, and the names of the Results.
        """
        graph = self.graph
        computing = self.computing(layers)
        sources = [*self._sources(computing), *outputs]
        constants = {
            source.layer for source in sources if graph.by_id[source.layer].constant is not None
        }
        included = computing | constants
        inputs = self._inputs([source for source in sources if source.layer not in included], whole)
        builder = _PartBuilder(self, included)
        for tensor in inputs:
            builder.add_input(tensor)
        builder.add_nodes({source.layer for source in sources})
        results = self._results() if whole else {}
        written = list(dict.fromkeys(outputs)) if self.model.dialect == "onnx" else list(outputs)
        for tensor in written:
            builder.add_result(tensor, results)
        return Part(self._model(builder), self.place.address, tuple(inputs), tuple(written))

    def _sources(self, layers: Collection[LayerId]) -> Iterator[OutputRef]:
        for node in self.graph.nodes:
            if node.id in layers:
                yield from (source for source in self.graph.sources[node.id] if source is not None)

    def _inputs(self, tensors: Sequence[OutputRef], whole: bool) -> list[OutputRef]:
        """Return the tensors that become inputs: Parameters first, in the order of the graph."""
        needed = dict.fromkeys(tensor for tensor in tensors if tensor.layer not in self.weights)
        parameters = [
            OutputRef(node.id, 0)
            for node in self.graph.parameters
            if node.id not in self.weights and (whole or OutputRef(node.id, 0) in needed)
        ]
        return list(dict.fromkeys([*parameters, *needed]))

    def _results(self) -> dict[OutputRef, list[Node]]:
        results: dict[OutputRef, list[Node]] = {}
        for node in self.graph.results:
            for source in self.graph.sources[node.id][:1]:
                if source is not None:
                    results.setdefault(source, []).append(node)
        return results

    def type_of(self, tensor: OutputRef) -> Port:
        """Return the declared port of a tensor, completed by what propagation finds."""
        port = self.graph.tensor(tensor)
        known = self._propagated.output(self.place.address, tensor.layer, tensor.output)
        return replace(
            port,
            id=0,
            element_type=port.element_type or known.element_type,
            shape=known.shape if port.shape.dimensions is None else port.shape,
        )

    def _model(self, builder: _PartBuilder) -> Model:
        graph = replace(self.graph, nodes=tuple(builder.nodes), edges=tuple(builder.edges))
        name = f"{self.model.name} {self.place.address}" if self.place.owner else self.model.name
        part = replace(self.model, graph=graph, name=name, file="", notes=())
        return _out_of_function(part) if self._is_in_function() else part

    def _is_in_function(self) -> bool:
        """Return True if the graph belongs to an ONNX function, or lies inside one."""
        address = self.place.address
        return any(
            place.owner is not None
            and place.owner.is_function
            and is_within(address, place.address)
            for place in graphs(self.model)
        )


class _PartBuilder:
    """Nodes and edges of a part."""

    def __init__(self, extraction: Extraction, included: Collection[LayerId]) -> None:
        self.extraction, self.graph = extraction, extraction.graph
        self.included = included
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self._next = LayerId(max(self.graph.by_id, default=LayerId(-1)) + 1)
        self._uses = Counter(
            node.name
            for node in self.graph.nodes
            if node.id in included or node.type in ("Parameter", "Result")
        )
        self._layer_of: dict[OutputRef, tuple[LayerId, int]] = {}
        """Layer and port that provide a tensor that no kept node computes."""

    def add_input(self, tensor: OutputRef) -> None:
        """Add a Parameter in place of a tensor; a Parameter of the graph is retained."""
        node, port = self.graph.by_id[tensor.layer], self.extraction.type_of(tensor)
        is_onnx = self.extraction.model.dialect == "onnx"
        name = node.name
        if node.type != "Parameter":
            suffix = f".{tensor.output}" if tensor.output else ""
            name = port.names[0] if is_onnx and port.names else self._unused(f"{node.name}{suffix}")
        layer = node.id if node.type == "Parameter" else self._fresh()
        self.nodes.append(parameter(layer, name, port, is_onnx=is_onnx))
        self._layer_of[tensor] = layer, 0

    def add_nodes(self, read: Collection[LayerId]) -> None:
        """Add the kept nodes and their edges, and constants for captured weights that are read."""
        for node in self.graph.nodes:
            if node.id in self.included:
                self.nodes.append(node)
            elif node.id in self.extraction.weights and node.id in read:
                self._add_weight(node)
        for node in self.graph.nodes:
            if node.id in self.included:
                for index, source in enumerate(self.graph.sources[node.id]):
                    if source is not None:
                        self.edges.append(Edge(*self._end(source), node.id, node.inputs[index].id))

    def _add_weight(self, node: Node) -> None:
        self.nodes.append(
            constant_node(
                node.id,
                node.name,
                node.outputs[0],
                self.extraction.weights[node.id],
                is_onnx=self.extraction.model.dialect == "onnx",
            )
        )

    def add_result(self, tensor: OutputRef, results: Mapping[OutputRef, list[Node]]) -> None:
        """Add a Result of a tensor, the graph's own if there is one left."""
        port = self.extraction.type_of(tensor)
        own = results.get(tensor)
        layer, end = self._fresh(), self._end(tensor)
        if own:
            self.nodes.append(own.pop(0))
            layer, input_port = self.nodes[-1].id, self.nodes[-1].inputs[0].id
            self.edges.append(Edge(*end, layer, input_port))
            return
        name = self.graph.by_id[tensor.layer].name
        is_onnx = self.extraction.model.dialect == "onnx"
        if is_onnx and port.names:
            result = Node(layer, port.names[0], "Result", "", inputs=(port,))
        else:
            label = f"{name}.{tensor.output}" if tensor.output else name
            names = () if port.names else (label,)
            result = Node(
                layer,
                self._unused(f"{label}/result"),
                "Result",
                "opset1",
                inputs=(replace(port, names=()),),
                output_names=names,
            )
        self.nodes.append(result)
        self.edges.append(Edge(*end, layer, 0))

    def _end(self, tensor: OutputRef) -> tuple[LayerId, int]:
        """Return the layer and the port id that provide a tensor."""
        return self._layer_of.get(tensor) or (tensor.layer, self.graph.tensor(tensor).id)

    def _fresh(self) -> LayerId:
        layer = self._next
        self._next = LayerId(self._next + 1)
        return layer

    def _unused(self, name: str) -> str:
        while name in self._uses:
            name += "_"
        self._uses[name] += 1
        return name


def parameter(layer: LayerId, name: str, port: Port, *, is_onnx: bool) -> Node:
    """Return a Parameter with the type, shape and names of a port."""
    if is_onnx:
        return Node(layer, name, "Parameter", "", outputs=(port,))
    attributes = {
        "shape": str(port.shape).removeprefix("[").removesuffix("]"),
        "element_type": str(port.element_type or "dynamic"),
    }
    return Node(layer, name, "Parameter", "opset1", attributes, outputs=(port,))


def constant_node(
    layer: LayerId, name: str, port: Port, constant: Constant, *, is_onnx: bool
) -> Node:
    """Return a Const with the names and the id of a port."""
    attributes = {
        "element_type": str(constant.element_type),
        "shape": ", ".join(map(str, constant.shape)),
    }
    typed = replace(port, element_type=constant.element_type, shape=PartialShape.of(constant.shape))
    return Node(
        layer,
        name,
        "Const",
        "" if is_onnx else "opset1",
        NO_ATTRIBUTES if is_onnx else attributes,
        outputs=(typed,),
        constant=constant,
    )


def with_values(model: Model, values: Sequence[object]) -> Model:
    """Return the model with missing types and impossible shapes of inputs taken from values.

    ``values`` has one value per input, in order.
    """
    graph = model.graph
    changed: dict[LayerId, Node] = {}
    for node, value in zip(graph.parameters, values, strict=True):
        if not isinstance(value, (np.ndarray, np.generic)):
            continue
        port = node.outputs[0]
        shape = PartialShape.of(value.shape)
        complete = replace(
            port,
            element_type=port.element_type or ElementType.of(np.asarray(value)),
            shape=port.shape
            if port.shape.dimensions is not None and port.shape.contains(value.shape)
            else shape,
        )
        if complete != port:
            changed[node.id] = parameter(
                node.id, node.name, complete, is_onnx=model.dialect == "onnx"
            )
    written = tuple(changed.get(node.id, node) for node in graph.nodes)
    return replace(model, graph=replace(graph, nodes=written))


def _out_of_function(model: Model) -> Model:
    """Return the model of a part of an ONNX function, independent of the function.

    The function may import other opset versions than the model. Its nodes may refer to attributes
    of the call; the nodes of the Model have the values instead.
    """
    imported = dict(
        entry.rpartition(" ")[::2]
        for entry in str(model.meta_data.get("opset_import", "")).split(", ")
        if entry
    )
    needed = {
        domain: version
        for node in model.graph.nodes
        for domain, _, version in [node.opset.rpartition(" ")]
        if domain and version.isdecimal() and not node.is_function
    }
    versions = {**imported, **needed}
    model = with_every_node(model, lambda node: replace(node, source=0) if node.source else node)
    text = ", ".join(f"{domain} {version}" for domain, version in versions.items())
    return replace(
        model,
        meta_data={**model.meta_data, "opset_import": text},
        source=None if model.source is None else _with_opsets(model.source, versions),
    )


def _with_opsets(source: OnnxSource, versions: Mapping[str, str]) -> OnnxSource:
    """Return the ONNX file of a model with other opset imports."""
    from onnx import ModelProto  # imported here, because importing onnx takes long

    proto = ModelProto.FromString(source.outline)
    del proto.opset_import[:]
    for domain, version in versions.items():
        written = "" if domain == "ai.onnx" else domain
        proto.opset_import.add(domain=written, version=int(version))
    return replace(source, outline=proto.SerializeToString())
