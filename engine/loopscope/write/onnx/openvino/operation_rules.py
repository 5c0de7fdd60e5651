"""Rules for operations that compute."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import FLOATS, ElementType
from loopscope.write.onnx.openvino.translated_graph import BOOLEAN, I64, OnnxTensor, Request

Rule = Callable[[Request], Sequence[OnnxTensor]]


def _direct(operation: str, result: ElementType | None = None) -> Rule:
    """Return a rule for an operation with the same inputs under another name."""

    def rule(request: Request) -> Sequence[OnnxTensor]:
        if request.text("auto_broadcast", "numpy") not in ("numpy", "none"):
            raise request.refusal(f"it broadcasts as {request.text('auto_broadcast')}")
        return [request.add(operation, request.inputs, result or request.inputs[0].element_type)]

    return rule


def _bitwise(operation: str, logical: str) -> Rule:
    """Return a rule for a bitwise operation, which is a logical one for booleans."""

    def rule(request: Request) -> Sequence[OnnxTensor]:
        return _direct(logical if request.kind is BOOLEAN else operation)(request)

    return rule


def _not_equal(request: Request) -> Sequence[OnnxTensor]:
    return [request.add("Not", [request.add("Equal", request.inputs, BOOLEAN)], BOOLEAN)]


def _squared_difference(request: Request) -> Sequence[OnnxTensor]:
    difference = request.add("Sub", request.inputs, request.kind)
    return [request.add("Mul", [difference, difference], request.kind)]


def _opposite_signs(request: Request, remainder: OnnxTensor) -> OnnxTensor:
    """Return where a remainder is not zero and has another sign than the divisor."""
    zero = request.scalar(0, remainder)
    is_zero = request.add("Equal", [remainder, zero], BOOLEAN)
    signs = [
        request.add("Less", [tensor, zero], BOOLEAN) for tensor in (remainder, request.inputs[1])
    ]
    return request.add(
        "And",
        [request.add("Not", [is_zero], BOOLEAN), request.add("Xor", signs, BOOLEAN)],
        BOOLEAN,
    )


def _divide(request: Request) -> Sequence[OnnxTensor]:
    quotient = request.add("Div", request.inputs, request.kind)
    if (
        request.kind in FLOATS
        or not request.kind.is_signed
        or not request.is_true("m_pythondiv", default=True)
    ):
        return [quotient]
    # ONNX truncates, and OpenVINO rounds down.
    product = request.add("Mul", [quotient, request.inputs[1]], request.kind)
    remainder = request.add("Sub", [request.inputs[0], product], request.kind)
    below = request.cast(_opposite_signs(request, remainder), request.kind)
    return [request.add("Sub", [quotient, below], request.kind)]


def _truncated_mod(request: Request) -> Sequence[OnnxTensor]:
    return [request.add("Mod", request.inputs, request.kind, fmod=1)]


def _floor_mod(request: Request) -> Sequence[OnnxTensor]:
    if request.kind not in FLOATS:
        return [request.add("Mod", request.inputs, request.kind)]
    remainder = request.add("Mod", request.inputs, request.kind, fmod=1)
    moved = request.add("Add", [remainder, request.inputs[1]], request.kind)
    return [
        request.add("Where", [_opposite_signs(request, remainder), moved, remainder], request.kind)
    ]


def _convert(request: Request) -> Sequence[OnnxTensor]:
    return [request.cast(request.inputs[0], ElementType(request.text("destination_type")))]


def _clamp(request: Request) -> Sequence[OnnxTensor]:
    low, high = float(request.text("min")), float(request.text("max"))
    if request.kind not in FLOATS:
        low, high = math.ceil(low), math.floor(high)
    bounds = [request.scalar(bound, request.inputs[0]) for bound in (low, high)]
    return [request.add("Clip", [request.inputs[0], *bounds], request.kind)]


def _reduce(operation: str) -> Rule:
    def rule(request: Request) -> Sequence[OnnxTensor]:
        return [
            request.add(
                operation,
                [request.inputs[0], request.indices(1)],
                request.kind,
                keepdims=int(request.is_true("keep_dims")),
                noop_with_empty_axes=1,
            )
        ]

    return rule


def _reduce_logical(operation: str) -> Rule:
    def rule(request: Request) -> Sequence[OnnxTensor]:
        numbers = request.cast(request.inputs[0], ElementType.I32)
        reduced = request.add(
            operation,
            [numbers, request.indices(1)],
            ElementType.I32,
            keepdims=int(request.is_true("keep_dims")),
            noop_with_empty_axes=1,
        )
        # Reduced from no elements, the result is the smallest or largest number, not 0 or 1.
        zero = request.graph.constant(np.zeros((), np.int32))
        return [request.add("Greater", [reduced, zero], BOOLEAN)]

    return rule


def _matmul(request: Request) -> Sequence[OnnxTensor]:
    operands = []
    for index, flag in enumerate(("transpose_a", "transpose_b")):
        tensor = request.inputs[index]
        if request.is_true(flag) and request.rank(index) > 1:
            axes = list(range(request.rank(index)))
            axes[-2:] = axes[:-3:-1]
            tensor = request.add("Transpose", [tensor], request.kind, perm=tuple(axes))
        operands.append(tensor)
    return [request.add("MatMul", operands, request.kind)]


def _along_axis(operation: str, default: str) -> Rule:
    def rule(request: Request) -> Sequence[OnnxTensor]:
        axis = int(request.text("axis", default))
        return [request.add(operation, request.inputs, request.kind, axis=axis)]

    return rule


def _swish(request: Request) -> Sequence[OnnxTensor]:
    data = request.inputs[0]
    scaled = request.add("Mul", request.inputs, request.kind) if len(request.inputs) > 1 else data
    return [
        request.add("Mul", [data, request.add("Sigmoid", [scaled], request.kind)], request.kind)
    ]


def _gelu(request: Request) -> Sequence[OnnxTensor]:
    if request.text("approximation_mode", "erf") != "erf":
        raise request.refusal("only its exact form has an equivalent")
    data = request.inputs[0]
    scaled = request.add("Div", [data, request.scalar(math.sqrt(2), data)], request.kind)
    shifted = request.add(
        "Add",
        [request.add("Erf", [scaled], request.kind), request.scalar(1, data)],
        request.kind,
    )
    half = request.add("Mul", [data, request.scalar(0.5, data)], request.kind)
    return [request.add("Mul", [half, shifted], request.kind)]


def _to_whole(operation: str) -> Rule:
    """Return a rule for an operation that leaves integers as they are."""

    def rule(request: Request) -> Sequence[OnnxTensor]:
        kind = operation if request.kind in FLOATS else "Identity"
        return [request.add(kind, request.inputs, request.kind)]

    return rule


def _round(request: Request) -> Sequence[OnnxTensor]:
    if request.text("mode", "half_to_even") != "half_to_even":
        raise request.refusal("ONNX rounds halves to even numbers")
    return _to_whole("Round")(request)


def _elu(request: Request) -> Sequence[OnnxTensor]:
    return [
        request.add("Elu", request.inputs, request.kind, alpha=float(request.text("alpha", "1")))
    ]


def _cum_sum(request: Request) -> Sequence[OnnxTensor]:
    axis = (
        request.cast(request.inputs[1], I64)
        if len(request.inputs) > 1
        else request.graph.constant(np.array(0))
    )
    flags: dict[str, Any] = {name: int(request.is_true(name)) for name in ("exclusive", "reverse")}
    return [request.add("CumSum", [request.inputs[0], axis], request.kind, **flags)]


def _convolution(request: Request) -> Sequence[OnnxTensor]:
    if request.text("auto_pad", "explicit") not in ("", "explicit", "notset"):
        raise request.refusal("its padding is computed")
    return [
        request.add(
            "Conv",
            request.inputs,
            request.kind,
            strides=request.integers("strides"),
            dilations=request.integers("dilations"),
            pads=(*request.integers("pads_begin"), *request.integers("pads_end")),
        )
    ]


def _top_k(request: Request) -> Sequence[OnnxTensor]:
    if request.text("sort", "value") != "value":
        raise request.refusal(f"ONNX does not sort by {request.text('sort')}")
    shape = request.node.outputs[0].shape
    values, numbers = request.graph.add(
        "TopK",
        [request.inputs[0], request.indices(1)],
        request.node.name,
        ((request.kind, shape), (I64, shape)),
        axis=int(request.text("axis")),
        largest=int(request.text("mode", "max") == "max"),
        sorted=1,
    )
    return [values, request.cast(numbers, ElementType(request.text("index_element_type", "i32")))]


_SAME = {
    "Abs": "Abs", "Add": "Add", "Atan": "Atan",
    "Cos": "Cos", "Erf": "Erf", "Exp": "Exp",
    "HSwish": "HardSwish", "Log": "Log", "LogicalAnd": "And", "LogicalNot": "Not",
    "LogicalOr": "Or", "LogicalXor": "Xor", "Maximum": "Max", "Minimum": "Min",
    "Multiply": "Mul", "Negative": "Neg", "PReLU": "PRelu", "Power": "Pow", "ReLU": "Relu",
    "Relu": "Relu", "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin", "SoftPlus": "Softplus",
    "Sqrt": "Sqrt", "Subtract": "Sub", "Tan": "Tan", "Tanh": "Tanh",
}  # fmt: skip
_COMPARISONS = {
    "Equal": "Equal",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
}
COMPUTATIONS: Mapping[str, Rule] = {
    **{name: _direct(operation) for name, operation in _SAME.items()},
    **{name: _direct(operation, BOOLEAN) for name, operation in _COMPARISONS.items()},
    **{
        f"Reduce{name}": _reduce(f"Reduce{name}")
        for name in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")
    },
    **{f"Bitwise{name}": _bitwise(f"Bitwise{name}", name) for name in ("And", "Not", "Or", "Xor")},
    "Ceiling": _to_whole("Ceil"),
    "Clamp": _clamp,
    "Convert": _convert,
    "Convolution": _convolution,
    "CumSum": _cum_sum,
    "Divide": _divide,
    "Elu": _elu,
    "Floor": _to_whole("Floor"),
    "FloorMod": _floor_mod,
    "Gelu": _gelu,
    "LogSoftmax": _along_axis("LogSoftmax", "-1"),
    "MatMul": _matmul,
    "Mod": _truncated_mod,
    "NotEqual": _not_equal,
    "ReduceLogicalAnd": _reduce_logical("ReduceMin"),
    "ReduceLogicalOr": _reduce_logical("ReduceMax"),
    "Round": _round,
    "SoftMax": _along_axis("Softmax", "1"),
    "Softmax": _along_axis("Softmax", "1"),
    "SquaredDifference": _squared_difference,
    "Swish": _swish,
    "TopK": _top_k,
}
"""Rule of each operation that computes."""
