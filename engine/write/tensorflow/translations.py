"""What TensorFlow has for each operation: a rule per operation, from its inputs to nodes of a GraphDef."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import WriteError
from engine.ir.element_type import ElementType
from engine.ir.model import Node
from engine.write.tensorflow.nodes import Nodes, Tensor

I64, I32, BOOLEAN = ElementType.I64, ElementType.I32, ElementType.BOOLEAN


@dataclass(frozen=True, slots=True)
class Asked:
    """A node to be translated: where to, what it takes, and which of that is constant."""

    nodes: Nodes
    node: Node
    inputs: Sequence[Tensor]
    constants: Sequence[np.ndarray | None]

    def text(self, name: str, default: str = "") -> str:
        return str(self.node.attributes.get(name, default))

    def is_true(self, name: str, default: bool = False) -> bool:
        return self.text(name, str(default)).lower() in ("true", "1")

    def numbers(self, name: str) -> list[int]:
        return [int(one) for one in self.text(name).split(",") if one.strip()]

    def constant(self, at: int) -> np.ndarray:
        """The value of an input; ``WriteError`` where it is not constant."""
        value = self.constants[at] if at < len(self.constants) else None
        if value is None:
            raise WriteError(f"input {at} of {self.node.type} is computed, and TensorFlow has it as an attribute")
        return value

    def axis(self, at: int) -> int:
        """An input that is one whole number."""
        return int(self.constant(at).reshape(-1)[0])

    @property
    def kind(self) -> ElementType:
        return self.inputs[0].element_type


Rule = Callable[[Asked], Sequence[Tensor]]


def _same(operation: str, *, result: ElementType | None = None, typed: bool = True) -> Rule:
    """The same operation under another name: as many inputs, of one type that is also the output's, unless ``result`` is another."""

    def rule(asked: Asked) -> Sequence[Tensor]:
        if asked.text("auto_broadcast", "numpy") not in ("numpy", "none"):
            raise WriteError(f"{asked.node.type} broadcasts as {asked.text('auto_broadcast')}, and TensorFlow as numpy")
        attributes = {"T": asked.kind} if typed else {}
        return [asked.nodes.one(operation, asked.inputs, result or asked.kind, asked.node.name, **attributes)]

    return rule


def _compared(operation: str) -> Rule:
    return _same(operation, result=BOOLEAN)


def _divide(asked: Asked) -> Sequence[Tensor]:
    if asked.kind.is_float:
        return _same("RealDiv")(asked)
    return _same("FloorDiv" if asked.is_true("m_pythondiv", True) else "TruncateDiv")(asked)


def _convert(asked: Asked) -> Sequence[Tensor]:
    return [asked.nodes.cast(asked.inputs[0], ElementType(asked.text("destination_type")), asked.node.name)]


def _clamp(asked: Asked) -> Sequence[Tensor]:
    low, high = (asked.nodes.constant(np.array(float(asked.text(one)), asked.kind.dtype)) for one in ("min", "max"))
    above = asked.nodes.one("Maximum", [asked.inputs[0], low], asked.kind, T=asked.kind)
    return [asked.nodes.one("Minimum", [above, high], asked.kind, asked.node.name, T=asked.kind)]


def _reduce(operation: str, *, typed: bool = True) -> Rule:
    def rule(asked: Asked) -> Sequence[Tensor]:
        attributes = {"T": asked.kind} if typed else {}
        kept = asked.is_true("keep_dims")
        axes = asked.inputs[1].element_type
        return [asked.nodes.one(operation, asked.inputs, asked.kind, asked.node.name, Tidx=axes, keep_dims=kept, **attributes)]

    return rule


def _matmul(asked: Asked) -> Sequence[Tensor]:
    if any((one.shape.rank or 0) < 2 for one in asked.inputs):
        raise WriteError("MatMul of a vector, or of a tensor whose rank is not known, is another operation in TensorFlow")
    turned = {"adj_x": asked.is_true("transpose_a"), "adj_y": asked.is_true("transpose_b")}
    return [asked.nodes.one("BatchMatMulV2", asked.inputs, asked.kind, asked.node.name, T=asked.kind, **turned)]


def _reshape(asked: Asked) -> Sequence[Tensor]:
    if asked.is_true("special_zero") and 0 in asked.constant(1):
        raise WriteError("Reshape with a 0 that stands for the length that was there is none of TensorFlow's")
    attributes = {"T": asked.kind, "Tshape": asked.inputs[1].element_type}
    return [asked.nodes.one("Reshape", asked.inputs, asked.kind, asked.node.name, **attributes)]


def _unsqueeze(asked: Asked) -> Sequence[Tensor]:
    rank, axes = asked.inputs[0].shape.rank, [int(one) for one in asked.constant(1).reshape(-1)]
    if rank is None and len(axes) > 1 and min(axes) < 0:
        raise WriteError("Unsqueeze counts several axes from the end of a tensor whose rank is not known")
    whole = [axis + rank + len(axes) if axis < 0 and rank is not None else axis for axis in axes]
    found = asked.inputs[0]
    for axis in sorted(whole):
        found = asked.nodes.one("ExpandDims", [found, asked.nodes.constant(np.int64(axis))], asked.kind, T=asked.kind, Tdim=I64)
    return [asked.nodes.one("Identity", [found], asked.kind, asked.node.name, T=asked.kind)]


def _squeeze(asked: Asked) -> Sequence[Tensor]:
    axes = [int(one) for one in asked.constant(1).reshape(-1)] if len(asked.inputs) > 1 else []
    return [asked.nodes.one("Squeeze", asked.inputs[:1], asked.kind, asked.node.name, T=asked.kind, squeeze_dims=axes)]


def _transpose(asked: Asked) -> Sequence[Tensor]:
    kind = asked.inputs[1].element_type
    return [asked.nodes.one("Transpose", asked.inputs, asked.kind, asked.node.name, T=asked.kind, Tperm=kind)]


def _concat(asked: Asked) -> Sequence[Tensor]:
    return [joined(asked.nodes, asked.inputs, int(asked.text("axis")), asked.node.name)]


def joined(nodes: Nodes, parts: Sequence[Tensor], axis: int, name: str = "") -> Tensor:
    """Parts in a row along an axis."""
    kind = parts[0].element_type
    return nodes.one("ConcatV2", [*parts, nodes.constant(np.int64(axis))], kind, name, N=len(parts), T=kind, Tidx=I64)


def _gather(asked: Asked) -> Sequence[Tensor]:
    return [gathered(asked.nodes, *asked.inputs[:3], batch_dims=int(asked.text("batch_dims", "0")), name=asked.node.name)]


def gathered(nodes: Nodes, data: Tensor, indices: Tensor, axis: Tensor, *, batch_dims: int = 0, name: str = "") -> Tensor:
    """Parts of a tensor, by their numbers along an axis."""
    kinds = {"Tparams": data.element_type, "Tindices": indices.element_type, "Taxis": axis.element_type}
    return nodes.one("GatherV2", [data, indices, nodes.scalar(axis)], data.element_type, name, batch_dims=batch_dims, **kinds)


def _scatter_update(asked: Asked) -> Sequence[Tensor]:
    if asked.axis(3) != 0:
        raise WriteError("ScatterUpdate along another axis than the first is none of TensorFlow's")
    data, indices, updates = asked.inputs[:3]
    if indices.shape.is_static and np.prod(indices.shape.lengths) == 1:
        return [_with_one_row(asked, data, indices, updates)]
    last = asked.nodes.constant(np.int64(-1))
    rows = asked.nodes.one("ExpandDims", [indices, last], indices.element_type, T=indices.element_type, Tdim=I64)
    attributes = {"T": asked.kind, "Tindices": indices.element_type}
    return [asked.nodes.one("TensorScatterUpdate", [data, rows, updates], asked.kind, asked.node.name, **attributes)]


def _with_one_row(asked: Asked, data: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """What is before the row, the row, and what is after it: runtimes know that which do not know TensorScatterUpdate."""
    nodes = asked.nodes
    row = nodes.reshaped(nodes.cast(index, I64), [1])
    if index.shape.rank == 0:
        updates = nodes.one("ExpandDims", [updates, nodes.constant(np.int64(0))], asked.kind, T=asked.kind, Tdim=I64)
    zero, one = nodes.numbers(0), nodes.numbers(1)
    behind = nodes.one("AddV2", [row, one], I64, T=I64)
    attributes: dict[str, Any] = {"T": asked.kind, "Index": I64}
    before = nodes.one("StridedSlice", [data, zero, row, one], asked.kind, **attributes, begin_mask=1)
    after = nodes.one("StridedSlice", [data, behind, zero, one], asked.kind, **attributes, end_mask=1)
    return joined(nodes, [before, updates, after], 0, asked.node.name)


def _select(asked: Asked) -> Sequence[Tensor]:
    kind = asked.inputs[1].element_type
    return [asked.nodes.one("SelectV2", asked.inputs, kind, asked.node.name, T=kind)]


def _shape_of(asked: Asked) -> Sequence[Tensor]:
    return [shape_of(asked.nodes, asked.inputs[0], ElementType(asked.text("output_type", "i64")), asked.node.name)]


def shape_of(nodes: Nodes, tensor: Tensor, kind: ElementType = I64, name: str = "") -> Tensor:
    """The lengths of a tensor."""
    return nodes.one("Shape", [tensor], kind, name, T=tensor.element_type, out_type=kind)


def _strided_slice(asked: Asked) -> Sequence[Tensor]:
    inputs = list(asked.inputs)
    if len(inputs) < 4:
        inputs.append(asked.nodes.numbers(*[1] * len(asked.numbers("begin_mask"))))
    same = {one.element_type for one in inputs[1:]}
    inputs[1:] = inputs[1:] if len(same) == 1 else [asked.nodes.cast(one, I64) for one in inputs[1:]]
    masks = {f"{name}_mask": asked.numbers(f"{name}_mask") for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis")}
    bits = {name: sum((bit != 0) << at for at, bit in enumerate(mask)) for name, mask in masks.items()}
    attributes = {"T": asked.kind, "Index": inputs[1].element_type}
    return [asked.nodes.one("StridedSlice", inputs, asked.kind, asked.node.name, **attributes, **bits)]


def _range(asked: Asked) -> Sequence[Tensor]:
    kind = ElementType(asked.text("output_type", str(asked.kind)))
    bounds = [asked.nodes.scalar(asked.nodes.cast(one, kind)) for one in asked.inputs]
    return [asked.nodes.one("Range", bounds, kind, asked.node.name, Tidx=kind)]


def _broadcast(asked: Asked) -> Sequence[Tensor]:
    if asked.text("mode", "numpy") != "numpy":
        raise WriteError(f"Broadcast works as {asked.text('mode')}, and TensorFlow as numpy")
    lengths = asked.inputs[1]
    everywhere = asked.nodes.one(
        "Fill", [lengths, asked.nodes.constant(np.bool_(True))], BOOLEAN, T=BOOLEAN, index_type=lengths.element_type
    )
    # SelectV2 broadcasts what it chooses from; BroadcastTo has fewer runtimes.
    return [asked.nodes.one("SelectV2", [everywhere, asked.inputs[0], asked.inputs[0]], asked.kind, asked.node.name, T=asked.kind)]


def _tile(asked: Asked) -> Sequence[Tensor]:
    attributes = {"T": asked.kind, "Tmultiples": asked.inputs[1].element_type}
    return [asked.nodes.one("Tile", asked.inputs, asked.kind, asked.node.name, **attributes)]


def _split(asked: Asked) -> Sequence[Tensor]:
    parts = int(asked.text("num_splits"))
    axis = asked.nodes.constant(np.int32(asked.axis(1)))
    return asked.nodes.add("Split", [axis, asked.inputs[0]], [asked.kind] * parts, asked.node.name, T=asked.kind, num_split=parts)


def _softmax(asked: Asked) -> Sequence[Tensor]:
    if int(asked.text("axis", "1")) not in (-1, (asked.inputs[0].shape.rank or 0) - 1):
        raise WriteError("SoftMax along another axis than the last is none of TensorFlow's")
    return [asked.nodes.one("Softmax", asked.inputs, asked.kind, asked.node.name, T=asked.kind)]


def _cum_sum(asked: Asked) -> Sequence[Tensor]:
    flags = {"exclusive": asked.is_true("exclusive"), "reverse": asked.is_true("reverse")}
    axis = asked.nodes.scalar(asked.inputs[1])
    return [asked.nodes.one("Cumsum", [asked.inputs[0], axis], asked.kind, asked.node.name, T=asked.kind, Tidx=axis.element_type, **flags)]


def _print(asked: Asked) -> Sequence[Tensor]:
    shown = list(asked.inputs[1:]) or [asked.inputs[0]]
    attributes = {"message": asked.text("message").encode(), "first_n": int(asked.text("first_n", "-1"))}
    attributes |= {"summarize": int(asked.text("summarize", "3")), "T": asked.kind, "U": [one.element_type for one in shown]}
    return [asked.nodes.one("Print", [asked.inputs[0], *shown], asked.kind, asked.node.name, **attributes)]


def _after(asked: Asked) -> Sequence[Tensor]:
    first, *others = asked.inputs
    return [asked.nodes.one("Identity", [first], asked.kind, asked.node.name, waits_for=others, T=asked.kind)]


_BINARY = {"Add": "AddV2", "Subtract": "Sub", "Multiply": "Mul", "Power": "Pow", "Mod": "TruncateMod", "FloorMod": "FloorMod"}
_BINARY |= {name: name for name in ("Maximum", "Minimum", "SquaredDifference", "BitwiseAnd", "BitwiseOr", "BitwiseXor")}
_UNARY = {"Negative": "Neg", "Ceiling": "Ceil", "ReLU": "Relu", "SoftPlus": "Softplus", "BitwiseNot": "Invert"}
_UNARY |= {name: name for name in ("Abs", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh")}
_UNARY |= {name: name for name in ("Asinh", "Acosh", "Atanh", "Erf", "Floor", "Sign", "Sigmoid")}
_COMPARED = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
_LOGICAL = {"LogicalAnd": "LogicalAnd", "LogicalOr": "LogicalOr", "LogicalNot": "LogicalNot"}
_REDUCED = {"ReduceSum": "Sum", "ReduceMean": "Mean", "ReduceMax": "Max", "ReduceMin": "Min", "ReduceProd": "Prod"}

RULES: Mapping[str, Rule] = {
    **{name: _same(operation) for name, operation in (_BINARY | _UNARY).items()},
    **{name: _compared(name) for name in _COMPARED},
    **{name: _same(operation, typed=False) for name, operation in _LOGICAL.items()},
    **{name: _reduce(operation) for name, operation in _REDUCED.items()},
    "After": _after,
    "Broadcast": _broadcast,
    "Clamp": _clamp,
    "Concat": _concat,
    "Convert": _convert,
    "CumSum": _cum_sum,
    "Divide": _divide,
    "Gather": _gather,
    "LogicalXor": _same("NotEqual"),
    "MatMul": _matmul,
    "Print": _print,
    "Range": _range,
    "ReduceLogicalAnd": _reduce("All", typed=False),
    "ReduceLogicalOr": _reduce("Any", typed=False),
    "Reshape": _reshape,
    "ScatterUpdate": _scatter_update,
    "Select": _select,
    "ShapeOf": _shape_of,
    "SoftMax": _softmax,
    "Split": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""By the type of a layer."""
