"""Elementwise operations of com.microsoft on quantized tensors, and operations along one axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.activation import sigmoid, softmax
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import broadcast_shapes, common_type, same
from loopscope.ops.kernel_checks import axis_within
from loopscope.ops.microsoft.row import row
from loopscope.ops.movement.joining import concat, infer_concat
from loopscope.ops.onnx.element_movement import flattened
from loopscope.ops.onnx.quantization import dequantize_linear, quanta, quantize_linear

BYTES = frozenset({ElementType.I8, ElementType.U8})
SCALES = frozenset({ElementType.F32})
_HALVES = frozenset({ElementType.F16, ElementType.F32})
_QUANTA = frozenset(
    {
        ElementType.I8,
        ElementType.U8,
        ElementType.I16,
        ElementType.U16,
        ElementType.I4,
        ElementType.U4,
    }
)


def single_number(parameter: Array | None, like: Array) -> Array:
    """Return a scale or zero point of a whole tensor as a scalar.

    The default is 0 in the tensor's type.
    """
    if parameter is None:
        return np.zeros((), like.dtype)
    if parameter.size != 1:
        raise ValueError(
            f"a scale or zero point has shape {list(parameter.shape)}, expected one number"
        )
    return parameter.reshape(())


def q_linear_add(
    first: Array,
    first_scale: Array,
    first_zero: Array | None,
    second: Array,
    second_scale: Array,
    second_zero: Array | None,
    scale: Array,
    zero: Array | None = None,
    /,
) -> Array:
    """Add two quantized tensors, with a quantized result.

    The result, including the zero point, is rounded once, in the order of ONNX Runtime: ``first * r
    + (second * s + rest)``. ``r`` and ``s`` are the scales divided by that of the sum, and both
    products are added unrounded.
    """
    sum_scale = single_number(scale, scale)
    by_first, by_second = (
        np.float32(single_number(parameter, parameter) / sum_scale)
        for parameter in (first_scale, second_scale)
    )
    zeros = [
        np.float32(single_number(parameter, first)) for parameter in (first_zero, second_zero, zero)
    ]
    rest = zeros[2] - (by_first * zeros[0] + by_second * zeros[1])
    inner = (second.astype(np.float64) * by_second + rest).astype(np.float32)
    return quanta(
        (first.astype(np.float64) * by_first + inner).astype(np.float32), None, first.dtype
    )


def q_linear_mul(
    first: Array,
    first_scale: Array,
    first_zero: Array | None,
    second: Array,
    second_scale: Array,
    second_zero: Array | None,
    scale: Array,
    zero: Array | None = None,
    /,
) -> Array:
    """Multiply two quantized tensors, with a quantized result.

    The result, including the zero point, is rounded once.
    """
    ratio = (
        single_number(first_scale, first)
        * single_number(second_scale, first)
        / single_number(scale, first)
    )
    left, right = (
        data.astype(np.float32) - single_number(offset, first).astype(np.float32)
        for data, offset in ((first, first_zero), (second, second_zero))
    )
    return quanta(
        left * right * ratio + single_number(zero, first).astype(np.float32), None, first.dtype
    )


def by_table(function: Callable[[Array], Array], data: Array) -> Array:
    """Apply a function to an 8-bit tensor by a table of its 256 values."""
    all_values = np.arange(256, dtype=np.uint8).view(data.dtype)
    return np.take(function(all_values), np.asarray(data).view(np.uint8))


def _requantize(
    function: Callable[[Array], Array],
    data: Array,
    scale: Array,
    zero: Array | None,
    to_scale: Array,
    to_zero: Array | None,
) -> Array:
    """Apply a function to the values of a quantized tensor, and quantize the result."""
    offsets = [single_number(parameter, data) for parameter in (zero, to_zero)]

    def apply(quantized: Array) -> Array:
        numbers = function(dequantize_linear(quantized, single_number(scale, data), offsets[0]))
        return quantize_linear(numbers, single_number(to_scale, data), offsets[1])

    return by_table(apply, data)


def q_linear_sigmoid(
    data: Array, scale: Array, zero: Array | None, to_scale: Array, to_zero: Array | None = None, /
) -> Array:
    """Return 1 / (1 + e^-x) of a quantized tensor, quantized."""
    return _requantize(sigmoid, data, scale, zero, to_scale, to_zero)


def q_linear_leaky_relu(
    data: Array,
    scale: Array,
    zero: Array | None,
    to_scale: Array,
    to_zero: Array | None = None,
    /,
    *,
    alpha: float,
) -> Array:
    """Return x where x >= 0 and ``alpha`` x elsewhere, for a quantized tensor, quantized."""
    return _requantize(
        partial(_leaky_relu, np.float32(alpha)), data, scale, zero, to_scale, to_zero
    )


def _leaky_relu(alpha: np.float32, numbers: Array) -> Array:
    return np.where(numbers >= 0, numbers, alpha * numbers)


def q_linear_softmax(
    data: Array,
    scale: Array,
    zero: Array | None,
    to_scale: Array,
    to_zero: Array,
    /,
    *,
    axis: int,
    opset: int,
) -> Array:
    """Return the softmax of a quantized tensor along an axis, quantized.

    Before ``opset`` 13, it spans all axes from ``axis`` on. As in ONNX Runtime, the reciprocal of
    the output scale is truncated to an integer: 254 if the scale is the f32 next to 1 / 255.
    """
    numbers = dequantize_linear(data, single_number(scale, data), single_number(zero, data))
    rows = numbers if opset >= 13 else flattened(numbers, axis=axis)
    shares = softmax(rows, axis=axis if opset >= 13 else 1).reshape(data.shape)
    levels = np.floor(np.float32(1) / single_number(to_scale, data))
    return quanta(shares * levels, single_number(to_zero, data), data.dtype)


def q_linear_concat(to_scale: Array, to_zero: Array, /, *inputs: Array, axis: int) -> Array:
    """Concatenate quantized tensors along an axis, requantized to a common scale and zero point."""
    if len(inputs) % 3:
        raise ValueError(
            f"there are {len(inputs)} inputs after the first two, "
            "expected a tensor, a scale and a zero point each"
        )
    parts = [
        _requantize(_identity, data, scale, zero, to_scale, to_zero)
        for data, scale, zero in zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    ]
    return concat(*parts, axis=axis)


def _identity(numbers: Array) -> Array:
    return numbers


def q_linear_where(
    condition: Array,
    then: Array,
    then_scale: Array,
    then_zero: Array,
    otherwise: Array,
    otherwise_scale: Array,
    otherwise_zero: Array,
    scale: Array,
    zero: Array,
    /,
) -> Array:
    """Select elements of two quantized tensors by a condition, requantized to a common scale."""
    when_true = _requantize(_identity, then, then_scale, then_zero, scale, zero)
    when_false = _requantize(_identity, otherwise, otherwise_scale, otherwise_zero, scale, zero)
    return np.where(condition, when_true, when_false)


def q_linear_reduce_mean(
    data: Array,
    data_scale: Array,
    data_zero: Array | None,
    scale: Array,
    zero: Array | None = None,
    /,
    *,
    axes: tuple[int, ...],
    keepdims: int,
) -> Array:
    """Return the mean of a quantized tensor along axes (all if there are none), requantized."""
    reduced = tuple(axis_within(axis, data.ndim) for axis in axes) or None
    values = (data.astype(np.float32) - single_number(data_zero, data).astype(np.float32)) * (
        single_number(data_scale, data)
    )
    if not values.size:
        raise ValueError(f"the mean of data of shape {list(data.shape)} is not defined")
    mean = np.asarray(np.mean(values, axis=reduced, keepdims=bool(keepdims), dtype=np.float32))
    quantized = quantize_linear(mean, single_number(scale, data), single_number(zero, data), axis=0)
    return np.asarray(quantized)


def infer_reduced(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer lengths of 1 along the axes, or lengths without them."""
    shape = inputs[0].shape
    if shape.dimensions is None:
        return (Known(inputs[0].element_type),)
    rank = len(shape.dimensions)
    axes = {axis_within(axis, rank) for axis in attributes["axes"]} or set(range(rank))
    lengths = [
        static(1) if axis in axes else length
        for axis, length in enumerate(shape.dimensions)
        if attributes["keepdims"] or axis not in axes
    ]
    return (Known(inputs[0].element_type, PartialShape(tuple(lengths))),)


def quantize(
    data: Array, scale: Array, zero_point: Array | None = None, /, *, axis: int | None
) -> Array:
    """Compute ONNX's QuantizeLinear, also to 16 and 4 bits."""
    return quantize_linear(data, scale, zero_point, axis=1 if axis is None else axis)


def dequantize(
    data: Array, scale: Array, zero_point: Array | None = None, /, *, axis: int | None
) -> Array:
    """Compute ONNX's DequantizeLinear, also from 16 and 4 bits."""
    return dequantize_linear(data, scale, zero_point, axis=1 if axis is None else axis)


def infer_of_two(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the broadcast shape of both tensors."""
    return (
        Known(
            common_type([inputs[0], inputs[3]]), broadcast_shapes(inputs[0].shape, inputs[3].shape)
        ),
    )


def infer_concat_of_quanta(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the sum of the lengths along the axis."""
    (result,) = infer_concat([Known(None, tensor.shape) for tensor in inputs[2::3]], attributes)
    return (Known(inputs[1].element_type, result.shape),)


def infer_where(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the broadcast shape of the condition and both tensors."""
    return (
        Known(
            common_type([inputs[1], inputs[4], inputs[8]]),
            broadcast_shapes(*(inputs[number].shape for number in (0, 1, 4))),
        ),
    )


def infer_quantize(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the data and the type of the zero point."""
    kind = inputs[2].element_type if len(inputs) > 2 else ElementType.U8
    return (Known(kind, inputs[0].shape),)


def infer_dequantize(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the shape of the data and the type of the scale."""
    return (Known(inputs[1].element_type, inputs[0].shape),)


_UNARY_TYPES = (BYTES, SCALES, BYTES, SCALES, BYTES)
_BINARY_TYPES = (BYTES, SCALES, BYTES, BYTES, SCALES, BYTES, SCALES, BYTES)
_AXIS = (Attribute("axis", "int", None),)
OPERATIONS: tuple[Operation, ...] = (
    row(
        "QLinearReduceMean",
        q_linear_reduce_mean,
        infer=infer_reduced,
        inputs=(4, 5),
        optional_inputs=frozenset({2}),
        attributes=(Attribute("axes", "ints"), Attribute("keepdims", "int")),
        types=(BYTES, SCALES, BYTES, SCALES, BYTES),
    ),
    row(
        "QLinearAdd",
        q_linear_add,
        infer=infer_of_two,
        inputs=(7, 8),
        optional_inputs=frozenset({2, 5}),
        types=_BINARY_TYPES,
    ),
    row(
        "QLinearMul",
        q_linear_mul,
        infer=infer_of_two,
        inputs=(7, 8),
        optional_inputs=frozenset({2, 5}),
        types=_BINARY_TYPES,
    ),
    row(
        "QLinearSigmoid",
        q_linear_sigmoid,
        infer=same,
        inputs=(4, 5),
        optional_inputs=frozenset({2}),
        types=_UNARY_TYPES,
    ),
    row(
        "QLinearLeakyRelu",
        q_linear_leaky_relu,
        infer=same,
        inputs=(4, 5),
        optional_inputs=frozenset({2}),
        attributes=(Attribute("alpha", "float", 0.01),),
        types=_UNARY_TYPES,
    ),
    row(
        "QLinearSoftmax",
        q_linear_softmax,
        infer=same,
        inputs=(5, 5),
        optional_inputs=frozenset({2}),
        attributes=(Attribute("axis", "int", -1), Attribute("opset", "int")),
        types=_UNARY_TYPES,
    ),
    row(
        "QLinearConcat",
        q_linear_concat,
        infer=infer_concat_of_quanta,
        inputs=(3, None),
        attributes=(Attribute("axis", "int"),),
        types=(SCALES, BYTES, BYTES | SCALES),
    ),
    row(
        "QLinearWhere",
        q_linear_where,
        infer=infer_where,
        inputs=(9, 9),
        types=(
            frozenset({ElementType.BOOLEAN}),
            BYTES,
            SCALES,
            BYTES,
            BYTES,
            SCALES,
            BYTES,
            SCALES,
            BYTES,
        ),
    ),
    row(
        "QuantizeLinear",
        quantize,
        infer=infer_quantize,
        inputs=(2, 3),
        attributes=_AXIS,
        types=(_HALVES, _HALVES, _QUANTA),
    ),
    row(
        "DequantizeLinear",
        dequantize,
        infer=infer_dequantize,
        inputs=(2, 3),
        attributes=_AXIS,
        types=(_QUANTA | {ElementType.I32}, _HALVES, _QUANTA | {ElementType.I32}),
    ),
)
