"""Convolutions and poolings of quantized tensors in com.microsoft, with channels second or last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.microsoft.quantized import BYTES, SCALES, single_number
from loopscope.ops.microsoft.row import row
from loopscope.ops.onnx.quantization import dequantize_linear, difference, qlinear_conv, quanta
from loopscope.ops.onnx.windows import average_pool, max_pool, pool_of
from loopscope.ops.pooling_windows import pooled_shape


def q_linear_conv(
    data: Array,
    data_scale: Array,
    data_zero: Array,
    filters: Array,
    filters_scale: Array,
    filters_zero: Array,
    scale: Array,
    zero: Array,
    bias: Array | None = None,
    /,
    *,
    channels_last: int,
    **window: Any,
) -> Array:
    """Compute ONNX's QLinearConv, with channels second or last.

    With ``channels_last``, data and result are ``[N, lengths..., C]``. The layout of the filters
    does not change.
    """
    result = qlinear_conv(
        _channels_second(data, channels_last),
        data_scale,
        data_zero,
        filters,
        filters_scale,
        filters_zero,
        scale,
        zero,
        bias,
        **window,
    )
    return _restore_layout(result, channels_last)


def q_linear_average_pool(
    data: Array,
    scale: Array,
    zero: Array | None,
    to_scale: Array,
    to_zero: Array | None = None,
    /,
    *,
    channels_last: int,
    **window: Any,
) -> Array:
    """Compute AveragePool of a quantized tensor, quantized.

    The result, including the zero point, is rounded once.
    """
    numbers = dequantize_linear(
        _channels_second(data, channels_last), single_number(scale, data), single_number(zero, data)
    )
    averages = average_pool(numbers, **window)
    divisor, offset = single_number(to_scale, data), single_number(to_zero, data)
    shifted = averages / divisor + offset.astype(np.float32)
    return _restore_layout(quanta(shifted, None, data.dtype), channels_last)


def q_linear_global_average_pool(
    data: Array,
    scale: Array,
    zero: Array,
    to_scale: Array,
    to_zero: Array,
    /,
    *,
    channels_last: int,
) -> Array:
    """Compute the quantized mean over all positions of each channel of a quantized tensor.

    The sums are exact.
    """
    images = _channels_second(data, channels_last)
    count = math.prod(images.shape[2:])
    if not count:
        raise ValueError(
            f"the data has shape {list(data.shape)}: expected at least one position for a mean"
        )
    sums = difference(images, single_number(zero, data)).sum(
        axis=tuple(range(2, images.ndim)), dtype=np.float64, keepdims=True
    )
    ratio = single_number(scale, data) / (single_number(to_scale, data) * np.float32(count))
    return _restore_layout(
        quanta(sums.astype(np.float32) * ratio, single_number(to_zero, data), data.dtype),
        channels_last,
    )


def nhwc_max_pool(data: Array, /, **window: Any) -> Array:
    """Compute MaxPool of ``[N, lengths..., C]``."""
    largest = max_pool(_channels_second(data, 1), outputs=1, **window)
    return _restore_layout(largest, 1)


def _channels_second(data: Array, channels_last: int) -> Array:
    if data.ndim < 3:
        raise ValueError(
            f"the data has shape {list(data.shape)}, expected a batch, channels and lengths"
        )
    return np.ascontiguousarray(np.moveaxis(data, -1, 1)) if channels_last else data


def _restore_layout(data: Array, channels_last: int) -> Array:
    return np.ascontiguousarray(np.moveaxis(data, 1, -1)) if channels_last else data


def infer_pool(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer batch and channels from the data, and the number of windows."""
    shape = _move_channels(inputs[0].shape, attributes.get("channels_last", 1), to=1)
    window = pool_of(attributes, len(attributes["kernel_shape"]))
    return (
        Known(
            inputs[0].element_type,
            _move_channels(pooled_shape(shape, window), attributes.get("channels_last", 1), to=-1),
        ),
    )


def infer_global_pool(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer one position for each channel."""
    shape = inputs[0].shape
    if shape.dimensions is None:
        return (Known(inputs[0].element_type, DYNAMIC),)
    kept_axes = (0, len(shape.dimensions) - 1 if attributes["channels_last"] else 1)
    lengths = tuple(
        length if axis in kept_axes else static(1) for axis, length in enumerate(shape.dimensions)
    )
    return (Known(inputs[0].element_type, PartialShape(lengths)),)


def infer_conv(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the batch from the data, the channels from the filters, and the number of windows.

    The type is that of the last zero point.
    """
    kind, filters = inputs[7].element_type, inputs[3].shape
    if filters.dimensions is None or inputs[0].shape.dimensions is None:
        return (Known(kind),)
    shape = _move_channels(inputs[0].shape, attributes["channels_last"], to=1)
    if shape.rank != filters.rank or len(filters.dimensions) < 3:
        raise ValueError(
            f"data of shape {inputs[0].shape} and filters of shape {filters} differ in spatial axes"
        )
    lengths = PartialShape(filters.dimensions[2:])
    if not lengths.is_static:
        return (Known(kind, PartialShape.unknown(len(filters.dimensions))),)
    windows = pooled_shape(
        shape, pool_of({**attributes, "kernel_shape": lengths.lengths}, len(lengths.lengths))
    )
    result = PartialShape((shape.at(0), filters.at(0), *(windows.dimensions or ())[2:]))
    return (Known(kind, _move_channels(result, attributes["channels_last"], to=-1)),)


def _move_channels(shape: PartialShape, channels_last: int, *, to: int) -> PartialShape:
    """Move the channels of a shape between the second and the last axis."""
    if shape.dimensions is None or not channels_last or len(shape.dimensions) < 2:
        return shape
    batch, *others = shape.dimensions
    return PartialShape(
        (batch, others[-1], *others[:-1]) if to == 1 else (batch, *others[1:], others[0])
    )


_LAST = Attribute("channels_last", "int", 0)
_MOVES = (
    Attribute("auto_pad", "str", "NOTSET"),
    Attribute("pads", "ints", None),
    Attribute("strides", "ints", None),
)
_KERNEL = Attribute("kernel_shape", "ints")
_OF_ONE = (BYTES, SCALES, BYTES, SCALES, BYTES)
OPERATIONS: tuple[Operation, ...] = (
    row(
        "QLinearConv",
        q_linear_conv,
        infer=infer_conv,
        inputs=(8, 9),
        attributes=(
            *_MOVES,
            _LAST,
            Attribute("group", "int", 1),
            Attribute("dilations", "ints", None),
            Attribute("kernel_shape", "ints", None),
        ),
        types=(
            BYTES,
            SCALES,
            BYTES,
            BYTES,
            SCALES,
            BYTES,
            SCALES,
            BYTES,
            frozenset({ElementType.I32}),
        ),
    ),
    row(
        "QLinearAveragePool",
        q_linear_average_pool,
        infer=infer_pool,
        inputs=(4, 5),
        optional_inputs=frozenset({2}),
        attributes=(
            *_MOVES,
            _LAST,
            _KERNEL,
            Attribute("ceil_mode", "int", 0),
            Attribute("count_include_pad", "int", 0),
        ),
        types=_OF_ONE,
    ),
    row(
        "QLinearGlobalAveragePool",
        q_linear_global_average_pool,
        infer=infer_global_pool,
        inputs=(5, 5),
        attributes=(_LAST,),
        types=_OF_ONE,
    ),
    row(
        "NhwcMaxPool",
        nhwc_max_pool,
        infer=infer_pool,
        attributes=(
            *_MOVES,
            _KERNEL,
            Attribute("ceil_mode", "int", 0),
            Attribute("dilations", "ints", None),
        ),
        types=(BYTES,),
    ),
)
