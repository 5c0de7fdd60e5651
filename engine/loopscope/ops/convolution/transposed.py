"""ConvolutionBackpropData and GroupConvolutionBackpropData: each input value adds its filters to
the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape
from loopscope.ops.convolution.dense import groups_of, spatial_axes
from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import common_type, spelled
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.window import Lengths, overlap, per_axis, span


def convolution_backprop_data(
    data: Array,
    filters: Array,
    output_shape: Array | None = None,
    /,
    *,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    dilations: Lengths,
    auto_pad: str,
    output_padding: Lengths,
) -> Array:
    """Convolve transposed over 1 to 3 spatial axes.

    ``[N, I, lengths...] x [I, O, kernel...] -> [N, O, places...]``; ``output_shape`` gives the
    spatial lengths instead of the padding. Spec: convolution/convolution-backprop-data-1.
    """
    return group_convolution_backprop_data(
        data,
        filters[None],
        output_shape,
        strides=strides,
        pads_begin=pads_begin,
        pads_end=pads_end,
        dilations=dilations,
        auto_pad=auto_pad,
        output_padding=output_padding,
    )


def group_convolution_backprop_data(
    data: Array,
    filters: Array,
    output_shape: Array | None = None,
    /,
    *,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    dilations: Lengths,
    auto_pad: str,
    output_padding: Lengths,
) -> Array:
    """Convolve transposed within each group of channels.

    ``[N, G*I, lengths...] x [G, I, O, kernel...] -> [N, G*O, places...]``. Spec:
    convolution/group-convolution-backprop-data-1.
    """
    axes = data.ndim - 2
    if not 1 <= axes <= 3 or filters.ndim != axes + 3:
        raise ValueError(
            f"data of shape {list(data.shape)} and filters of rank {filters.ndim - 1} do not fit"
        )
    groups, inputs, outputs, *kernel = filters.shape
    if data.shape[1] != groups * inputs:
        raise ValueError(
            f"the data has {data.shape[1]} channels, the filters expect {groups * inputs}"
        )
    strides = per_axis(strides, axes, 1, "strides")
    dilations = per_axis(dilations, axes, 1, "dilations")
    lengths, begin = [], []
    requested = (
        None
        if output_shape is None
        else [int(length) for length in np.asarray(output_shape).reshape(-1)]
    )
    if requested is not None and len(requested) != axes:
        raise ValueError(f"output_shape {requested[:8]} does not name {axes} spatial lengths")
    extra = per_axis(output_padding, axes, 0, "output_padding")
    low, high = per_axis(pads_begin, axes, 0, "pads_begin"), per_axis(pads_end, axes, 0, "pads_end")
    for axis in range(axes):
        full = (
            _spread_length(data.shape[2 + axis], strides[axis], kernel[axis], dilations[axis])
            + extra[axis]
        )
        length, cut = _cut(
            full, None if requested is None else requested[axis], low[axis], high[axis], auto_pad
        )
        lengths.append(length)
        begin.append(cut)
    batch = data.shape[0]
    check_elements(
        batch * groups * outputs * prod(lengths), "the result of the transposed convolution"
    )
    grouped = computable(data).reshape(batch, groups, inputs, *data.shape[2:])
    result = _spread(grouped, computable(filters), tuple(lengths), strides, dilations, tuple(begin))
    return rounded(result.reshape(batch, groups * outputs, *lengths), data.dtype)


def _cut(full: int, requested: int | None, low: int, high: int, auto_pad: str) -> tuple[int, int]:
    """Return the length of the result along an axis, and the number of elements cut from the begin
    of the full result.
    """
    if auto_pad == "valid":
        low = high = 0
    if requested is not None:
        if requested < 0:
            raise ValueError(f"output_shape has the negative length {requested}")
        total = max(0, full - requested)
        # The output is cut, so same_upper takes the odd element from the begin.
        return requested, {"same_upper": total - total // 2, "same_lower": total // 2}.get(
            auto_pad, low
        )
    if auto_pad != "explicit":
        low = high = 0
    if full < low + high:
        raise ValueError(f"padding {low} and {high} cuts more than the whole length of {full}")
    return full - low - high, low


def _spread(
    data: Array,
    filters: Array,
    lengths: Lengths,
    strides: Lengths,
    dilations: Lengths,
    begin: Lengths,
) -> Array:
    """Compute ``[N, G, I, in...] x [G, I, O, kernel...] -> [N, G, O, lengths...]``.

    One product is followed by one strided sum for each kernel position.
    """
    batch, groups, inputs, *inner = data.shape
    outputs, kernel = filters.shape[2], filters.shape[3:]
    result = np.zeros((batch, groups, outputs, *lengths), data.dtype)
    if not result.size or not data.size:
        return result
    transposed = np.ascontiguousarray(filters.reshape(groups, inputs, -1).swapaxes(1, 2))
    for image in range(batch):
        product = np.matmul(transposed, data[image].reshape(groups, inputs, -1)).reshape(
            groups, outputs, *kernel, *inner
        )
        for place in np.ndindex(*kernel):
            targets, sources = [], []
            for axis, tap in enumerate(place):
                target, source = overlap(
                    tap * dilations[axis] - begin[axis], strides[axis], inner[axis], lengths[axis]
                )
                targets.append(target)
                sources.append(source)
            target_of: tuple[Any, ...] = (image, slice(None), slice(None), *targets)
            source_of: tuple[Any, ...] = (slice(None), slice(None), *place, *sources)
            result[target_of] += product[source_of]
    return result


def infer_convolution_backprop_data(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch of the data, channels of the filters, and lengths from ``output_shape`` or the
    formula.
    """
    return _infer(inputs, attributes, grouped=False)


def infer_group_convolution_backprop_data(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer as for ConvolutionBackpropData, with the channels of all groups."""
    return _infer(inputs, attributes, grouped=True)


def _infer(
    inputs: Sequence[Known], attributes: Mapping[str, Any], *, grouped: bool
) -> tuple[Known, ...]:
    element_type = common_type(inputs[:2])
    leading = 3 if grouped else 2
    axes = spatial_axes(inputs[0], inputs[1], leading, attributes)
    if axes is None:
        return (Known(element_type),)
    data, filters = inputs[0].shape, inputs[1].shape
    expected = filters.at(0) if not grouped else filters.at(0) * filters.at(1)
    if filters.dimensions is not None and data.at(1).intersect(expected) is None:
        raise ValueError(f"the data has {data.at(1)} channels, the filters expect {expected}")
    channels = filters.at(1) if not grouped else groups_of(data, filters, 1) * filters.at(2)
    kernel = [filters.at(leading + axis) if filters.dimensions else UNKNOWN for axis in range(axes)]
    lengths = [_infer_length(inputs, attributes, axis, axes, kernel[axis]) for axis in range(axes)]
    return (Known(element_type, PartialShape((data.at(0), channels, *lengths))),)


def _infer_length(
    inputs: Sequence[Known], attributes: Mapping[str, Any], axis: int, axes: int, kernel: Dimension
) -> Dimension:
    if len(inputs) > 2:
        requested = spelled(inputs[2]).dimensions
        return requested[axis] if requested is not None and len(requested) == axes else UNKNOWN
    length = inputs[0].shape.at(2 + axis)
    stride = per_axis(attributes["strides"], axes, 1, "strides")[axis]
    dilation = per_axis(attributes["dilations"], axes, 1, "dilations")[axis]
    change = per_axis(attributes["output_padding"], axes, 0, "output_padding")[axis]
    if attributes["auto_pad"] == "explicit":
        change -= per_axis(attributes["pads_begin"], axes, 0, "pads_begin")[axis]
        change -= per_axis(attributes["pads_end"], axes, 0, "pads_end")[axis]
    lower = _spread_length(length.least, stride, max(1, kernel.least), dilation) + change
    if length.most is None or kernel.most is None:
        return Dimension(max(0, lower))
    upper = _spread_length(length.most, stride, kernel.most, dilation) + change
    if upper < 0:
        raise ValueError("padding cuts more than the whole length")
    return Dimension(max(0, lower), upper)


def _spread_length(length: int, stride: int, kernel: int, dilation: int) -> int:
    """Return the length of an axis after each value is replaced by its filter; an empty axis counts
    as one value.

    This is OpenVINO's rule.
    """
    return stride * (max(1, length) - 1) + span(kernel, dilation)
