"""An ONNX graph under construction, and the request that a translation rule receives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from loopscope.errors import WriteError, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Body, Edge, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.write.onnx.protos import NUMBERS

_VERSION = 18
OPSET = f"ai.onnx {_VERSION}"
I64 = ElementType.I64
BOOLEAN = ElementType.BOOLEAN


@dataclass(frozen=True, slots=True)
class OnnxTensor:
    """A tensor of the graph with its type and shape."""

    ref: OutputRef
    element_type: ElementType | None = None
    shape: PartialShape = DYNAMIC
    value: np.ndarray | None = None
    """Value of a constant."""


class TranslatedGraph:
    """Nodes of an ONNX graph, with unique names."""

    def __init__(self, used_names: set[str]) -> None:
        """``used_names`` are the names of the whole model; new names are added to the set."""
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self.used_names = used_names

    def unique(self, name: str) -> str:
        """Return the name, with a number if it is in use."""
        candidate, number = name or "tensor", 0
        while candidate in self.used_names:
            number += 1
            candidate = f"{name}_{number}"
        self.used_names.add(candidate)
        return candidate

    def parameter(
        self, name: str, element_type: ElementType | None, shape: PartialShape = DYNAMIC
    ) -> OnnxTensor:
        """Add an input of the graph."""
        return self._add_source(
            Node(
                self._next(),
                name,
                "Parameter",
                outputs=(Port(0, element_type, shape, (name,)),),
            )
        )

    def constant(self, array: np.ndarray, name: str = "constant") -> OnnxTensor:
        """Add an initializer."""
        constant = Constant.of(array)
        name = self.unique(name)
        shape = PartialShape.of(array.shape)
        port = Port(0, constant.element_type, shape, (name,))
        return self._add_source(
            Node(self._next(), name, "Const", outputs=(port,), constant=constant), array
        )

    def weight(self, constant: Constant, name: str) -> OnnxTensor:
        """Add an initializer whose data is not decoded unless it is small."""
        name = self.unique(name)
        shape = PartialShape.of(constant.shape)
        port = Port(0, constant.element_type, shape, (name,))
        value = constant.array() if constant.elements <= 64 and constant.is_kept else None
        return self._add_source(
            Node(self._next(), name, "Const", outputs=(port,), constant=constant), value
        )

    def add(
        self,
        operation: str,
        inputs: Sequence[OnnxTensor | None],
        name: str = "",
        outputs: Sequence[tuple[ElementType | None, PartialShape]] = ((None, DYNAMIC),),
        bodies: Sequence[Body] = (),
        **attributes: Any,
    ) -> list[OnnxTensor]:
        """Add an operation and return its outputs; None is an omitted input."""
        if not bodies:
            _expect_types(operation, inputs)
        layer = self._next()
        name = self.unique(name or operation.lower())
        names = [
            name if not index else self.unique(f"{name}_{index}") for index in range(len(outputs))
        ]
        ports = tuple(
            Port(index, element_type, shape, (names[index],))
            for index, (element_type, shape) in enumerate(outputs)
        )
        input_ports = []
        for index, tensor in enumerate(inputs):
            if tensor is None:
                input_ports.append(Port(index))
                continue
            source = self._nodes[tensor.ref.layer].outputs[tensor.ref.output]
            input_ports.append(Port(index, tensor.element_type, tensor.shape, source.names[:1]))
            self._edges.append(Edge(tensor.ref.layer, source.id, layer, index))
        self._nodes.append(
            Node(
                layer, name, operation, OPSET, attributes, tuple(input_ports), ports, tuple(bodies)
            )
        )
        return [
            OnnxTensor(OutputRef(layer, index), element_type, shape)
            for index, (element_type, shape) in enumerate(outputs)
        ]

    @property
    def count(self) -> int:
        """Number of nodes so far."""
        return len(self._nodes)

    def name_value(self, tensor: OnnxTensor, name: str, first: int) -> None:
        """Move a name to the node that computes a tensor, if a node from ``first`` on has it.

        A rule names the first node that it adds after the operation. If several nodes replace the
        operation, the last one computes its value, and the two exchange their names.
        """
        added = self._nodes[first:]
        holder = next((node for node in added if node.name == name and not node.constant), None)
        if holder is None or not first <= tensor.ref.layer or holder.id == tensor.ref.layer:
            return
        producer = self._nodes[tensor.ref.layer]
        names = {holder.name: producer.name, producer.name: holder.name}
        self._nodes[first:] = [
            replace(
                node,
                name=names.get(node.name, node.name),
                inputs=tuple(_renamed(port, names) for port in node.inputs),
                outputs=tuple(_renamed(port, names) for port in node.outputs),
            )
            for node in added
        ]

    def result(self, tensor: OnnxTensor, name: str, port: Port | None = None) -> LayerId:
        """Add an output of the graph, and return its layer."""
        layer = self._next()
        source = self._nodes[tensor.ref.layer].outputs[tensor.ref.output]
        declared = Port(
            0,
            tensor.element_type or (port.element_type if port else None),
            port.shape if port else tensor.shape,
            (name,),
        )
        self._nodes.append(Node(layer, name, "Result", inputs=(declared,)))
        self._edges.append(Edge(tensor.ref.layer, source.id, layer, 0))
        return layer

    def build(self, name: str) -> ModelGraph:
        return ModelGraph(tuple(self._nodes), tuple(self._edges), name)

    def _next(self) -> LayerId:
        return LayerId(len(self._nodes))

    def _add_source(self, node: Node, value: np.ndarray | None = None) -> OnnxTensor:
        self._nodes.append(node)
        port = node.outputs[0]
        return OnnxTensor(OutputRef(node.id, 0), port.element_type, port.shape, value)


def _renamed(port: Port, names: Mapping[str, str]) -> Port:
    return replace(port, names=tuple(names.get(name, name) for name in port.names))


@dataclass(frozen=True, slots=True)
class Request:
    """One OpenVINO node to translate."""

    graph: TranslatedGraph
    node: Node
    inputs: Sequence[OnnxTensor]

    @property
    def kind(self) -> ElementType:
        """The element type of the first input. ``WriteError`` if it is not known."""
        element_type = self.inputs[0].element_type
        if element_type is None:
            raise WriteError(
                f"the element type of the input of {shorten(self.node.name, 60)!r} is not known"
            )
        return element_type

    def text(self, name: str, default: str = "") -> str:
        return str(self.node.attributes.get(name, default)).strip().lower()

    def is_true(self, name: str, *, default: bool = False) -> bool:
        return self.text(name, str(default)) in ("true", "1")

    def integers(self, name: str) -> tuple[int, ...]:
        return tuple([int(word) for word in self.text(name).split(",") if word.strip()])

    def value(self, index: int) -> np.ndarray:
        """Return the value of a constant input. ``WriteError`` if it is computed."""
        value = self.inputs[index].value
        if value is None:
            raise self.refusal(f"its input {index} is computed, and ONNX expects a constant")
        return value

    def rank(self, index: int = 0) -> int:
        rank = self.inputs[index].shape.rank
        if rank is None:
            raise self.refusal(f"the rank of its input {index} is not known")
        return rank

    def refusal(self, reason: str) -> WriteError:
        name = f"{shorten(self.node.name, 60)!r} ({self.node.type})"
        return WriteError(f"{name} cannot be written as ONNX: {reason}")

    def add(
        self,
        operation: str,
        inputs: Sequence[OnnxTensor | None],
        element_type: ElementType | None = None,
        shape: PartialShape = DYNAMIC,
        **attributes: Any,
    ) -> OnnxTensor:
        """Add an operation with one output, and return the output."""
        (output,) = self.graph.add(
            operation, inputs, self.node.name, ((element_type, shape),), **attributes
        )
        return output

    def cast(self, tensor: OnnxTensor, element_type: ElementType) -> OnnxTensor:
        """Return the tensor in a type. Constants are converted to i64 without a Cast."""
        if tensor.element_type is element_type:
            return tensor
        if tensor.value is not None and element_type is I64:
            return self.graph.constant(tensor.value.astype(np.int64))
        if element_type not in NUMBERS:
            raise self.refusal(f"ONNX lacks the element type {element_type}")
        return self.add("Cast", [tensor], element_type, tensor.shape, to=NUMBERS[element_type])

    def indices(self, index: int) -> OnnxTensor:
        """Return an input as a vector of i64, which may be a scalar or of another type."""
        tensor = self.inputs[index]
        if tensor.value is not None:
            return self.graph.constant(tensor.value.astype(np.int64).reshape(-1))
        vector = self.graph.constant(np.array([-1]))
        flat = self.add("Reshape", [tensor, vector], tensor.element_type, PartialShape.unknown(1))
        return self.cast(flat, I64)

    def scalar(self, value: float, like: OnnxTensor) -> OnnxTensor:
        """Return a constant scalar of the type of a tensor."""
        element_type = like.element_type or self.kind
        return self.graph.constant(np.array(value, element_type.dtype))


def _expect_types(operation: str, inputs: Sequence[OnnxTensor | None]) -> None:
    """Raise ``WriteError`` if ONNX does not define an operation for the types of its inputs."""
    expected = onnx.defs.get_schema(operation, _VERSION).inputs
    for index, tensor in enumerate(inputs):
        allowed = expected[min(index, len(expected) - 1)].types
        if tensor is None or tensor.element_type is None:
            continue
        number = NUMBERS.get(tensor.element_type)
        name = "" if number is None else TensorProto.DataType.Name(number).lower()
        if f"tensor({name})" not in allowed:
            raise WriteError(
                f"the model cannot be written as ONNX: {operation} does not accept "
                f"{tensor.element_type}; convert the value to another type before it"
            )
