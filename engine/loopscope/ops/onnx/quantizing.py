"""ONNX's linear quantization: floats to quanta and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper

from loopscope.ir.element_type import is_whole, type_name
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.elements import integer_limits
from loopscope.ops.index import axis_within
from loopscope.ops.onnx.byte_products import Bytes
from loopscope.ops.precision import computable


def quantize_linear(
    data: Array,
    scale: Array,
    zero_point: Array | None = None,
    /,
    *,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int | None = None,
) -> Array:
    """``data / scale`` rounded to the nearest, halves to even, plus the zero point, cut to the
    range of the output's type.

    One scale, or one for each place along ``axis``, or one for each block of ``block_size`` along
    it. ``precision`` is the type that divides, 0 for that of the scale; before opset 23 nothing is
    said of it (None), and small floats are divided in f32.
    """
    dtype = _quantum(zero_point, output_dtype)
    factor = along(scale, data.shape, axis, block_size)
    if precision is None:
        quotient = computable(
            data.astype(scale.dtype) if data.dtype.kind in "iu" else data
        ) / computable(factor)
    else:
        dividing = helper.tensor_dtype_to_np_dtype(precision) if precision else scale.dtype
        quotient = computable(data.astype(dividing) / factor.astype(dividing))
    zero = None if zero_point is None else along(zero_point, data.shape, axis, block_size)
    if is_whole(dtype):
        return quanta(quotient, zero, dtype)
    return _narrow_floats(
        quotient if zero is None else quotient + computable(zero), dtype, bool(saturate)
    )


def _quantum(zero_point: Array | None, output_dtype: int) -> np.dtype:
    """The type of quanta: that of the zero point, the one that is named, or u8."""
    named = helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else None
    if zero_point is None:
        return named or np.dtype(np.uint8)
    if named is not None and named != zero_point.dtype:
        raise ValueError(
            f"output_dtype is {type_name(named)} and the zero point is {type_name(zero_point.dtype)}, expected one type"
        )
    return zero_point.dtype


def along(parameter: Array, shape: Sequence[int], axis: int, block_size: int = 0) -> Array:
    """Scales or zero points in a form that broadcasts to data of ``shape``; ``ValueError`` where
    they are as many as nothing of it.
    """
    rank = len(shape)
    if parameter.ndim == 0 or (parameter.size == 1 and parameter.ndim == 1 and not block_size):
        return parameter.reshape(())
    place = axis_within(axis, rank)
    if block_size > 0:
        expected = [
            -(-length // block_size) if one == place else length for one, length in enumerate(shape)
        ]
        if list(parameter.shape) != expected:
            raise ValueError(
                f"{list(parameter.shape)} scales or zero points, expected {expected}: blocks of {block_size} on axis {place}"
            )
        check_elements(parameter.size * block_size, "the scales of all blocks")
        return parameter.repeat(block_size, place)[(slice(None),) * place + (slice(shape[place]),)]
    if parameter.shape != (shape[place],):
        raise ValueError(
            f"{list(parameter.shape)} scales or zero points, expected one, or the {shape[place]} of axis {place}"
        )
    return parameter.reshape(-1, *[1] * (rank - place - 1))


def quanta(values: Array | np.floating[Any], zero_point: Array | None, dtype: np.dtype) -> Array:
    """Numbers rounded to the nearest integer, halves to even, plus a zero point, cut to what a type
    holds; NaN is its least.

    The array of the numbers is used for the steps on the way and does not stay what it was.
    The zero point comes after rounding: an odd one would send halves the other way.
    """
    least, most = integer_limits(dtype)
    made = np.asarray(values)
    np.rint(made, out=made)
    if zero_point is not None:
        made += np.asarray(zero_point).astype(made.dtype)
    if made.size and np.isnan(made.max()):
        made[np.isnan(made)] = least
    np.clip(made, made.dtype.type(least), made.dtype.type(most), out=made)
    # ml_dtypes make their small integers of others, and not of floats.
    return made.astype(dtype) if dtype.isbuiltin == 1 else made.astype(np.int8).astype(dtype)


def _narrow_floats(values: Array, dtype: np.dtype, saturate: bool) -> Array:
    if saturate:
        most = float(ml_dtypes.finfo(dtype).max)
        values = np.clip(values, -most, most)
    return values.astype(dtype)


def dequantize_linear(
    data: Array,
    scale: Array,
    zero_point: Array | None = None,
    /,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """``(data - zero point) * scale``, computed in f32 and rounded once to the type of the
    scale, or to ``output_dtype``.
    """
    if zero_point is not None and zero_point.dtype != data.dtype:
        raise ValueError(
            f"the data is {type_name(data.dtype)} and the zero point {type_name(zero_point.dtype)}, expected one type"
        )
    zero = None if zero_point is None else along(zero_point, data.shape, axis, block_size)
    steps = np.asarray(difference(data, zero)).astype(np.float32, copy=False)
    dtype = helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else scale.dtype
    steps *= computable(along(scale, data.shape, axis, block_size))
    return steps.astype(dtype, copy=False)


def difference(data: Array, zero_point: Array | None) -> Array:
    """What quanta are above or below their zero point, exactly: in f32 up to 16 bits, in i64
    above.
    """
    exact = np.int64 if data.dtype.kind in "iu" and data.dtype.itemsize > 2 else np.float32
    made = data.astype(exact)
    return (
        made
        if zero_point is None
        else np.subtract(
            made, np.asarray(zero_point).astype(exact), out=made if made.ndim else None
        )
    )


def dynamic_quantize_linear(data: Array, /) -> tuple[Array, Array, Array]:
    """A tensor as u8 between its least and greatest number and 0, with the scale and the zero
    point that this takes.
    """
    scale, zero_point = dynamic_scale(data)
    return quanta(data / scale, zero_point, np.dtype(np.uint8)), scale, zero_point


def dynamic_bytes(data: Array) -> tuple[Bytes, Array]:
    """A tensor that is quantized so, ready for products, and its scale."""
    scale, zero_point = dynamic_scale(data)
    zero = zero_point.reshape(1).astype(np.int32) - 128
    steps = np.asarray(np.rint(data / scale))
    steps += zero
    # What is no number becomes the least, as of a cast to u8: the two functions pass it over.
    np.fmin(np.fmax(steps, -128, out=steps), 127, out=steps)
    return Bytes(steps.astype(np.int8), zero), scale


def dynamic_scale(data: Array) -> tuple[Array, Array]:
    """The scale and the u8 zero point with which all of a tensor fits; 1 and 0 for nothing but
    zeros, as ONNX Runtime has it.
    """
    least, most = np.float32(data.min(initial=0)), np.float32(data.max(initial=0))
    scale = (most - least) / np.float32(255) if most != least else np.float32(1)
    middle = float(np.rint(-least / scale))
    # Where a number is none, ONNX Runtime's zero point is the greatest: 255 is not more than what
    # is no number.
    return np.asarray(scale), np.asarray(0 if middle <= 0 else int(min(255, middle)), np.uint8)
