"""A graph under change: nodes are replaced, inserted and removed, and tensors redirected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import numpy as np

from loopscope.checks.order import order
from loopscope.ir.address import graphs
from loopscope.ir.constant import Constant
from loopscope.ir.model import (
    Body,
    Edge,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputRef,
    Port,
)
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape


class ModelNames:
    """The tensor names of a model, of which a moved node keeps those that are unique."""

    def __init__(self, model: Model) -> None:
        self.dialect = model.dialect
        self._uses = Counter(
            name
            for place in graphs(model)
            for node in place.graph.nodes
            for port in node.outputs
            for name in port.names
        )

    def moved(self, ports: Sequence[Port]) -> tuple[Port, ...]:
        """Return output ports with names that no other tensor of the model has.

        OpenVINO allows tensors without names, so that a repeated name is dropped there.
        """
        return tuple([replace(port, names=self._unique(port.names)) for port in ports])

    def copied(self, ports: Sequence[Port]) -> tuple[Port, ...]:
        """Return the ports of a copy, whose original remains."""
        for name in {name for port in ports for name in port.names}:
            self._uses[name] += 1
        return self.moved(ports)

    def _unique(self, names: Sequence[str]) -> tuple[str, ...]:
        if self.dialect == "openvino":
            return tuple([name for name in names if self._uses[name] <= 1])
        return tuple([name if self._uses[name] <= 1 else self.new(name) for name in names])

    def new(self, name: str) -> str:
        """Return a name that no tensor has."""
        candidate = next(text for number in count(1) if not self._uses[text := f"{name}_{number}"])
        self._uses[candidate] += 1
        return candidate


class EditableGraph:
    """A graph whose nodes and edges can be changed, until ``build``."""

    def __init__(self, graph: ModelGraph, names: ModelNames) -> None:
        self._graph, self.names = graph, names
        self.nodes: dict[LayerId, Node] = {node.id: node for node in graph.nodes}
        self.sources: dict[LayerId, list[OutputRef | None]] = {
            layer: list(sources) for layer, sources in graph.sources.items()
        }
        self._before: dict[LayerId, list[LayerId]] = {}
        self._ids = map(LayerId, count(max(self.nodes, default=-1) + 1))
        self._node_names = {node.name for node in graph.nodes}
        self._redirected: dict[OutputRef, OutputRef | None] = {}
        self.is_changed = False

    def put(self, node: Node) -> None:
        """Replace the node with this id; its inputs remain connected."""
        if self.nodes[node.id] is not node:
            self.is_changed = True
            self.nodes[node.id] = node
            del self.sources[node.id][len(node.inputs) :]

    def make_constant(self, layer: LayerId, array: np.ndarray) -> None:
        """Replace a node with one output by a constant of the same id and name."""
        node = self.nodes[layer]
        self.is_changed = True
        self.sources[layer] = []
        self.nodes[layer] = replace(
            constant_node(self.names.dialect, layer, node.name, array),
            outputs=(_constant_port(array, node.outputs[0].names),),
        )

    def insert_constant(self, before: LayerId, name: str, array: np.ndarray) -> OutputRef:
        """Insert a constant before a node; return its tensor."""
        layer = next(self._ids)
        node = constant_node(self.names.dialect, layer, self._unused(name), array)
        tensor_names = (self.names.new(name),) if self.names.dialect == "onnx" else ()
        return self._insert(
            before, replace(node, outputs=(_constant_port(array, tensor_names),)), []
        )

    def insert(
        self,
        before: LayerId,
        node: Node,
        sources: Iterable[OutputRef | None],
        *,
        is_copy: bool = False,
    ) -> OutputRef:
        """Insert a node with a new id and an unused name; return its first tensor."""
        outputs = self.names.copied(node.outputs) if is_copy else self.names.moved(node.outputs)
        moved = replace(node, id=next(self._ids), name=self._unused(node.name), outputs=outputs)
        return self._insert(before, moved, sources)

    def inline(
        self,
        before: LayerId,
        graph: ModelGraph,
        bound: Mapping[LayerId, OutputRef | None],
        *,
        is_copy: bool = False,
    ) -> dict[LayerId, OutputRef | None]:
        """Insert the nodes of a body whose Parameters receive ``bound``; return what its Results
        return.
        """
        layers: dict[LayerId, LayerId] = {}

        def resolve(source: OutputRef | None) -> OutputRef | None:
            if source is None:
                return None
            if source.layer in bound:
                return bound[source.layer]
            return OutputRef(layers[source.layer], source.output)

        results: dict[LayerId, OutputRef | None] = {}
        for node in map(graph.by_id.__getitem__, order(graph).layers):
            if node.type == "Parameter":
                continue
            sources = [resolve(source) for source in graph.sources[node.id]]
            if node.type == "Result":
                results[node.id] = sources[0] if sources else None
            else:
                layers[node.id] = self.insert(before, node, sources, is_copy=is_copy).layer
        return results

    def redirect(self, tensor: OutputRef, replacement: OutputRef | None) -> None:
        """Connect all readers of a tensor to another tensor."""
        self.is_changed = True
        self._redirected[tensor] = replacement

    def renumber_outputs(self, numbers: Mapping[OutputRef, OutputRef]) -> None:
        """Connect the readers of outputs to other outputs; both may be outputs of one node."""
        self.is_changed = True
        for layer, sources in self.sources.items():
            for index in range(len(sources)):
                source = self.source(layer, index)
                sources[index] = numbers.get(source, source) if source is not None else None
        # A new number may equal that of an output which was redirected before.
        self._redirected.clear()

    def remove(self, layer: LayerId) -> None:
        """Remove a node."""
        self.is_changed = True
        del self.nodes[layer], self.sources[layer]

    def source(self, layer: LayerId, index: int) -> OutputRef | None:
        """Return the tensor that feeds an input of a node, after all redirections."""
        sources = self.sources[layer]
        return self._resolved(sources[index]) if 0 <= index < len(sources) else None

    def keep_names(self, tensor: OutputRef) -> None:
        """Give the tensor names of an OpenVINO output to the Results that return it.

        The tensor's node is about to be replaced. An ONNX output has the name of its Result.
        """
        names = self.nodes[tensor.layer].outputs[tensor.output].names
        if self.names.dialect != "openvino" or not names:
            return
        for layer, node in self.nodes.items():
            if node.type == "Result" and self.source(layer, 0) == tensor:
                self.nodes[layer] = replace(
                    node, output_names=tuple(dict.fromkeys((*node.output_names, *names)))
                )
                return  # a tensor name belongs to one output

    def build(self) -> ModelGraph:
        """Return the graph; the graph itself if nothing was changed."""
        if not self.is_changed:
            return self._graph
        layers: list[LayerId] = []
        for node in self._graph.nodes:
            layers += self._before.get(node.id, [])
            layers.append(node.id)
        nodes = [self.nodes[layer] for layer in layers if layer in self.nodes]
        edges: list[Edge] = []
        finished: list[Node] = []
        for node in nodes:
            sources = [self._resolved(source) for source in self.sources[node.id]]
            finished.append(self._with_input_names(node, sources))
            for port, source in zip(node.inputs, sources, strict=False):
                if source is not None:
                    output = self.nodes[source.layer].outputs[source.output]
                    edges.append(Edge(source.layer, output.id, node.id, port.id))
        return replace(self._graph, nodes=tuple(finished), edges=tuple(edges))

    def _with_input_names(self, node: Node, sources: Sequence[OutputRef | None]) -> Node:
        """Return the node with the names of its input tensors, which connect the nodes in ONNX."""
        if self.names.dialect != "onnx" or node.type == "Result":
            return node
        inputs = []
        for port, source in zip(node.inputs, sources, strict=True):
            if source is not None:
                names = self.nodes[source.layer].outputs[source.output].names[:1]
                port = port if port.names == names else replace(port, names=names)
            inputs.append(port)
        return node if tuple(inputs) == node.inputs else replace(node, inputs=tuple(inputs))

    def _insert(
        self, before: LayerId, node: Node, sources: Iterable[OutputRef | None]
    ) -> OutputRef:
        self.is_changed = True
        self.nodes[node.id], self.sources[node.id] = node, list(sources)
        self._before.setdefault(before, []).append(node.id)
        return OutputRef(node.id, 0)

    def _resolved(self, source: OutputRef | None) -> OutputRef | None:
        while source is not None and source in self._redirected:
            source = self._redirected[source]
        return source

    def _unused(self, name: str) -> str:
        candidate, number = name, 0
        while candidate in self._node_names:
            number += 1
            candidate = f"{name}_{number}"
        self._node_names.add(candidate)
        return candidate


def constant_node(dialect: str, layer: LayerId, name: str, array: np.ndarray) -> Node:
    """Return a Const with the value of an array."""
    constant = Constant.of(array)
    port = _constant_port(array, ())
    if dialect == "onnx":
        return Node(layer, name, "Const", outputs=(port,), constant=constant)
    attributes = {
        "element_type": str(constant.element_type),
        "shape": ", ".join(map(str, constant.shape)),
    }
    return Node(layer, name, "Const", "opset1", attributes, (), (port,), constant=constant)


def _constant_port(array: np.ndarray, names: tuple[str, ...]) -> Port:
    constant_type = Constant.of(array[:0] if array.ndim else array).element_type
    return Port(0, constant_type, PartialShape.of(array.shape), names)


def with_body_graphs(node: Node, body_graphs: Mapping[str, ModelGraph]) -> Node:
    """Return the node with other graphs in its bodies, by body name."""
    if all(body_graphs[body.name] is body.graph for body in node.bodies):
        return node
    bodies: list[Body] = [replace(body, graph=body_graphs[body.name]) for body in node.bodies]
    return replace(node, bodies=tuple(bodies))
