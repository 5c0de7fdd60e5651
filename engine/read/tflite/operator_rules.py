"""The operators of TensorFlow Lite as operations of OpenVINO: a rule for each, where they differ by more than the name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from engine.errors import shorten
from engine.ir.element_type import ElementType
from engine.ir.shape import PartialShape
from engine.read.tflite.drafts import Declared, Draft, Value
from engine.read.tflite.schema import OperatorInfo, Quantization, TensorInfo, element_type

_NUMPY = {"auto_broadcast": "numpy"}
_ACTIVATIONS: Mapping[int, tuple[str, Mapping[str, str]]] = {
    1: ("Relu", {}),
    2: ("Clamp", {"min": "-1", "max": "1"}),
    3: ("Clamp", {"min": "0", "max": "6"}),
    4: ("Tanh", {}),
}
_TO_END = np.int64(2**31 - 1)


class Operator:
    """An operator that is being translated: its inputs as values, its outputs as tensors, and the graph that it goes into."""

    def __init__(
        self, draft: Draft, info: OperatorInfo, inputs: Sequence[Value | None], around: tuple[list[TensorInfo | None], list[TensorInfo]]
    ) -> None:
        self.draft = draft
        self.info = info
        self._tensors, self.outputs = around
        self._inputs = inputs
        self.name = self.outputs[0].name if self.outputs else info.name

    @property
    def values(self) -> tuple[Value, ...]:
        """The inputs that are there; whole numbers that stand for others (quantized ones) as those."""
        return tuple(self.value(index) for index, value in enumerate(self._inputs) if value is not None)

    def has(self, index: int) -> bool:
        """True if there is an input of that number."""
        return index < len(self._inputs) and self._inputs[index] is not None

    def stored(self, index: int) -> Value:
        """Return an input as the file stores it; ``ValueError`` where it is missing."""
        value = self._inputs[index] if index < len(self._inputs) else None
        if value is None:
            raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has no input {index}")
        return value

    def tensor(self, index: int) -> TensorInfo:
        """Return the tensor of an input; ``ValueError`` where it is missing."""
        tensor = self._tensors[index] if index < len(self._tensors) else None
        if tensor is None:
            raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has no input {index}")
        return tensor

    def value(self, index: int) -> Value:
        """Return an input as the numbers that it means."""
        value, quantization = self.stored(index), self.tensor(index).quantization
        if quantization is None or self.info.name in _MOVES or not _is_quantized(value):
            return value
        return self.dequantized(value, quantization)

    def array(self, index: int) -> np.ndarray | None:
        """Return an input that is a constant; None for any other."""
        return self.draft.constant_of(self.stored(index))

    def add(
        self, operation: str, opset: str, inputs: Sequence[Value], attributes: Mapping[str, str] = MappingProxyType({}), outputs: int = 1
    ) -> Value:
        """Add an operation that helps, and return its first output."""
        return self.many(operation, opset, inputs, attributes, outputs)[0]

    def many(
        self, operation: str, opset: str, inputs: Sequence[Value], attributes: Mapping[str, str] = MappingProxyType({}), outputs: int = 1
    ) -> tuple[Value, ...]:
        """Add an operation that helps, and return all its outputs."""
        return self.draft.add(operation, opset, f"{self.name}/{operation}", inputs, (Declared(),) * outputs, dict(attributes))

    def constant(self, content: object, form: str = "i8") -> Value:
        """Add a constant."""
        return self.draft.constant(f"{self.name}/constant", np.asarray(content, form))

    def give(
        self, operation: str, opset: str, inputs: Sequence[Value], attributes: Mapping[str, str] = MappingProxyType({}), activation: int = 0
    ) -> list[Value]:
        """Add the operation that makes the operator's outputs, under its name, and return them."""
        first = self.outputs[0] if self.outputs else None
        quantization = first.quantization if first is not None and self.info.name not in _MOVES | {"QUANTIZE"} else None
        if activation:
            value = self.add(operation, opset, inputs, attributes)
            operation, extra = _ACTIVATIONS.get(activation, ("", {}))
            if not operation:
                raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has activation {activation}, expected 0 to 4")
            inputs, attributes, opset = (value,), extra, "opset1"
        if quantization is not None and first is not None and first.element_type in _INTEGERS:
            return [self.quantized(self.add(operation, opset, inputs, attributes), first, quantization)]
        return list(self.draft.add(operation, opset, self.name, inputs, [declared(tensor) for tensor in self.outputs], dict(attributes)))

    def give_like(self, value: Value) -> list[Value]:
        """Return the outputs where the last operation only gives another element type or shape, under the operator's name."""
        return self.give("Convert", "opset1", (value,), {"destination_type": str(self.outputs[0].element_type or ElementType.F32)})

    def dequantized(self, value: Value, quantization: Quantization, name: str = "") -> Value:
        """Add what turns quantized integers into the numbers that they mean."""
        scale, zero = (_along(numbers, quantization, value.shape) for numbers in (quantization.scale, quantization.zero_point))
        moved = self.add("Convert", "opset1", (value,), {"destination_type": "f32"})
        if np.any(zero):
            moved = self.add("Subtract", "opset1", (moved, self.constant(zero, "f4")), _NUMPY)
        inputs = (moved, self.constant(scale, "f4"))
        if name:
            return self.draft.add("Multiply", "opset1", name, inputs, [declared(self.outputs[0])], _NUMPY)[0]
        return self.add("Multiply", "opset1", inputs, _NUMPY)

    def quantized(self, value: Value, tensor: TensorInfo, quantization: Quantization) -> Value:
        """Add what turns numbers into the quantized integers of the operator's output."""
        kind = tensor.element_type
        if kind not in _INTEGERS:
            raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has scales for {kind}, expected integers of 8, 16 or 32 bits")
        scale, zero = (_along(numbers, quantization, tensor.shape) for numbers in (quantization.scale, quantization.zero_point))
        scaled = self.add("Divide", "opset1", (value, self.constant(scale, "f4")), {"m_pythondiv": "false", **_NUMPY})
        moved = self.add("Round", "opset5", (scaled,), {"mode": "half_away_from_zero"})
        if np.any(zero):
            moved = self.add("Add", "opset1", (moved, self.constant(zero, "f4")), _NUMPY)
        bounds = np.iinfo(kind.dtype)
        held = self.add("Clamp", "opset1", (moved,), {"min": str(bounds.min), "max": str(bounds.max)})
        return self.draft.add("Convert", "opset1", self.name, (held,), [declared(tensor)], {"destination_type": str(kind)})[0]


Rule = Callable[[Operator], list[Value]]
_INTEGERS = frozenset({ElementType.I8, ElementType.U8, ElementType.I16, ElementType.I32})


def declared(tensor: TensorInfo) -> Declared:
    """Return what a file declares for a tensor that is computed: lengths of 1 may stand for unknown ones, so only its type."""
    return Declared(tensor.element_type, names=(tensor.name,))


def _is_quantized(value: Value) -> bool:
    return value.element_type in _INTEGERS


def _along(numbers: np.ndarray, quantization: Quantization, shape: PartialShape) -> np.ndarray:
    if numbers.size == 1:
        return numbers.reshape(())
    rank = shape.rank
    if rank is None or not 0 <= quantization.axis < rank:
        raise ValueError(f"a tensor has {numbers.size} scales along axis {quantization.axis}, which its shape {shape} does not have")
    return numbers.reshape([-1 if axis == quantization.axis else 1 for axis in range(rank)])


def _plain(operation: str, opset: str = "opset1", **attributes: str) -> Rule:
    return lambda operator: operator.give(operation, opset, operator.values, attributes)


def _fused(operation: str, **attributes: str) -> Rule:
    return lambda operator: operator.give(operation, "opset1", operator.values, {**_NUMPY, **attributes}, operator.info.whole(0, "<b"))


def _reduction(operation: str) -> Rule:
    return lambda operator: operator.give(operation, "opset1", operator.values[:2], {"keep_dims": _text(operator.info.flag(0))})


def _text(truth: bool) -> str:
    return str(truth).lower()


def _bits(number: int, rank: int) -> str:
    return ",".join(str(number >> index & 1) for index in range(rank))


def _rank_of_vector(operator: Operator, index: int) -> int:
    """The number of elements that an input, a vector, has; ``ValueError`` where the file does not say it."""
    array = operator.array(index)
    if array is not None:
        return int(array.size)
    shape = operator.tensor(index).shape
    if not shape.is_static or shape.rank != 1:
        raise ValueError(f"{operator.info.name} {shorten(operator.name, 60)!r} has an input {index} of unknown length")
    return shape.lengths[0]


def _one_of(operator: Operator, index: int) -> int:
    """The only number of an input that is a constant, such as an axis."""
    array = operator.array(index)
    if array is None or array.size != 1:
        raise ValueError(f"{operator.info.name} {shorten(operator.name, 60)!r} has an input {index} that is not one constant number")
    return int(array.reshape(-1)[0])


def _floor_div(operator: Operator) -> list[Value]:
    if operator.value(0).element_type in (ElementType.F32, ElementType.F16, ElementType.F64):
        return operator.give("Floor", "opset1", (operator.add("Divide", "opset1", operator.values, {"m_pythondiv": "false", **_NUMPY}),))
    return operator.give("Divide", "opset1", operator.values, {"m_pythondiv": "true", **_NUMPY})


def _rsqrt(operator: Operator) -> list[Value]:
    root = operator.add("Sqrt", "opset1", operator.values[:1])
    return operator.give("Divide", "opset1", (operator.constant(1, "f4"), root), {"m_pythondiv": "false", **_NUMPY})


def _square(operator: Operator) -> list[Value]:
    return operator.give("Multiply", "opset1", (operator.value(0), operator.value(0)), _NUMPY)


def _leaky_relu(operator: Operator) -> list[Value]:
    return operator.give("PRelu", "opset1", (operator.value(0), operator.constant([operator.info.option(0, "<f")], "f4")))


def _gelu(operator: Operator) -> list[Value]:
    return operator.give("Gelu", "opset7", operator.values, {"approximation_mode": "TANH" if operator.info.flag(0) else "ERF"})


def _softmax(operator: Operator) -> list[Value]:
    value, beta = operator.value(0), operator.info.option(0, "<f")
    if beta not in (0, 1):
        value = operator.add("Multiply", "opset1", (value, operator.constant(beta, "f4")), _NUMPY)
    return operator.give("Softmax", "opset8", (value,), {"axis": "-1"})


def _zeros_like(operator: Operator) -> list[Value]:
    shape = operator.add("ShapeOf", "opset3", (operator.value(0),), {"output_type": "i64"})
    return operator.give("Broadcast", "opset3", (_number_like(operator, operator.value(0), 0), shape), {"mode": "numpy"})


def _number_like(operator: Operator, value: Value, number: int) -> Value:
    kind = value.element_type or ElementType.F32
    if kind is ElementType.STRING:
        raise ValueError(f"{operator.info.name} {shorten(operator.name, 60)!r} takes texts, expected numbers")
    return operator.draft.constant(f"{operator.name}/constant", np.asarray(number, kind.dtype))


def _reshape(operator: Operator) -> list[Value]:
    options = operator.info.options
    shape = operator.stored(1) if operator.has(1) else operator.constant(options.array(0, "<i4", 64) if options else [])
    return operator.give("Reshape", "opset1", (operator.value(0), shape), {"special_zero": "false"})


def _squeeze(operator: Operator) -> list[Value]:
    axes = operator.info.options.array(0, "<i4", 64).tolist() if operator.info.options else []
    inputs = (operator.value(0), operator.constant(axes)) if axes else (operator.value(0),)
    return operator.give("Squeeze", "opset1", inputs)


def _shape_of(operator: Operator) -> list[Value]:
    kind = element_type(operator.info.whole(0, "<b")) or ElementType.I32
    return operator.give(
        "ShapeOf", "opset3", (operator.stored(0),), {"output_type": str(kind if kind is ElementType.I64 else ElementType.I32)}
    )


def _rank(operator: Operator) -> list[Value]:
    shape = operator.add("ShapeOf", "opset3", (operator.stored(0),), {"output_type": "i32"})
    rank = operator.add("ShapeOf", "opset3", (shape,), {"output_type": "i32"})
    return operator.give("Squeeze", "opset1", (rank, operator.constant([0])))


def _fill(operator: Operator) -> list[Value]:
    return operator.give("Broadcast", "opset3", (operator.value(1), operator.stored(0)), {"mode": "numpy"})


def _concatenation(operator: Operator) -> list[Value]:
    return operator.give("Concat", "opset1", operator.values, {"axis": str(operator.info.whole(0))}, operator.info.whole(1, "<b"))


def _pack(operator: Operator) -> list[Value]:
    axis = operator.info.whole(1)
    parts = [operator.add("Unsqueeze", "opset1", (value, operator.constant([axis]))) for value in operator.values]
    return operator.give("Concat", "opset1", parts, {"axis": str(axis)})


def _unpack(operator: Operator) -> list[Value]:
    axis, count = operator.info.whole(1), len(operator.outputs)
    parts = operator.many("Split", "opset1", (operator.value(0), operator.constant(axis)), {"num_splits": str(count)}, count)
    return [
        operator.draft.add("Squeeze", "opset1", tensor.name, (part, operator.constant([axis])), (declared(tensor),))[0]
        for part, tensor in zip(parts, operator.outputs, strict=True)
    ]


def _split(operator: Operator) -> list[Value]:
    axis = operator.constant(_one_of(operator, 0))
    return operator.give("Split", "opset1", (operator.value(1), axis), {"num_splits": str(len(operator.outputs))})


def _split_v(operator: Operator) -> list[Value]:
    axis = operator.constant(_one_of(operator, 2))
    return operator.give("VariadicSplit", "opset1", (operator.value(0), axis, operator.stored(1)))


def _slice(operator: Operator) -> list[Value]:
    begin, size = operator.stored(1), operator.stored(2)
    end = operator.add("Add", "opset1", (begin, size), _NUMPY)
    rest = operator.add("Less", "opset1", (size, _number_like(operator, size, 0)), _NUMPY)
    stop = operator.add("Select", "opset1", (rest, _number_like(operator, size, int(_TO_END)), end), _NUMPY)
    step = operator.draft.constant(
        f"{operator.name}/constant", np.ones(_rank_of_vector(operator, 1), (size.element_type or ElementType.I32).dtype)
    )
    return operator.give("Slice", "opset8", (operator.value(0), begin, stop, step))


def _strided_slice(operator: Operator) -> list[Value]:
    rank, info = _rank_of_vector(operator, 1), operator.info
    begin, end = operator.stored(1), operator.stored(2)
    if info.flag(5):
        end = operator.add("Add", "opset1", (begin, end), _NUMPY)
    masks = {
        "begin_mask": _bits(info.whole(0), rank),
        "end_mask": _bits(info.whole(1), rank),
        "ellipsis_mask": _bits(info.whole(2), rank),
        "new_axis_mask": _bits(info.whole(3), rank),
        "shrink_axis_mask": _bits(info.whole(4), rank),
    }
    return operator.give("StridedSlice", "opset1", (operator.value(0), begin, end, operator.stored(3)), masks)


def _gather(operator: Operator) -> list[Value]:
    axis = operator.constant(operator.info.whole(0))
    return operator.give("Gather", "opset8", (*operator.values[:2], axis), {"batch_dims": str(operator.info.whole(1))})


def _embedding_lookup(operator: Operator) -> list[Value]:
    return operator.give("Gather", "opset8", (operator.value(1), operator.stored(0), operator.constant(0)), {"batch_dims": "0"})


def _scatter_nd(operator: Operator) -> list[Value]:
    indices, updates, shape = operator.stored(0), operator.value(1), operator.stored(2)
    zeros = operator.add("Broadcast", "opset3", (_number_like(operator, updates, 0), shape), {"mode": "numpy"})
    return operator.give("ScatterNDUpdate", "opset15", (zeros, indices, updates), {"reduction": "sum"})


def _cast(operator: Operator) -> list[Value]:
    return operator.give_like(operator.value(0))


def _range(operator: Operator) -> list[Value]:
    kind = operator.outputs[0].element_type or operator.value(0).element_type or ElementType.I32
    return operator.give("Range", "opset4", operator.values, {"output_type": str(kind)})


def _one_hot(operator: Operator) -> list[Value]:
    return operator.give("OneHot", "opset1", operator.values, {"axis": str(operator.info.whole(0))})


def _select(operator: Operator) -> list[Value]:
    ranks = [operator.tensor(index).shape.rank for index in (0, 1)]
    if operator.info.name == "SELECT" and ranks[0] == 1 and ranks[1] is not None and ranks[1] > 1:
        # A vector of conditions chooses along the first axis.
        axes = operator.constant(list(range(1, ranks[1])))
        rows = operator.add("Unsqueeze", "opset1", (operator.stored(0), axes))
        return operator.give("Select", "opset1", (rows, *operator.values[1:]), _NUMPY)
    return operator.give("Select", "opset1", operator.values, _NUMPY)


def _where(operator: Operator) -> list[Value]:
    found = operator.add("NonZero", "opset3", (operator.value(0),), {"output_type": "i64"})
    return operator.give("Transpose", "opset1", (found, operator.constant([1, 0])))


def _arg(operator: Operator, mode: str) -> list[Value]:
    axis = _one_of(operator, 1)
    kind = operator.outputs[0].element_type or ElementType.I64
    attributes = {"axis": str(axis), "mode": mode, "sort": "value", "stable": "true", "index_element_type": str(kind)}
    _, places = operator.many("TopK", "opset11", (operator.value(0), operator.constant(1)), attributes, 2)
    return operator.give("Squeeze", "opset1", (places, operator.constant([axis])))


def _top_k(operator: Operator) -> list[Value]:
    attributes = {"axis": "-1", "mode": "max", "sort": "value", "stable": "true", "index_element_type": "i32"}
    return operator.give("TopK", "opset11", operator.values[:2], attributes)


def _cumsum(operator: Operator) -> list[Value]:
    info = operator.info
    return operator.give("CumSum", "opset3", operator.values, {"exclusive": _text(info.flag(0)), "reverse": _text(info.flag(1))})


def _pad(operator: Operator, mode: str = "constant") -> list[Value]:
    axis = operator.constant([1])
    halves = operator.many("Split", "opset1", (operator.stored(1), operator.constant(1)), {"num_splits": "2"}, 2)
    begins, ends = (operator.add("Squeeze", "opset1", (half, axis)) for half in halves)
    if operator.info.name == "MIRROR_PAD":
        mode = "symmetric" if operator.info.whole(0, "<b") else "reflect"
    more = (operator.value(2),) if operator.has(2) else ()
    return operator.give("Pad", "opset1", (operator.value(0), begins, ends, *more), {"pad_mode": mode})


def _reverse(operator: Operator) -> list[Value]:
    axes = operator.array(1)
    if axes is None:
        raise ValueError(f"{operator.info.name} {shorten(operator.name, 60)!r} has axes that are computed, expected a constant")
    count = axes.size
    first, last, step = (operator.constant(np.full(count, number)) for number in (_TO_END, -_TO_END, -1))
    return operator.give("Slice", "opset8", (operator.value(0), first, last, step, operator.stored(1)))


def _reverse_sequence(operator: Operator) -> list[Value]:
    axes = {"seq_axis": str(operator.info.whole(0)), "batch_axis": str(operator.info.whole(1))}
    return operator.give("ReverseSequence", "opset1", operator.values, axes)


def _batch_matmul(operator: Operator) -> list[Value]:
    sides = {"transpose_a": _text(operator.info.flag(0)), "transpose_b": _text(operator.info.flag(1))}
    return operator.give("MatMul", "opset1", operator.values[:2], sides)


def _fully_connected(operator: Operator) -> list[Value]:
    info, value, weights = operator.info, operator.value(0), operator.value(1)
    if info.whole(1, "<b"):
        raise ValueError(f"FULLY_CONNECTED {shorten(operator.name, 60)!r} has shuffled weights, expected plain ones")
    if not info.flag(2):
        shape = operator.tensor(1).shape
        length = shape.at(1).length if shape.rank == 2 and shape.at(1).is_static else None
        if length is None:
            raise ValueError(f"FULLY_CONNECTED {shorten(operator.name, 60)!r} has weights of unknown shape")
        value = operator.add("Reshape", "opset1", (value, operator.constant([-1, length])), {"special_zero": "false"})
    sides = {"transpose_a": "false", "transpose_b": "true"}
    activation = info.whole(0, "<b")
    if not operator.has(2):
        return operator.give("MatMul", "opset1", (value, weights), sides, activation)
    product = operator.add("MatMul", "opset1", (value, weights), sides)
    return operator.give("Add", "opset1", (product, operator.value(2)), _NUMPY, activation)


def _add_n(operator: Operator) -> list[Value]:
    total = operator.value(0)
    if not operator.has(1):
        return operator.give_like(total)
    for value in operator.values[1:-1]:
        total = operator.add("Add", "opset1", (total, value), _NUMPY)
    return operator.give("Add", "opset1", (total, operator.values[-1]), _NUMPY)


def _dequantize(operator: Operator) -> list[Value]:
    value, quantization = operator.stored(0), operator.tensor(0).quantization
    if quantization is None:
        return operator.give_like(value)
    return [operator.dequantized(value, quantization, operator.name)]


def _quantize(operator: Operator) -> list[Value]:
    output = operator.outputs[0]
    if output.quantization is None:
        raise ValueError(f"QUANTIZE {shorten(operator.name, 60)!r} has an output without a scale")
    return [operator.quantized(operator.value(0), output, output.quantization)]


_MOVES = frozenset(
    {"BROADCAST_TO", "CONCATENATION", "DEQUANTIZE", "EXPAND_DIMS", "FILL", "GATHER", "GATHER_ND", "PACK", "RANK", "RESHAPE", "REVERSE_V2"}
    | {"SELECT", "SELECT_V2", "SHAPE", "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TOPK_V2", "TRANSPOSE", "UNPACK"}
    | {"ZEROS_LIKE"}
)
"""Operators that move elements without computing with them, quantized ones as they are."""

RULES: Mapping[str, Rule] = {
    "ADD": _fused("Add"),
    "SUB": _fused("Subtract"),
    "MUL": _fused("Multiply"),
    "DIV": _fused("Divide", m_pythondiv="false"),
    **{
        name: _plain(operation, **_NUMPY)
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
    "BITWISE_XOR": _plain("BitwiseXor", "opset13", **_NUMPY),
    "RIGHT_SHIFT": _plain("BitwiseRightShift", "opset15", **_NUMPY),
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
    "CAST": _cast,
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
    "ADD_N": _add_n,
    "DEQUANTIZE": _dequantize,
    "QUANTIZE": _quantize,
}
"""What an operator is translated by, by its name."""
