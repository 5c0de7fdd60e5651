"""Translation rules from operations to nodes of a GraphDef."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.write.tensorflow.movement_rules import MOVEMENTS
from loopscope.write.tensorflow.nodes import GraphDefTensor, NodeRequest, Rule

I32, BOOLEAN = ElementType.I32, ElementType.BOOLEAN


def _direct(operation: str, *, result: ElementType | None = None, typed: bool = True) -> Rule:
    """Return a rule for an operation with the same inputs under another name.

    The inputs have one type, which is also the output type unless ``result`` is given.
    """

    def rule(request: NodeRequest) -> Sequence[GraphDefTensor]:
        if request.text("auto_broadcast", "numpy") not in ("numpy", "none"):
            raise WriteError(
                f"{request.node.type} broadcasts as {request.text('auto_broadcast')}, "
                "but TensorFlow as numpy"
            )
        attributes = {"T": request.kind} if typed else {}
        return [
            request.nodes.add_one(
                operation, request.inputs, result or request.kind, request.node.name, **attributes
            )
        ]

    return rule


def _comparison(operation: str) -> Rule:
    return _direct(operation, result=BOOLEAN)


def _divide(request: NodeRequest) -> Sequence[GraphDefTensor]:
    if request.kind.is_float:
        return _direct("RealDiv")(request)
    return _direct("FloorDiv" if request.is_true("m_pythondiv", True) else "TruncateDiv")(request)


def _convert(request: NodeRequest) -> Sequence[GraphDefTensor]:
    return [
        request.nodes.cast(
            request.inputs[0], ElementType(request.text("destination_type")), request.node.name
        )
    ]


def _clamp(request: NodeRequest) -> Sequence[GraphDefTensor]:
    low, high = (
        request.nodes.constant(np.array(float(request.text(name)), request.kind.dtype))
        for name in ("min", "max")
    )
    bounded = request.nodes.add_one(
        "Maximum", [request.inputs[0], low], request.kind, T=request.kind
    )
    return [
        request.nodes.add_one(
            "Minimum", [bounded, high], request.kind, request.node.name, T=request.kind
        )
    ]


def _reduce(operation: str, *, typed: bool = True) -> Rule:
    def rule(request: NodeRequest) -> Sequence[GraphDefTensor]:
        attributes = {"T": request.kind} if typed else {}
        keep_dims = request.is_true("keep_dims")
        axes = request.inputs[1].element_type
        return [
            request.nodes.add_one(
                operation,
                request.inputs,
                request.kind,
                request.node.name,
                Tidx=axes,
                keep_dims=keep_dims,
                **attributes,
            )
        ]

    return rule


def _matmul(request: NodeRequest) -> Sequence[GraphDefTensor]:
    if any((tensor.shape.rank or 0) < 2 for tensor in request.inputs):
        raise WriteError(
            "MatMul of a vector, or of a tensor whose rank is not known, "
            "is another operation in TensorFlow"
        )
    transpositions = {
        "adj_x": request.is_true("transpose_a"),
        "adj_y": request.is_true("transpose_b"),
    }
    return [
        request.nodes.add_one(
            "BatchMatMulV2",
            request.inputs,
            request.kind,
            request.node.name,
            T=request.kind,
            **transpositions,
        )
    ]


def _select(request: NodeRequest) -> Sequence[GraphDefTensor]:
    kind = request.inputs[1].element_type
    return [request.nodes.add_one("SelectV2", request.inputs, kind, request.node.name, T=kind)]


def _softmax(request: NodeRequest) -> Sequence[GraphDefTensor]:
    if int(request.text("axis", "1")) not in (-1, (request.inputs[0].shape.rank or 0) - 1):
        raise WriteError("TensorFlow has SoftMax along the last axis only")
    return [
        request.nodes.add_one(
            "Softmax", request.inputs, request.kind, request.node.name, T=request.kind
        )
    ]


def _cum_sum(request: NodeRequest) -> Sequence[GraphDefTensor]:
    flags = {"exclusive": request.is_true("exclusive"), "reverse": request.is_true("reverse")}
    axis = request.nodes.scalar(request.inputs[1])
    return [
        request.nodes.add_one(
            "Cumsum",
            [request.inputs[0], axis],
            request.kind,
            request.node.name,
            T=request.kind,
            Tidx=axis.element_type,
            **flags,
        )
    ]


def _top_k(request: NodeRequest) -> Sequence[GraphDefTensor]:
    if request.text("mode") != "max" or int(request.text("axis")) not in (
        -1,
        (request.inputs[0].shape.rank or 0) - 1,
    ):
        raise WriteError("TensorFlow has TopK of the largest elements along the last axis only")
    number = request.nodes.scalar(request.nodes.cast(request.inputs[1], I32))
    kind = ElementType(request.text("index_element_type", "i32"))
    attributes: dict[str, Any] = {
        "T": request.kind,
        "Tk": I32,
        "index_type": kind,
        "sorted": request.text("sort", "value") == "value",
    }
    if request.text("sort", "value") == "index":
        raise WriteError("TensorFlow does not have TopK in the order of the indices")
    return request.nodes.add(
        "TopKV2", [request.inputs[0], number], [request.kind, kind], request.node.name, **attributes
    )


def _rounding(operation: str) -> Rule:
    """Return a rule that rounds floats and passes integers through."""

    def rule(request: NodeRequest) -> Sequence[GraphDefTensor]:
        return _direct(operation if request.kind.is_float else "Identity")(request)

    return rule


def _bitwise(whole: str, logical: str, *, typed: bool = False) -> Rule:
    """Return a rule of the bitwise operation for integers and the logical one for booleans."""

    def rule(request: NodeRequest) -> Sequence[GraphDefTensor]:
        return (_direct(logical, typed=typed) if request.kind is BOOLEAN else _direct(whole))(
            request
        )

    return rule


def _print(request: NodeRequest) -> Sequence[GraphDefTensor]:
    printed = list(request.inputs[1:]) or [request.inputs[0]]
    attributes = {
        "message": request.text("message").encode(),
        "first_n": int(request.text("first_n", "-1")),
    }
    attributes |= {
        "summarize": int(request.text("summarize", "3")),
        "T": request.kind,
        "U": [tensor.element_type for tensor in printed],
    }
    return [
        request.nodes.add_one(
            "Print", [request.inputs[0], *printed], request.kind, request.node.name, **attributes
        )
    ]


def _after(request: NodeRequest) -> Sequence[GraphDefTensor]:
    first, *others = request.inputs
    return [
        request.nodes.add_one(
            "Identity", [first], request.kind, request.node.name, waits_for=others, T=request.kind
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
_COMPARISONS = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
_LOGICAL = {"LogicalAnd": "LogicalAnd", "LogicalOr": "LogicalOr", "LogicalNot": "LogicalNot"}
_REDUCTIONS = {
    "ReduceSum": "Sum",
    "ReduceMean": "Mean",
    "ReduceMax": "Max",
    "ReduceMin": "Min",
    "ReduceProd": "Prod",
}

RULES: Mapping[str, Rule] = {
    **MOVEMENTS,
    **{name: _direct(operation) for name, operation in (_BINARY | _UNARY).items()},
    **{name: _comparison(name) for name in _COMPARISONS},
    **{name: _direct(operation, typed=False) for name, operation in _LOGICAL.items()},
    **{name: _reduce(operation) for name, operation in _REDUCTIONS.items()},
    "After": _after,
    "BitwiseAnd": _bitwise("BitwiseAnd", "LogicalAnd"),
    "BitwiseNot": _bitwise("Invert", "LogicalNot"),
    "BitwiseOr": _bitwise("BitwiseOr", "LogicalOr"),
    "BitwiseXor": _bitwise("BitwiseXor", "NotEqual", typed=True),
    "Ceiling": _rounding("Ceil"),
    "Clamp": _clamp,
    "Convert": _convert,
    "CumSum": _cum_sum,
    "Divide": _divide,
    "Floor": _rounding("Floor"),
    "LogicalXor": _direct("NotEqual"),
    "MatMul": _matmul,
    "Print": _print,
    "ReduceLogicalAnd": _reduce("All", typed=False),
    "ReduceLogicalOr": _reduce("Any", typed=False),
    "Select": _select,
    "SoftMax": _softmax,
    "TopK": _top_k,
}
"""Rules by layer type."""
