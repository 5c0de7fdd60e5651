"""Translation rules from TensorFlow Lite operators to OpenVINO operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.read.tflite.drafts import DraftValue
from loopscope.read.tflite.operator_nodes import NUMPY, Operator, declared
from loopscope.read.tflite.schema import element_type
from loopscope.read.tflite.window_rules import (
    average_pooling,
    convolution,
    depthwise_convolution,
    max_pooling,
)

_TO_END = np.int64(2**31 - 1)
Rule = Callable[[Operator], list[DraftValue]]


def _plain(operation: str, opset: str = "opset1", **attributes: str) -> Rule:
    return lambda operator: operator.give(operation, opset, operator.values, attributes)


def _fused(operation: str, **attributes: str) -> Rule:
    return lambda operator: operator.give(
        operation, "opset1", operator.values, {**NUMPY, **attributes}, operator.info.whole(0, "<b")
    )


def _reduction(operation: str) -> Rule:
    return lambda operator: operator.give(
        operation, "opset1", operator.values[:2], {"keep_dims": _text(operator.info.flag(0))}
    )


def _text(truth: bool) -> str:
    return str(truth).lower()


def _bits(number: int, rank: int) -> str:
    return ",".join(str(number >> index & 1) for index in range(rank))


def _floor_div(operator: Operator) -> list[DraftValue]:
    if operator.value(0).element_type in (ElementType.F32, ElementType.F16, ElementType.F64):
        return operator.give(
            "Floor",
            "opset1",
            (operator.add("Divide", "opset1", operator.values, {"m_pythondiv": "false", **NUMPY}),),
        )
    return operator.give("Divide", "opset1", operator.values, {"m_pythondiv": "true", **NUMPY})


def _rsqrt(operator: Operator) -> list[DraftValue]:
    root = operator.add("Sqrt", "opset1", operator.values[:1])
    return operator.give(
        "Divide", "opset1", (operator.constant(1, "f4"), root), {"m_pythondiv": "false", **NUMPY}
    )


def _square(operator: Operator) -> list[DraftValue]:
    return operator.give("Multiply", "opset1", (operator.value(0), operator.value(0)), NUMPY)


def _leaky_relu(operator: Operator) -> list[DraftValue]:
    return operator.give(
        "PRelu",
        "opset1",
        (operator.value(0), operator.constant([operator.info.option(0, "<f")], "f4")),
    )


def _gelu(operator: Operator) -> list[DraftValue]:
    return operator.give(
        "Gelu",
        "opset7",
        operator.values,
        {"approximation_mode": "TANH" if operator.info.flag(0) else "ERF"},
    )


def _softmax(operator: Operator) -> list[DraftValue]:
    value, beta = operator.value(0), operator.info.option(0, "<f")
    if beta not in (0, 1):
        value = operator.add("Multiply", "opset1", (value, operator.constant(beta, "f4")), NUMPY)
    return operator.give("Softmax", "opset8", (value,), {"axis": "-1"})


def _zeros_like(operator: Operator) -> list[DraftValue]:
    shape = operator.add("ShapeOf", "opset3", (operator.value(0),), {"output_type": "i64"})
    return operator.give(
        "Broadcast",
        "opset3",
        (operator.number_like(operator.value(0), 0), shape),
        {"mode": "numpy"},
    )


def _reshape(operator: Operator) -> list[DraftValue]:
    options = operator.info.options
    shape = (
        operator.stored(1)
        if operator.has(1)
        else operator.constant(options.array(0, "<i4", 64) if options else [])
    )
    return operator.give("Reshape", "opset1", (operator.value(0), shape), {"special_zero": "false"})


def _squeeze(operator: Operator) -> list[DraftValue]:
    axes = operator.info.options.array(0, "<i4", 64).tolist() if operator.info.options else []
    inputs = (operator.value(0), operator.constant(axes)) if axes else (operator.value(0),)
    return operator.give("Squeeze", "opset1", inputs)


def _shape_of(operator: Operator) -> list[DraftValue]:
    kind = element_type(operator.info.whole(0, "<b")) or ElementType.I32
    return operator.give(
        "ShapeOf",
        "opset3",
        (operator.stored(0),),
        {"output_type": str(kind if kind is ElementType.I64 else ElementType.I32)},
    )


def _rank(operator: Operator) -> list[DraftValue]:
    shape = operator.add("ShapeOf", "opset3", (operator.stored(0),), {"output_type": "i32"})
    rank = operator.add("ShapeOf", "opset3", (shape,), {"output_type": "i32"})
    return operator.give("Squeeze", "opset1", (rank, operator.constant([0])))


def _fill(operator: Operator) -> list[DraftValue]:
    return operator.give(
        "Broadcast", "opset3", (operator.value(1), operator.stored(0)), {"mode": "numpy"}
    )


def _concatenation(operator: Operator) -> list[DraftValue]:
    return operator.give(
        "Concat",
        "opset1",
        operator.values,
        {"axis": str(operator.info.whole(0))},
        operator.info.whole(1, "<b"),
    )


def _pack(operator: Operator) -> list[DraftValue]:
    axis = operator.info.whole(1)
    parts = [
        operator.add("Unsqueeze", "opset1", (value, operator.constant([axis])))
        for value in operator.values
    ]
    return operator.give("Concat", "opset1", parts, {"axis": str(axis)})


def _unpack(operator: Operator) -> list[DraftValue]:
    axis, count = operator.info.whole(1), len(operator.outputs)
    parts = operator.many(
        "Split",
        "opset1",
        (operator.value(0), operator.constant(axis)),
        {"num_splits": str(count)},
        count,
    )
    return [
        operator.draft.add(
            "Squeeze", "opset1", tensor.name, (part, operator.constant([axis])), (declared(tensor),)
        )[0]
        for part, tensor in zip(parts, operator.outputs, strict=True)
    ]


def _split(operator: Operator) -> list[DraftValue]:
    axis = operator.constant(operator.only_number(0))
    return operator.give(
        "Split", "opset1", (operator.value(1), axis), {"num_splits": str(len(operator.outputs))}
    )


def _split_v(operator: Operator) -> list[DraftValue]:
    axis = operator.constant(operator.only_number(2))
    return operator.give("VariadicSplit", "opset1", (operator.value(0), axis, operator.stored(1)))


def _slice(operator: Operator) -> list[DraftValue]:
    begin, size = operator.stored(1), operator.stored(2)
    end = operator.add("Add", "opset1", (begin, size), NUMPY)
    is_to_end = operator.add("Less", "opset1", (size, operator.number_like(size, 0)), NUMPY)
    stop = operator.add(
        "Select", "opset1", (is_to_end, operator.number_like(size, int(_TO_END)), end), NUMPY
    )
    step = operator.draft.constant(
        f"{operator.name}/constant",
        np.ones(operator.length_of(1), (size.element_type or ElementType.I32).dtype),
    )
    return operator.give("Slice", "opset8", (operator.value(0), begin, stop, step))


def _strided_slice(operator: Operator) -> list[DraftValue]:
    rank, info = operator.length_of(1), operator.info
    begin, end = operator.stored(1), operator.stored(2)
    if info.flag(5):
        end = operator.add("Add", "opset1", (begin, end), NUMPY)
    masks = {
        "begin_mask": _bits(info.whole(0), rank),
        "end_mask": _bits(info.whole(1), rank),
        "ellipsis_mask": _bits(info.whole(2), rank),
        "new_axis_mask": _bits(info.whole(3), rank),
        "shrink_axis_mask": _bits(info.whole(4), rank),
    }
    return operator.give(
        "StridedSlice", "opset1", (operator.value(0), begin, end, operator.stored(3)), masks
    )


def _gather(operator: Operator) -> list[DraftValue]:
    axis = operator.constant(operator.info.whole(0))
    return operator.give(
        "Gather",
        "opset8",
        (*operator.values[:2], axis),
        {"batch_dims": str(operator.info.whole(1))},
    )


def _embedding_lookup(operator: Operator) -> list[DraftValue]:
    return operator.give(
        "Gather",
        "opset8",
        (operator.value(1), operator.stored(0), operator.constant(0)),
        {"batch_dims": "0"},
    )


def _scatter_nd(operator: Operator) -> list[DraftValue]:
    indices, updates, shape = operator.stored(0), operator.value(1), operator.stored(2)
    zeros = operator.add(
        "Broadcast", "opset3", (operator.number_like(updates, 0), shape), {"mode": "numpy"}
    )
    return operator.give(
        "ScatterNDUpdate", "opset15", (zeros, indices, updates), {"reduction": "sum"}
    )


def _range(operator: Operator) -> list[DraftValue]:
    kind = operator.outputs[0].element_type or operator.value(0).element_type or ElementType.I32
    return operator.give("Range", "opset4", operator.values, {"output_type": str(kind)})


def _one_hot(operator: Operator) -> list[DraftValue]:
    return operator.give("OneHot", "opset1", operator.values, {"axis": str(operator.info.whole(0))})


def _select(operator: Operator) -> list[DraftValue]:
    ranks = [operator.tensor(index).shape.rank for index in (0, 1)]
    if operator.info.name == "SELECT" and ranks[0] == 1 and ranks[1] is not None and ranks[1] > 1:
        # A vector of conditions selects along the first axis.
        axes = operator.constant(list(range(1, ranks[1])))
        rows = operator.add("Unsqueeze", "opset1", (operator.stored(0), axes))
        return operator.give("Select", "opset1", (rows, *operator.values[1:]), NUMPY)
    return operator.give("Select", "opset1", operator.values, NUMPY)


def _where(operator: Operator) -> list[DraftValue]:
    coordinates = operator.add("NonZero", "opset3", (operator.value(0),), {"output_type": "i64"})
    return operator.give("Transpose", "opset1", (coordinates, operator.constant([1, 0])))


def _arg(operator: Operator, mode: str) -> list[DraftValue]:
    axis = operator.only_number(1)
    kind = operator.outputs[0].element_type or ElementType.I64
    attributes = {
        "axis": str(axis),
        "mode": mode,
        "sort": "value",
        "stable": "true",
        "index_element_type": str(kind),
    }
    _, places = operator.many(
        "TopK", "opset11", (operator.value(0), operator.constant(1)), attributes, 2
    )
    return operator.give("Squeeze", "opset1", (places, operator.constant([axis])))


def _top_k(operator: Operator) -> list[DraftValue]:
    attributes = {
        "axis": "-1",
        "mode": "max",
        "sort": "value",
        "stable": "true",
        "index_element_type": "i32",
    }
    return operator.give("TopK", "opset11", operator.values[:2], attributes)


def _cumsum(operator: Operator) -> list[DraftValue]:
    info = operator.info
    return operator.give(
        "CumSum",
        "opset3",
        operator.values,
        {"exclusive": _text(info.flag(0)), "reverse": _text(info.flag(1))},
    )


def _pad(operator: Operator, mode: str = "constant") -> list[DraftValue]:
    axis = operator.constant([1])
    halves = operator.many(
        "Split", "opset1", (operator.stored(1), operator.constant(1)), {"num_splits": "2"}, 2
    )
    begins, ends = (operator.add("Squeeze", "opset1", (half, axis)) for half in halves)
    if operator.info.name == "MIRROR_PAD":
        mode = "symmetric" if operator.info.whole(0, "<b") else "reflect"
    fill = (operator.value(2),) if operator.has(2) else ()
    return operator.give(
        "Pad", "opset1", (operator.value(0), begins, ends, *fill), {"pad_mode": mode}
    )


def _reverse(operator: Operator) -> list[DraftValue]:
    axes = operator.array(1)
    if axes is None:
        raise ValueError(
            f"{operator.info.name} {shorten(operator.name, 60)!r} has axes that are computed,"
            " expected a constant"
        )
    count = axes.size
    first, last, step = (
        operator.constant(np.full(count, number)) for number in (_TO_END, -_TO_END, -1)
    )
    return operator.give(
        "Slice", "opset8", (operator.value(0), first, last, step, operator.stored(1))
    )


def _reverse_sequence(operator: Operator) -> list[DraftValue]:
    axes = {"seq_axis": str(operator.info.whole(0)), "batch_axis": str(operator.info.whole(1))}
    return operator.give("ReverseSequence", "opset1", operator.values, axes)


def _batch_matmul(operator: Operator) -> list[DraftValue]:
    sides = {
        "transpose_a": _text(operator.info.flag(0)),
        "transpose_b": _text(operator.info.flag(1)),
    }
    return operator.give("MatMul", "opset1", operator.values[:2], sides)


def _fully_connected(operator: Operator) -> list[DraftValue]:
    info, value, weights = operator.info, operator.value(0), operator.value(1)
    if info.whole(1, "<b"):
        raise ValueError(
            f"FULLY_CONNECTED {shorten(operator.name, 60)!r} has shuffled weights,"
            " expected plain ones"
        )
    if not info.flag(2):
        shape = operator.tensor(1).shape
        length = shape.at(1).length if shape.rank == 2 and shape.at(1).is_static else None
        if length is None:
            raise ValueError(
                f"FULLY_CONNECTED {shorten(operator.name, 60)!r} has weights of unknown shape"
            )
        value = operator.add(
            "Reshape", "opset1", (value, operator.constant([-1, length])), {"special_zero": "false"}
        )
    sides = {"transpose_a": "false", "transpose_b": "true"}
    activation = info.whole(0, "<b")
    if not operator.has(2):
        return operator.give("MatMul", "opset1", (value, weights), sides, activation)
    product = operator.add("MatMul", "opset1", (value, weights), sides)
    return operator.give("Add", "opset1", (product, operator.value(2)), NUMPY, activation)


def _add_n(operator: Operator) -> list[DraftValue]:
    total = operator.value(0)
    if not operator.has(1):
        return operator.give_like(total)
    for value in operator.values[1:-1]:
        total = operator.add("Add", "opset1", (total, value), NUMPY)
    return operator.give("Add", "opset1", (total, operator.values[-1]), NUMPY)


def _dequantize(operator: Operator) -> list[DraftValue]:
    value, quantization = operator.stored(0), operator.tensor(0).quantization
    if quantization is None:
        return operator.give_like(value)
    return [operator.dequantized(value, quantization, operator.name)]


def _quantize(operator: Operator) -> list[DraftValue]:
    output = operator.outputs[0]
    if output.quantization is None:
        raise ValueError(f"QUANTIZE {shorten(operator.name, 60)!r} has an output without a scale")
    return [operator.quantized(operator.value(0), output, output.quantization)]


RULES: Mapping[str, Rule] = {
    "ADD": _fused("Add"),
    "SUB": _fused("Subtract"),
    "MUL": _fused("Multiply"),
    "DIV": _fused("Divide", m_pythondiv="false"),
    **{
        name: _plain(operation, **NUMPY)
        for name, operation in {
            "MAXIMUM": "Maximum",
            "MINIMUM": "Minimum",
            "POW": "Power",
            "FLOOR_MOD": "FloorMod",
            "SQUARED_DIFFERENCE": "SquaredDifference",
            "EQUAL": "Equal",
            "NOT_EQUAL": "NotEqual",
            "LESS": "Less",
            "LESS_EQUAL": "LessEqual",
            "GREATER": "Greater",
            "GREATER_EQUAL": "GreaterEqual",
            "LOGICAL_AND": "LogicalAnd",
            "LOGICAL_OR": "LogicalOr",
        }.items()
    },
    **{
        name: _plain(operation)
        for name, operation in {
            "ABS": "Abs",
            "NEG": "Negative",
            "EXP": "Exp",
            "LOG": "Log",
            "SQRT": "Sqrt",
            "SIN": "Sin",
            "COS": "Cos",
            "FLOOR": "Floor",
            "CEIL": "Ceiling",
            "LOGISTIC": "Sigmoid",
            "TANH": "Tanh",
            "RELU": "Relu",
            "LOGICAL_NOT": "LogicalNot",
            "SIGN": "Sign",
            "PRELU": "PRelu",
            "EXPAND_DIMS": "Unsqueeze",
            "TRANSPOSE": "Transpose",
            "TILE": "Tile",
        }.items()
    },
    **{
        name: _reduction(operation)
        for name, operation in {
            "SUM": "ReduceSum",
            "MEAN": "ReduceMean",
            "REDUCE_MAX": "ReduceMax",
            "REDUCE_MIN": "ReduceMin",
            "REDUCE_PROD": "ReduceProd",
            "REDUCE_ANY": "ReduceLogicalOr",
            "REDUCE_ALL": "ReduceLogicalAnd",
        }.items()
    },
    "BITWISE_XOR": _plain("BitwiseXor", "opset13", **NUMPY),
    "RIGHT_SHIFT": _plain("BitwiseRightShift", "opset15", **NUMPY),
    "ROUND": _plain("Round", "opset5", mode="half_to_even"),
    "RELU6": _plain("Clamp", min="0", max="6"),
    "RELU_N1_TO_1": _plain("Clamp", min="-1", max="1"),
    "RELU_0_TO_1": _plain("Clamp", min="0", max="1"),
    "ELU": _plain("Elu", alpha="1"),
    "HARD_SWISH": _plain("HSwish", "opset4"),
    "LOG_SOFTMAX": _plain("LogSoftmax", "opset5", axis="-1"),
    "BROADCAST_TO": _plain("Broadcast", "opset3", mode="numpy"),
    "GATHER_ND": _plain("GatherND", "opset8", batch_dims="0"),
    "FLOOR_DIV": _floor_div,
    "RSQRT": _rsqrt,
    "SQUARE": _square,
    "LEAKY_RELU": _leaky_relu,
    "GELU": _gelu,
    "SOFTMAX": _softmax,
    "ZEROS_LIKE": _zeros_like,
    "RESHAPE": _reshape,
    "SQUEEZE": _squeeze,
    "SHAPE": _shape_of,
    "RANK": _rank,
    "FILL": _fill,
    "CONCATENATION": _concatenation,
    "PACK": _pack,
    "UNPACK": _unpack,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "GATHER": _gather,
    "EMBEDDING_LOOKUP": _embedding_lookup,
    "SCATTER_ND": _scatter_nd,
    "CAST": lambda operator: operator.give_like(operator.value(0)),
    "RANGE": _range,
    "ONE_HOT": _one_hot,
    "SELECT": _select,
    "SELECT_V2": _select,
    "WHERE": _where,
    "ARG_MAX": partial(_arg, mode="max"),
    "ARG_MIN": partial(_arg, mode="min"),
    "TOPK_V2": _top_k,
    "CUMSUM": _cumsum,
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _pad,
    "REVERSE_V2": _reverse,
    "REVERSE_SEQUENCE": _reverse_sequence,
    "BATCH_MATMUL": _batch_matmul,
    "FULLY_CONNECTED": _fully_connected,
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise_convolution,
    "AVERAGE_POOL_2D": average_pooling,
    "MAX_POOL_2D": max_pooling,
    "ADD_N": _add_n,
    "DEQUANTIZE": _dequantize,
    "QUANTIZE": _quantize,
}
"""Translation rule of each operator by name."""
