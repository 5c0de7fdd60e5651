"""The nodes of a GraphDef under construction, and the request that a translation rule receives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.ir.graph_messages import DATA_TYPES, MESSAGES
from loopscope.ir.model import Node, Port
from loopscope.ir.shape import DYNAMIC, PartialShape

_TYPES = {
    ElementType.F32: "FLOAT",
    ElementType.F64: "DOUBLE",
    ElementType.F16: "HALF",
    ElementType.BF16: "BFLOAT16",
    ElementType.BOOLEAN: "BOOL",
    **{ElementType(f"i{bits}"): f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{ElementType(f"u{bits}"): f"UINT{bits}" for bits in (8, 16, 32, 64)},
}
_OUTPUTS = {
    **dict.fromkeys(
        (
            "AddV2",
            "Sub",
            "Mul",
            "RealDiv",
            "FloorDiv",
            "FloorMod",
            "TruncateMod",
            "TruncateDiv",
            "Maximum",
            "Minimum",
            "Pow",
        ),
        "z",
    ),
    **dict.fromkeys(
        ("SquaredDifference", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"),
        "z",
    ),
    **dict.fromkeys(("LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr", "BitwiseXor"), "z"),
    **dict.fromkeys(
        (
            "Neg",
            "Abs",
            "Exp",
            "Log",
            "Sqrt",
            "Sin",
            "Cos",
            "Tan",
            "Asin",
            "Acos",
            "Atan",
            "Sinh",
            "Cosh",
            "Tanh",
        ),
        "y",
    ),
    **dict.fromkeys(
        (
            "Asinh",
            "Acosh",
            "Atanh",
            "Erf",
            "Floor",
            "Ceil",
            "Sign",
            "Sigmoid",
            "LogicalNot",
            "Invert",
            "Cast",
        ),
        "y",
    ),
    **dict.fromkeys(("IsNan", "IsInf", "IsFinite", "Transpose"), "y"),
    **dict.fromkeys(("Relu", "Softplus", "Elu"), "activations"),
    "Softmax": "softmax",
    "Cumsum": "out",
    "TopKV2": "values indices",
}
"""Output names that differ from ``output``, by operation; functions refer to outputs by name.

Several names mean several outputs.
"""
_STATEFUL = frozenset({"Print", "While", "If"})


@dataclass(frozen=True, slots=True)
class GraphDefTensor:
    """An input for a node: its reference, element type and shape."""

    text: str
    element_type: ElementType
    shape: PartialShape = DYNAMIC

    @property
    def control(self) -> str:
        """The reference of a control dependency on this tensor."""
        return f"^{self.text.partition(':')[0]}"


@dataclass(frozen=True, slots=True)
class Function:
    """The name of a function, as an attribute value."""

    name: str


@dataclass(slots=True)
class GraphDefNodes:
    """The nodes of a graph or function under construction, with unique names."""

    target: Any
    """The repeated field of NodeDefs."""
    library: Any
    """The repeated field of FunctionDefs of the whole graph."""
    is_function: bool = False
    """True for a function, whose nodes refer to outputs by name."""
    used_names: set[str] = field(default_factory=set[str])
    """Names of the nodes in lower case: TensorFlow's Python API does not distinguish case."""
    stateful: bool = False
    """True if a node has a side effect."""

    def add(
        self,
        operation: str,
        inputs: Sequence[GraphDefTensor],
        outputs: Sequence[ElementType],
        /,
        name: str = "",
        *,
        waits_for: Iterable[GraphDefTensor] = (),
        **attributes: Any,
    ) -> list[GraphDefTensor]:
        """Add a node, and return a tensor of the given type for each output.

        ``waits_for`` are control dependencies, and ``attributes`` are the node's.
        """
        node = self.target.add(name=self.unique_name(name or operation), op=operation)
        node.input.extend(
            [*(tensor.text for tensor in inputs), *(tensor.control for tensor in waits_for)]
        )
        for key, value in attributes.items():
            node.attr[key].CopyFrom(attribute(value))
        self.stateful |= operation in _STATEFUL
        output_names = _OUTPUTS.get(operation, "output").split()
        references = (
            _output_reference(output_names, index) if self.is_function else index
            for index in range(len(outputs))
        )
        return [
            GraphDefTensor(f"{node.name}:{reference}", kind)
            for reference, kind in zip(references, outputs, strict=True)
        ]

    def add_one(
        self,
        operation: str,
        inputs: Sequence[GraphDefTensor],
        kind: ElementType,
        /,
        name: str = "",
        **attributes: Any,
    ) -> GraphDefTensor:
        """Add a node with one output."""
        return self.add(operation, inputs, [kind], name, **attributes)[0]

    def constant(self, array: np.ndarray | np.generic, name: str = "") -> GraphDefTensor:
        value = np.asarray(array)
        kind = ElementType.of(value)
        return replace(
            self.add_one("Const", [], kind, name, dtype=kind, value=value),
            shape=PartialShape.of(value.shape),
        )

    def numbers(self, *values: int) -> GraphDefTensor:
        """Add a constant vector of i64."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, tensor: GraphDefTensor) -> GraphDefTensor:
        """Return a tensor of one element without axes."""
        return tensor if tensor.shape.rank == 0 else self.reshape_to(tensor, [])

    def reshape_to(self, tensor: GraphDefTensor, lengths: Sequence[int]) -> GraphDefTensor:
        shape = self.numbers(*lengths)
        result = self.add_one(
            "Reshape",
            [tensor, shape],
            tensor.element_type,
            T=tensor.element_type,
            Tshape=ElementType.I64,
        )
        return replace(result, shape=PartialShape.of(lengths))

    def cast(self, tensor: GraphDefTensor, kind: ElementType, name: str = "") -> GraphDefTensor:
        if tensor.element_type is kind and not name:
            return tensor
        return replace(
            self.add_one("Cast", [tensor], kind, name, SrcT=tensor.element_type, DstT=kind),
            shape=tensor.shape,
        )

    def unique_name(self, hint: str) -> str:
        """Return a name that TensorFlow accepts and no other node has."""
        valid = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", hint)
        base = valid if re.match(r"[A-Za-z0-9.]", valid) else f"n{valid}"
        candidate, number = base, 0
        while candidate.lower() in self.used_names:
            number += 1
            candidate = f"{base}_{number}"
        self.used_names.add(candidate.lower())
        return candidate

    def add_function(self, hint: str) -> tuple[Any, GraphDefNodes]:
        """Add a function to the graph, and return it with its nodes. ``hint`` is the base of its
        name.
        """
        names = {entry.signature.name for entry in self.library}
        base = re.sub(r"[^A-Za-z0-9_]", "_", hint)
        name, number = base, 0
        while name in names:
            number += 1
            name = f"{base}_{number}"
        definition = self.library.add()
        definition.signature.name = name
        return definition, GraphDefNodes(definition.node_def, self.library, is_function=True)


def _output_reference(names: Sequence[str], index: int) -> str:
    """Return the reference of an output inside a function.

    It is one of several named outputs, or an element of the only output, which is a list.
    """
    return f"{names[index]}:0" if len(names) > 1 else f"{names[0]}:{index}"


def with_port(tensor: GraphDefTensor, port: Port) -> GraphDefTensor:
    """Return the tensor with the element type and shape that a port declares."""
    return replace(tensor, element_type=port.element_type or tensor.element_type, shape=port.shape)


def data_type(kind: ElementType | None) -> int:
    """Return TensorFlow's number of an element type.

    ``WriteError`` for an unsupported or unknown type.
    """
    if kind not in _TYPES:
        raise WriteError(
            "an element type is not known, and TensorFlow needs it"
            if kind is None
            else f"TensorFlow does not have {kind}"
        )
    return DATA_TYPES[f"DT_{_TYPES[kind]}"]


def attribute(value: Any) -> Any:
    """Return the AttrValue of a value.

    The value is a type, number, boolean, bytes, tensor, shape, function, or a list of types, shapes
    or numbers.
    """
    message = MESSAGES["AttrValue"]()
    match value:
        case bool():
            message.b = value
        case int():
            message.i = value
        case float():
            message.f = value
        case bytes():
            message.s = value
        case ElementType():
            message.type = data_type(value)
        case Function():
            message.func.name = value.name
        case PartialShape():
            _set_shape(message.shape, value)
        case np.ndarray():
            _set_tensor(message.tensor, value)
        case _:
            message.list.SetInParent()
            for item in value:
                _append(message.list, item)
    return message


def _append(target: Any, value: Any) -> None:
    match value:
        case ElementType():
            target.type.append(data_type(value))
        case PartialShape():
            _set_shape(target.shape.add(), value)
        case _:
            target.i.append(int(value))


def _set_shape(target: Any, shape: PartialShape) -> None:
    target.SetInParent()
    if shape.dimensions is None:
        target.unknown_rank = True
    for dimension in shape.dimensions or ():
        target.dim.add(size=dimension.length if dimension.is_static else -1)


def _set_tensor(target: Any, array: np.ndarray) -> None:
    target.dtype = data_type(ElementType.of(array))
    target.tensor_shape.SetInParent()
    for length in array.shape:
        target.tensor_shape.dim.add(size=length)
    target.tensor_content = np.ascontiguousarray(array).tobytes()


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A node to translate, its target graph, its inputs, and their values where constant."""

    nodes: GraphDefNodes
    node: Node
    inputs: Sequence[GraphDefTensor]
    constants: Sequence[np.ndarray | None]

    def text(self, name: str, default: str = "") -> str:
        return str(self.node.attributes.get(name, default))

    def is_true(self, name: str, default: bool = False) -> bool:
        return self.text(name, str(default)).lower() in ("true", "1")

    def numbers(self, name: str) -> list[int]:
        return [int(text) for text in self.text(name).split(",") if text.strip()]

    def constant(self, index: int) -> np.ndarray:
        """Return the value of an input; ``WriteError`` if it is not constant."""
        value = self.constants[index] if index < len(self.constants) else None
        if value is None:
            raise WriteError(
                f"input {index} of {self.node.type} is computed, "
                "but it is an attribute in TensorFlow"
            )
        return value

    def axis(self, index: int) -> int:
        """Return the value of an input that is a single integer."""
        return int(self.constant(index).reshape(-1)[0])

    @property
    def kind(self) -> ElementType:
        return self.inputs[0].element_type


Rule = Callable[[NodeRequest], Sequence[GraphDefTensor]]
