"""The nodes of a GraphDef or of one of its functions while they are written, and the tensors
between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.ir.graph_messages import DATA_TYPES, MESSAGES
from loopscope.ir.model import Port
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
"""What an operation calls its output, where that is not ``output``: functions refer to it so. Of
several names each is one output.
"""
_STATEFUL = frozenset({"Print", "While", "If"})


@dataclass(frozen=True, slots=True)
class GraphDefTensor:
    """What a node can take: how it is referred to, and what is known of it."""

    text: str
    element_type: ElementType
    shape: PartialShape = DYNAMIC

    @property
    def control(self) -> str:
        """For a node that only waits for it."""
        return f"^{self.text.partition(':')[0]}"


@dataclass(frozen=True, slots=True)
class Function:
    """The name of a function, as the value of an attribute."""

    name: str


@dataclass(slots=True)
class GraphDefNodes:
    """Nodes that are added one by one, under names of their own."""

    target: Any
    """The repeated field of NodeDefs."""
    library: Any
    """The repeated field of FunctionDefs, of the whole graph."""
    inside: bool = False
    """Whether this is a function, where outputs are referred to by name."""
    taken: set[str] = field(default_factory=set[str])
    stateful: bool = False

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
        """A node; a tensor for each of its outputs, of these types."""
        node = self.target.add(name=self.free(name or operation), op=operation)
        node.input.extend([*(one.text for one in inputs), *(one.control for one in waits_for)])
        for key, value in attributes.items():
            node.attr[key].CopyFrom(attribute(value))
        self.stateful |= operation in _STATEFUL
        called = _OUTPUTS.get(operation, "output").split()
        return [
            GraphDefTensor(f"{node.name}:{_output(called, at) if self.inside else at}", kind)
            for at, kind in enumerate(outputs)
        ]

    def one(
        self,
        operation: str,
        inputs: Sequence[GraphDefTensor],
        kind: ElementType,
        /,
        name: str = "",
        **attributes: Any,
    ) -> GraphDefTensor:
        """A node with one output."""
        return self.add(operation, inputs, [kind], name, **attributes)[0]

    def constant(self, array: np.ndarray | np.generic, name: str = "") -> GraphDefTensor:
        made = np.asarray(array)
        kind = ElementType.of(made)
        return replace(
            self.one("Const", [], kind, name, dtype=kind, value=made),
            shape=PartialShape.of(made.shape),
        )

    def numbers(self, *values: int) -> GraphDefTensor:
        """A vector of i64."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, tensor: GraphDefTensor) -> GraphDefTensor:
        """A tensor of one element without axes."""
        return tensor if tensor.shape.rank == 0 else self.reshaped(tensor, [])

    def reshaped(self, tensor: GraphDefTensor, lengths: Sequence[int]) -> GraphDefTensor:
        wanted = self.numbers(*lengths)
        made = self.one(
            "Reshape",
            [tensor, wanted],
            tensor.element_type,
            T=tensor.element_type,
            Tshape=ElementType.I64,
        )
        return replace(made, shape=PartialShape.of(lengths))

    def cast(self, tensor: GraphDefTensor, kind: ElementType, name: str = "") -> GraphDefTensor:
        if tensor.element_type is kind and not name:
            return tensor
        return replace(
            self.one("Cast", [tensor], kind, name, SrcT=tensor.element_type, DstT=kind),
            shape=tensor.shape,
        )

    def free(self, wanted: str) -> str:
        """A name that TensorFlow takes and that no other node has."""
        plain = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", wanted)
        base = plain if re.match(r"[A-Za-z0-9.]", plain) else f"n{plain}"
        name, number = base, 0
        while name.lower() in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name.lower())
        return name

    def function(self, wanted: str) -> tuple[Any, GraphDefNodes]:
        """A new function of the graph, and its nodes."""
        names = {one.signature.name for one in self.library}
        base = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
        name, number = base, 0
        while name in names:
            number += 1
            name = f"{base}_{number}"
        made = self.library.add()
        made.signature.name = name
        return made, GraphDefNodes(made.node_def, self.library, inside=True)


def _output(called: Sequence[str], at: int) -> str:
    """How a function refers to an output: one of several, or a part of the only one, which is a
    list.
    """
    return f"{called[at]}:0" if len(called) > 1 else f"{called[0]}:{at}"


def of_port(tensor: GraphDefTensor, port: Port) -> GraphDefTensor:
    """With what a port declares of it."""
    return replace(tensor, element_type=port.element_type or tensor.element_type, shape=port.shape)


def data_type(kind: ElementType | None) -> int:
    """TensorFlow's number of an element type; ``WriteError`` for one that it has not, or that is
    not known.
    """
    if kind not in _TYPES:
        raise WriteError(
            f"there is no type of TensorFlow's for {kind or 'an element type that the model does not say'}"
        )
    return DATA_TYPES[f"DT_{_TYPES[kind]}"]


def attribute(value: Any) -> Any:
    """The AttrValue of a type, number, boolean, bytes, tensor, shape, function, or a list of
    types, shapes or numbers.
    """
    made = MESSAGES["AttrValue"]()
    match value:
        case bool():
            made.b = value
        case int():
            made.i = value
        case float():
            made.f = value
        case bytes():
            made.s = value
        case ElementType():
            made.type = data_type(value)
        case Function():
            made.func.name = value.name
        case PartialShape():
            _set_shape(made.shape, value)
        case np.ndarray():
            _set_tensor(made.tensor, value)
        case _:
            made.list.SetInParent()
            for one in value:
                _append(made.list, one)
    return made


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
    for one in shape.dimensions or ():
        target.dim.add(size=one.length if one.is_static else -1)


def _set_tensor(target: Any, array: np.ndarray) -> None:
    target.dtype = data_type(ElementType.of(array))
    target.tensor_shape.SetInParent()
    for length in array.shape:
        target.tensor_shape.dim.add(size=length)
    target.tensor_content = np.ascontiguousarray(array).tobytes()
