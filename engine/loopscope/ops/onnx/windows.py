"""ONNX's convolutions and poolings by the kernels of OpenVINO operations: all attributes, any
number of groups, 1 to 3 axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.convolution.deformable_and_binary import deformable_convolution
from loopscope.ops.convolution.dense import group_convolution
from loopscope.ops.convolution.transposed import group_convolution_backprop_data
from loopscope.ops.declare import Kernel
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.pooling import largest, max_pool_with_indices
from loopscope.ops.pooling_windows import WindowFrame, combined, frame_of, summed_in_order
from loopscope.ops.window import Lengths, per_axis

Attributes = Mapping[str, Any]
_AUTO_PADS = {
    "NOTSET": "explicit",
    "SAME_UPPER": "same_upper",
    "SAME_LOWER": "same_lower",
    "VALID": "valid",
}


def window_of(attributes: Attributes, axes: int) -> Mapping[str, Any]:
    """Return strides, dilations and padding by the names that the kernels of OpenVINO operations
    use.
    """
    auto_pad = attributes.get("auto_pad", "NOTSET")
    if auto_pad not in _AUTO_PADS:
        raise ValueError(
            f"auto_pad is {str(auto_pad)[:40]!r}, expected one of {', '.join(_AUTO_PADS)}"
        )
    strides, dilations, padding = (
        tuple(attributes.get(name) or ()) for name in ("strides", "dilations", "pads")
    )
    return _window(axes, auto_pad, strides, dilations, padding)


@lru_cache(maxsize=256)
def _window(
    axes: int, auto_pad: str, strides: Lengths, dilations: Lengths, padding: Lengths
) -> Mapping[str, Any]:
    strides = per_axis(strides, axes, 1, "strides")
    dilations = per_axis(dilations, axes, 1, "dilations")
    if min(*strides, *dilations) < 1:
        raise ValueError(
            f"the strides are {list(strides)} and the dilations {list(dilations)}, "
            "expected numbers of at least 1"
        )
    padding = per_axis(padding, 2 * axes, 0, "pads")
    return {
        "strides": strides,
        "dilations": dilations,
        "auto_pad": _AUTO_PADS[auto_pad],
        "pads_begin": padding[:axes],
        "pads_end": padding[axes:],
    }


def _spatial_axes(data: np.ndarray, filters: np.ndarray) -> int:
    if data.ndim < 3 or filters.ndim != data.ndim:
        raise ValueError(
            f"data of shape {list(data.shape)} and filters of shape {list(filters.shape)}: "
            "expected [N, C, lengths...] twice"
        )
    return data.ndim - 2


def _groups(attributes: Attributes, data: np.ndarray, channels: int) -> int:
    """Return the number of groups. ``channels`` is the number of filters' channels that the groups
    share.
    """
    groups = int(attributes.get("group", 1))
    if groups < 1 or channels % groups or data.shape[1] % groups:
        raise ValueError(
            f"{groups} groups do not divide {data.shape[1]} channels and {channels} filters"
        )
    return groups


def _add_bias(result: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Return the sum of a new array, which may be overwritten, and a bias for each channel."""
    if bias is None:
        return result
    column = bias.reshape(-1, *[1] * (result.ndim - 2))
    if result.dtype != bias.dtype or len(column) not in (1, result.shape[1]):
        return result + column
    result += column
    return result


def conv(
    data: np.ndarray, filters: np.ndarray, bias: np.ndarray | None = None, /, **attributes: Any
) -> np.ndarray:
    """Return the correlation with filters, plus a bias ``[O]``, as ``convolved``."""
    return np.asarray(_add_bias(convolved(data, filters, attributes), bias))


def convolved(data: np.ndarray, filters: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Return ``[N, C, lengths...] x [O, C / group, kernel...] -> [N, O, places...]`` with the
    attributes of Conv.
    """
    window = window_of(attributes, _spatial_axes(data, filters))
    groups = _groups(attributes, data, len(filters))
    return group_convolution(data, filters.reshape(groups, -1, *filters.shape[1:]), **window)


def deform_conv(
    data: np.ndarray,
    filters: np.ndarray,
    offsets: np.ndarray,
    bias: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    /,
    **attributes: Any,
) -> np.ndarray:
    """Return the correlation with filters whose elements are moved by the offsets. All elements
    outside the image are 0, and positions at the border are interpolated with these zeros.
    """
    result = deformable_convolution(
        data,
        offsets,
        filters,
        mask,
        **window_of(attributes, 2),
        group=int(attributes.get("group", 1)),
        deformable_group=int(attributes.get("offset_group", 1)),
        bilinear_interpolation_pad=True,
    )
    return _add_bias(result, bias)


def conv_transpose(
    data: np.ndarray, filters: np.ndarray, bias: np.ndarray | None = None, /, **attributes: Any
) -> np.ndarray:
    """Return the transposed convolution. The whole result is computed without padding; then padding
    cuts off both ends, or ``output_shape`` what exceeds its length.
    """
    axes = _spatial_axes(data, filters)
    window = window_of(attributes, axes)
    groups = _groups(attributes, data, len(filters))
    more = per_axis(attributes.get("output_padding") or (), axes, 0, "output_padding")
    lengths = attributes.get("output_shape")
    if lengths is None and window["auto_pad"].startswith("same"):
        lengths = [
            length * stride
            for length, stride in zip(data.shape[2:], window["strides"], strict=True)
        ]
    none = (0,) * axes
    bare = {"pads_begin": none, "pads_end": none, "output_padding": none, "auto_pad": "explicit"}
    result = group_convolution_backprop_data(
        data, filters.reshape(groups, -1, *filters.shape[1:]), **{**window, **bare}
    )
    for axis in range(axes):
        whole = result.shape[axis + 2] + more[axis]
        if lengths is None:
            begin = window["pads_begin"][axis]
            length = whole - window["pads_begin"][axis] - window["pads_end"][axis]
        else:
            length = int(lengths[len(lengths) - axes + axis])
            spare = max(whole - length, 0)
            begin = spare // 2 if window["auto_pad"] == "same_upper" else spare - spare // 2
        if length < 0:
            raise ValueError(f"padding leaves {length} elements of axis {axis + 2}")
        result = _take_or_zero(result, axis + 2, begin, length)
    return _add_bias(result, bias)


def _take_or_zero(data: np.ndarray, axis: int, begin: int, length: int) -> np.ndarray:
    """Return ``length`` elements of an axis from ``begin``; elements beyond the data are 0."""
    part = data[(slice(None),) * axis + (slice(begin, begin + length),)]
    missing = length - part.shape[axis]
    if not missing:
        return part
    check_elements(part.size // max(part.shape[axis], 1) * length, "the output of ConvTranspose")
    return np.pad(part, [(0, missing if number == axis else 0) for number in range(part.ndim)])


def pool_of(attributes: Attributes, axes: int) -> dict[str, Any]:
    """Return the window of a pooling by the names that the kernels of OpenVINO operations use."""
    kernel = tuple(attributes["kernel_shape"])
    if len(kernel) != axes or min(kernel, default=0) < 1:
        raise ValueError(
            f"the kernel_shape is {list(kernel)[:8]} for data of {axes} spatial axes, "
            "expected a length for each axis"
        )
    rounding = "ceil_torch" if attributes.get("ceil_mode") else "floor"
    return {"kernel": kernel, "rounding_type": rounding, **window_of(attributes, len(kernel))}


def _frame(attributes: Attributes, data: np.ndarray) -> WindowFrame:
    return frame_of(
        data.shape,
        **{
            _FRAME_NAMES.get(name, name): value
            for name, value in pool_of(attributes, data.ndim - 2).items()
        },
    )


_FRAME_NAMES = {"pads_begin": "begin", "pads_end": "end", "rounding_type": "rounding"}


def average_pool(data: np.ndarray, /, **attributes: Any) -> np.ndarray:
    """Return the mean of each window. Padding counts with ``count_include_pad``; elements beyond
    the padding, which ``ceil_mode`` lets a window reach, never count.
    """
    frame = _frame(attributes, data)
    few = math.prod(frame.kernel) <= _FEW_TAPS
    return _average(summed_in_order if few else _sum, data, frame, attributes)


_FEW_TAPS = 64
"""Number of elements up to which windows are summed in the order of ONNX Runtime; for larger
windows this would take much longer than axis by axis.
"""


def average_pool_by_axes(data: np.ndarray, /, **attributes: Any) -> np.ndarray:
    """Return the mean of each window, for AveragePool before opset 19. ONNX Runtime's kernel for
    these versions sums one axis after the other, which changes the last bits.
    """
    return _average(_sum, data, _frame(attributes, data), attributes)


def _average(
    summed: Callable[[np.ndarray, WindowFrame], np.ndarray],
    data: np.ndarray,
    frame: WindowFrame,
    attributes: Attributes,
) -> np.ndarray:
    counted = [
        _count_elements(frame, axis, bool(attributes.get("count_include_pad")), attributes)
        for axis in range(len(frame.kernel))
    ]
    divisor = np.maximum(reduce(np.multiply.outer, counted), 1)
    values = summed(computable(data), frame)
    return np.asarray((values / divisor.astype(values.dtype)).astype(data.dtype))


def _sum(data: np.ndarray, frame: WindowFrame) -> np.ndarray:
    return combined(data, frame, 0, np.add)


def _count_elements(
    frame: WindowFrame, axis: int, with_padding: bool, attributes: Attributes
) -> np.ndarray:
    """Return the number of elements of each window along an axis."""
    first = np.arange(frame.counts[axis]) * frame.strides[axis] - frame.begin[axis]
    reached = first[:, None] + np.arange(frame.kernel[axis]) * frame.dilations[axis]
    before, after = (
        (frame.begin[axis], _padding_after(frame, axis, attributes)) if with_padding else (0, 0)
    )
    return np.count_nonzero((reached >= -before) & (reached < frame.lengths[axis] + after), axis=1)


def _padding_after(frame: WindowFrame, axis: int, attributes: Attributes) -> int:
    padding = attributes.get("pads")
    automatic = attributes.get("auto_pad", "NOTSET") != "NOTSET"
    return (
        frame.overhang[axis]
        if automatic
        else int(padding[len(frame.kernel) + axis])
        if padding
        else 0
    )


def max_pool(data: np.ndarray, /, *, outputs: int, **attributes: Any) -> Any:
    """Return the largest element of each window, and with two outputs its index in the whole
    tensor. With ``storage_order`` 1 the first spatial axis runs fastest in the index.
    """
    if outputs == 1:
        return largest(data, _frame(attributes, data))
    by_columns = bool(attributes.get("storage_order"))
    # In i16 the padding is less than the lowest byte, so that a lowest byte is found at its own
    # index.
    values = data.astype(np.int16) if data.dtype in (np.int8, np.uint8) else data
    values_max, indices = max_pool_with_indices(
        values,
        **pool_of(attributes, data.ndim - 2),
        index_element_type=ElementType.I64,
        axis=2 if by_columns else 0,
    )
    values_max = values_max.astype(data.dtype, copy=False)
    if not by_columns:
        return values_max, indices
    lengths = data.shape[2:]
    by_column = (
        np.ravel_multi_index(np.unravel_index(indices, lengths), lengths, order="F")
        if indices.size
        else indices
    )
    planes = np.arange(math.prod(data.shape[:2])).reshape(*data.shape[:2], *[1] * len(lengths))
    return values_max, by_column + planes * math.prod(lengths)


def lp_pool(data: np.ndarray, /, **attributes: Any) -> np.ndarray:
    """Return the p-norm of each window."""
    frame = _frame(attributes, data)
    power = attributes.get("p", 2)
    sums = combined(np.abs(computable(data)) ** power, frame, 0, np.add)
    return np.asarray(sums ** (1 / power)).astype(data.dtype)


def _over_spatial_axes(fold: Callable[..., np.ndarray]) -> Kernel:
    def kernel(data: np.ndarray, /) -> np.ndarray:
        axes = tuple(range(2, data.ndim))
        return np.asarray(fold(computable(data), axis=axes, keepdims=True)).astype(data.dtype)

    return kernel


def _mean(data: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    """Return the mean; of no elements NaN without a warning."""
    with np.errstate(invalid="ignore"):
        return np.asarray(
            data.sum(axis=axis, keepdims=keepdims) / data.dtype.type(math.prod(data.shape[2:]))
        )


global_average_pool = _over_spatial_axes(_mean)
global_max_pool = _over_spatial_axes(np.max)


def global_lp_pool(tensor: np.ndarray, /, *, p: float = 2) -> np.ndarray:
    """Return the p-norm over all spatial axes, which remain with length 1."""
    axes = tuple(range(2, tensor.ndim))
    powers = np.abs(tensor.astype(np.float64)) ** p
    return np.asarray(powers.sum(axis=axes, keepdims=True) ** (1 / p)).astype(tensor.dtype)
