"""What TensorFlow has for each operation: a rule per operation, from its inputs to nodes of a
GraphDef.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.write.tensorflow.asked_node import NodeRequest, Rule
from loopscope.write.tensorflow.movement_rules import MOVEMENTS
from loopscope.write.tensorflow.nodes import GraphDefTensor

I32, BOOLEAN = ElementType.I32, ElementType.BOOLEAN


def _same(operation: str, *, result: ElementType | None = None, typed: bool = True) -> Rule:
    """The same operation under another name: as many inputs, of one type that is also the
    output's, unless ``result`` is another.
    """

    def rule(asked: NodeRequest) -> Sequence[GraphDefTensor]:
        if asked.text("auto_broadcast", "numpy") not in ("numpy", "none"):
            raise WriteError(
                f"{asked.node.type} broadcasts as {asked.text('auto_broadcast')}, and TensorFlow as numpy"
            )
        attributes = {"T": asked.kind} if typed else {}
        return [
            asked.nodes.one(
                operation, asked.inputs, result or asked.kind, asked.node.name, **attributes
            )
        ]

    return rule


def _compared(operation: str) -> Rule:
    return _same(operation, result=BOOLEAN)


def _divide(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    if asked.kind.is_float:
        return _same("RealDiv")(asked)
    return _same("FloorDiv" if asked.is_true("m_pythondiv", True) else "TruncateDiv")(asked)


def _convert(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    return [
        asked.nodes.cast(
            asked.inputs[0], ElementType(asked.text("destination_type")), asked.node.name
        )
    ]


def _clamp(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    low, high = (
        asked.nodes.constant(np.array(float(asked.text(one)), asked.kind.dtype))
        for one in ("min", "max")
    )
    above = asked.nodes.one("Maximum", [asked.inputs[0], low], asked.kind, T=asked.kind)
    return [asked.nodes.one("Minimum", [above, high], asked.kind, asked.node.name, T=asked.kind)]


def _reduce(operation: str, *, typed: bool = True) -> Rule:
    def rule(asked: NodeRequest) -> Sequence[GraphDefTensor]:
        attributes = {"T": asked.kind} if typed else {}
        kept = asked.is_true("keep_dims")
        axes = asked.inputs[1].element_type
        return [
            asked.nodes.one(
                operation,
                asked.inputs,
                asked.kind,
                asked.node.name,
                Tidx=axes,
                keep_dims=kept,
                **attributes,
            )
        ]

    return rule


def _matmul(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    if any((one.shape.rank or 0) < 2 for one in asked.inputs):
        raise WriteError(
            "MatMul of a vector, or of a tensor whose rank is not known, is another operation in TensorFlow"
        )
    turned = {"adj_x": asked.is_true("transpose_a"), "adj_y": asked.is_true("transpose_b")}
    return [
        asked.nodes.one(
            "BatchMatMulV2", asked.inputs, asked.kind, asked.node.name, T=asked.kind, **turned
        )
    ]


def _select(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    kind = asked.inputs[1].element_type
    return [asked.nodes.one("SelectV2", asked.inputs, kind, asked.node.name, T=kind)]


def _softmax(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    if int(asked.text("axis", "1")) not in (-1, (asked.inputs[0].shape.rank or 0) - 1):
        raise WriteError("SoftMax along another axis than the last is none of TensorFlow's")
    return [asked.nodes.one("Softmax", asked.inputs, asked.kind, asked.node.name, T=asked.kind)]


def _cum_sum(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    flags = {"exclusive": asked.is_true("exclusive"), "reverse": asked.is_true("reverse")}
    axis = asked.nodes.scalar(asked.inputs[1])
    return [
        asked.nodes.one(
            "Cumsum",
            [asked.inputs[0], axis],
            asked.kind,
            asked.node.name,
            T=asked.kind,
            Tidx=axis.element_type,
            **flags,
        )
    ]


def _top_k(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    if asked.text("mode") != "max" or int(asked.text("axis")) not in (
        -1,
        (asked.inputs[0].shape.rank or 0) - 1,
    ):
        raise WriteError(
            "TopK of the smallest, or along another axis than the last, is none of TensorFlow's"
        )
    number = asked.nodes.scalar(asked.nodes.cast(asked.inputs[1], I32))
    kind = ElementType(asked.text("index_element_type", "i32"))
    attributes: dict[str, Any] = {
        "T": asked.kind,
        "Tk": I32,
        "index_type": kind,
        "sorted": asked.text("sort", "value") == "value",
    }
    if asked.text("sort", "value") == "index":
        raise WriteError("TopK in the order of the indices is none of TensorFlow's")
    return asked.nodes.add(
        "TopKV2", [asked.inputs[0], number], [asked.kind, kind], asked.node.name, **attributes
    )


def _rounded(operation: str) -> Rule:
    """Of whole numbers nothing is left to round."""

    def rule(asked: NodeRequest) -> Sequence[GraphDefTensor]:
        return _same(operation if asked.kind.is_float else "Identity")(asked)

    return rule


def _bitwise(whole: str, logical: str, *, typed: bool = False) -> Rule:
    """Of booleans it is the logical operation."""

    def rule(asked: NodeRequest) -> Sequence[GraphDefTensor]:
        return (_same(logical, typed=typed) if asked.kind is BOOLEAN else _same(whole))(asked)

    return rule


def _print(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    shown = list(asked.inputs[1:]) or [asked.inputs[0]]
    attributes = {
        "message": asked.text("message").encode(),
        "first_n": int(asked.text("first_n", "-1")),
    }
    attributes |= {
        "summarize": int(asked.text("summarize", "3")),
        "T": asked.kind,
        "U": [one.element_type for one in shown],
    }
    return [
        asked.nodes.one(
            "Print", [asked.inputs[0], *shown], asked.kind, asked.node.name, **attributes
        )
    ]


def _after(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    first, *others = asked.inputs
    return [
        asked.nodes.one(
            "Identity", [first], asked.kind, asked.node.name, waits_for=others, T=asked.kind
        )
    ]


_BINARY = {
    "Add": "AddV2",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Power": "Pow",
    "Mod": "TruncateMod",
    "FloorMod": "FloorMod",
}
_BINARY |= {name: name for name in ("Maximum", "Minimum", "SquaredDifference")}
_UNARY = {"Negative": "Neg", "Identity": "Identity", "ReLU": "Relu", "SoftPlus": "Softplus"}
_UNARY |= {
    name: name
    for name in (
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
    )
}
_UNARY |= {name: name for name in ("Asinh", "Acosh", "Atanh", "Erf", "Sign", "Sigmoid")}
_COMPARED = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
_LOGICAL = {"LogicalAnd": "LogicalAnd", "LogicalOr": "LogicalOr", "LogicalNot": "LogicalNot"}
_REDUCED = {
    "ReduceSum": "Sum",
    "ReduceMean": "Mean",
    "ReduceMax": "Max",
    "ReduceMin": "Min",
    "ReduceProd": "Prod",
}

RULES: Mapping[str, Rule] = {
    **MOVEMENTS,
    **{name: _same(operation) for name, operation in (_BINARY | _UNARY).items()},
    **{name: _compared(name) for name in _COMPARED},
    **{name: _same(operation, typed=False) for name, operation in _LOGICAL.items()},
    **{name: _reduce(operation) for name, operation in _REDUCED.items()},
    "After": _after,
    "BitwiseAnd": _bitwise("BitwiseAnd", "LogicalAnd"),
    "BitwiseNot": _bitwise("Invert", "LogicalNot"),
    "BitwiseOr": _bitwise("BitwiseOr", "LogicalOr"),
    "BitwiseXor": _bitwise("BitwiseXor", "NotEqual", typed=True),
    "Ceiling": _rounded("Ceil"),
    "Clamp": _clamp,
    "Convert": _convert,
    "CumSum": _cum_sum,
    "Divide": _divide,
    "Floor": _rounded("Floor"),
    "LogicalXor": _same("NotEqual"),
    "MatMul": _matmul,
    "Print": _print,
    "ReduceLogicalAnd": _reduce("All", typed=False),
    "ReduceLogicalOr": _reduce("Any", typed=False),
    "Select": _select,
    "SoftMax": _softmax,
    "TopK": _top_k,
}
"""By the type of a layer."""
