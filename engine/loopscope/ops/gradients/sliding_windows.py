"""Derivatives of convolutions and poolings.

Each position gets the adjoints of the windows that contain it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.window import per_axis

_ONE, _FIRST, _NOTHING = np.array([1]), np.array(0), np.array([0, 0])


@dataclass(frozen=True, slots=True)
class _Steps:
    """Strides, dilations and padding of windows, for each spatial axis."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @staticmethod
    def of(node: Reverse, axes: int) -> _Steps:
        """Return the steps of an operation; the padding is 0 unless it is explicit."""
        attributes = node.attributes
        strides, dilations = (
            per_axis(attributes.get(name, ()), axes, 1, name) for name in ("strides", "dilations")
        )
        begin, end = (
            per_axis(attributes[name], axes, 0, name) for name in ("pads_begin", "pads_end")
        )
        explicit = attributes["auto_pad"] == "explicit"
        return _Steps(
            strides, dilations, begin if explicit else (0,) * axes, end if explicit else (0,) * axes
        )

    def unpadded(self) -> _Steps:
        """Return the same steps over data that is already padded."""
        return _Steps(self.strides, self.dilations, (0,) * len(self.begin), (0,) * len(self.end))

    def attributes(self) -> dict[str, object]:
        """Return the attributes of a convolution."""
        return {
            "strides": self.strides,
            "dilations": self.dilations,
            "pads_begin": self.begin,
            "pads_end": self.end,
            "auto_pad": "explicit",
        }


def convolution(node: Reverse, /) -> Adjoints:
    """Return a transposed convolution, and a convolution of the data with the adjoint."""
    return _convolution(node, "ConvolutionBackpropData")


def group_convolution(node: Reverse, /) -> Adjoints:
    """Return the adjoints of a convolution within each group."""
    return _convolution(node, "GroupConvolutionBackpropData")


def _convolution(node: Reverse, transposed: str) -> Adjoints:
    data, filters = node.inputs
    steps = _Steps.of(node, _axes(data))
    if not node.attributes["auto_pad"].startswith("same"):
        of_data = _spread(node, transposed, node.adjoint, filters, data, steps)
        return of_data, _of_filters(node, data, node.adjoint, filters, steps)
    reach = _reach(
        node,
        _lengths(node, node.adjoint, 2),
        _lengths(node, filters, filters.rank or 0, data),
        steps,
    )
    begin, end = _same(node, node.ops.maximum(reach - _lengths(node, data, 2), _FIRST))
    begin, end = (node.ops.concat(_NOTHING, widths, axis=0) for widths in (begin, end))
    padded = node.ops.pad(data, begin, end, pad_mode="constant")
    of_padded = _spread(node, transposed, node.adjoint, filters, padded, steps)
    of_data = node.ops.pad(of_padded, -begin, -end, pad_mode="constant")
    return of_data, _of_filters(node, padded, node.adjoint, filters, steps)


def convolution_backprop_data(node: Reverse, /) -> Adjoints:
    """Return the adjoints: a convolution, and a convolution of the adjoint with the data."""
    return _transposed(node, "Convolution")


def group_convolution_backprop_data(node: Reverse, /) -> Adjoints:
    """Return the adjoints of a transposed convolution within each group."""
    return _transposed(node, "GroupConvolution")


def _transposed(node: Reverse, convolution: str) -> Adjoints:
    data, filters, *shape = node.inputs
    axes = _axes(data)
    steps = _Steps.of(node, axes)
    extra = per_axis(node.attributes["output_padding"], axes, 0, "output_padding")
    adjoint = node.adjoint
    if shape or any(extra):
        # Pad the adjoint to the length that all filters cover; the output is a part of it.
        reach = _reach(
            node, _lengths(node, data, 2), _lengths(node, filters, filters.rank or 0, data), steps
        )
        lengths = _lengths(node, adjoint, 2)
        begin: Value | np.ndarray = np.array(steps.begin)
        if shape and node.attributes["auto_pad"].startswith("same"):
            # The output is cropped here, so the odd element is cropped at the beginning where
            # padding would add it at the end.
            _, begin = _same(node, node.ops.maximum(reach + np.array(extra) - lengths, _FIRST))
        ends = (
            node.ops.concat(_NOTHING, widths, axis=0) for widths in (begin, reach - lengths - begin)
        )
        adjoint, steps = node.ops.pad(adjoint, *ends, pad_mode="constant"), steps.unpadded()
    (of_data,) = node.several(convolution, adjoint, filters, **steps.attributes())
    return (of_data, _of_filters(node, adjoint, data, filters, steps), *[None] * len(shape))


def _axes(data: Value) -> int:
    if data.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    return data.rank - 2


def _lengths(node: Reverse, value: Value, leading: int, like: Value | None = None) -> Value:
    """Return the lengths after the leading axes; with ``like``, as many as it has spatial axes."""
    rank = value.rank or 0
    first = leading if like is None else rank - _axes(like)
    dimensions = (value.shape.dimensions or ())[first:]
    if all(dimension.is_static for dimension in dimensions):
        return node.constant(np.array([dimension.length for dimension in dimensions], np.int64))
    return node.ops.slice(node.shape_of(value), np.array([first]), np.array([rank]), _ONE)


def _reach(node: Reverse, places: Value, kernel: Value, steps: _Steps) -> Value:
    """Return the distance from the first window's first element to the last window's last one."""
    return (places - 1) * np.array(steps.strides) + (kernel - 1) * np.array(steps.dilations) + 1


def _same(node: Reverse, total: Value) -> tuple[Value, Value]:
    """Return the padding at both ends; ``same_upper`` puts an odd element at the end."""
    smaller = node.ops.divide(total, np.array(2))
    larger = total - smaller
    return (smaller, larger) if node.attributes["auto_pad"] == "same_upper" else (larger, smaller)


def _spread(
    node: Reverse, transposed: str, adjoint: Value, filters: Value, data: Value, steps: _Steps
) -> Value:
    """Return the adjoint of the data: a transposed convolution with the data's lengths."""
    attributes = steps.attributes()
    lengths, places, kernel = (
        [
            dimension.length if dimension.is_static else None
            for dimension in (value.shape.dimensions or ())[-_axes(data) :]
        ]
        for value in (data, adjoint, filters)
    )
    missing: list[int] = []
    for axis, (length, count, size) in enumerate(zip(lengths, places, kernel, strict=True)):
        if length is not None and count is not None and size is not None:
            reach = (count - 1) * steps.strides[axis] + (size - 1) * steps.dilations[axis] + 1
            missing.append(length + steps.begin[axis] + steps.end[axis] - reach)
    if len(missing) == len(lengths) and all(width >= 0 for width in missing):
        (of_data,) = node.several(
            transposed, adjoint, filters, **attributes, output_padding=tuple(missing)
        )
    else:
        (of_data,) = node.several(
            transposed, adjoint, filters, _lengths(node, data, 2), **attributes
        )
    return of_data


def _of_filters(node: Reverse, data: Value, adjoint: Value, filters: Value, steps: _Steps) -> Value:
    """Return the adjoint of the filters.

    It is a convolution with the data's channels as batch and the adjoint's channels as filters.
    Strides and dilations are exchanged.
    """
    axes = _axes(data)
    attributes = _Steps(steps.dilations, steps.strides, steps.begin, steps.end).attributes()
    rest = range(2, 2 + axes)
    if filters.rank == axes + 2:
        swap = np.array([1, 0, *rest])
        rows, columns = node.ops.transpose(data, swap), node.ops.transpose(adjoint, swap)
        (convolved,) = node.several("Convolution", rows, columns, **attributes)
        return _crop_to(node, node.ops.transpose(convolved, swap), filters, axes)
    rest = range(3, 3 + axes)
    grouped = node.ops.transpose(_split_groups(node, data, filters), np.array([2, 1, 0, *rest]))
    rows = node.ops.reshape(grouped, _merged_shape(node, grouped), special_zero=False)
    columns = node.ops.transpose(_split_groups(node, adjoint, filters), np.array([1, 2, 0, *rest]))
    (convolved,) = node.several("GroupConvolution", rows, columns, **attributes)
    return _crop_to(
        node,
        node.ops.transpose(_split_groups(node, convolved, filters), np.array([1, 2, 0, *rest])),
        filters,
        axes,
    )


def _split_groups(node: Reverse, value: Value, filters: Value) -> Value:
    """Reshape ``[A, G*B, lengths...]`` to ``[A, G, B, lengths...]``."""
    batch, groups = (
        node.ops.slice(node.shape_of(tensor), np.array([0]), _ONE, _ONE)
        for tensor in (value, filters)
    )
    shape = node.ops.concat(batch, groups, np.array([-1]), _lengths(node, value, 2), axis=0)
    return node.ops.reshape(value, shape, special_zero=False)


def _merged_shape(node: Reverse, grouped: Value) -> Value:
    """Return the shape ``[A, G*B, lengths...]`` for ``[A, G, B, lengths...]``."""
    batch = node.ops.slice(node.shape_of(grouped), np.array([0]), _ONE, _ONE)
    return node.ops.concat(batch, np.array([-1]), _lengths(node, grouped, 3), axis=0)


def _crop_to(node: Reverse, result: Value, filters: Value, axes: int) -> Value:
    """Crop to the kernel.

    A stride that does not divide the length produces additional positions.
    """
    if result.shape.is_static and result.shape == filters.shape:
        return result
    kernel = _lengths(
        node, filters, filters.rank or 0, result if filters.rank == axes + 2 else None
    )
    axes_cropped = range(-axes, 0)
    if filters.rank != axes + 2:
        kernel = _lengths(node, filters, 3)
    return node.ops.slice(
        result, np.zeros(axes, np.int64), kernel, np.ones(axes, np.int64), np.array(axes_cropped)
    )


def max_pool(node: Reverse, /) -> Adjoints:
    """Pass the adjoint to the first maximum of each window, as in PyTorch.

    A window that contains only padding passes nothing back.
    """
    data, attributes = node.inputs[0], dict(node.attributes)
    attributes |= {
        "axis": 0,
        "index_element_type": "i64",
        "dilations": attributes.get("dilations", ()),
    }
    _, places = node.several("MaxPool", data, **attributes)
    row = np.array([-1])
    flat, places, adjoint = (
        node.ops.reshape(tensor, row, special_zero=False) for tensor in (data, places, node.adjoint)
    )
    if attributes["rounding_type"] != "floor":
        maxima = node.ops.gather(flat, places, _FIRST, batch_dims=0)
        adjoint = node.where(
            node.ops.equal(maxima, node.ops.reshape(node.outputs[0], row, special_zero=False)),
            adjoint,
        )
    sums = node.ops.scatter_elements_update(
        node.zeros_like(flat), places, adjoint, _FIRST, reduction="sum", use_init_val=True
    )
    return (node.reshaped(sums, data),)


def average_pool(node: Reverse, /) -> Adjoints:
    """Spread the adjoint over the elements of each window by a transposed convolution with ones."""
    data, axes = node.inputs[0], _axes(node.inputs[0])
    steps, kernel = _Steps.of(node, axes), np.array(node.attributes["kernel"])
    lengths, places = _lengths(node, data, 2), _lengths(node, node.adjoint, 2)
    reach = _reach(node, places, node.constant(kernel), steps)
    begin, padding = _surrounding(node, lengths, steps)
    front = node.ops.concat(_NOTHING, begin, axis=0)
    back = node.ops.concat(_NOTHING, reach - lengths - begin, axis=0)
    dtype = data.element_type.dtype if data.element_type else np.dtype(np.float32)
    ones, plain = np.ones((1, 1, *kernel), dtype), steps.unpadded().attributes()
    ones_image = node.ops.broadcast(
        np.ones((), dtype), node.ops.concat(np.array([1, 1]), lengths, axis=0), mode="numpy"
    )
    (covered,) = node.several(
        "Convolution", node.ops.pad(ones_image, front, back, pad_mode="constant"), ones, **plain
    )
    covered = node.ops.maximum(covered, np.ones((), dtype))
    if not node.attributes["exclude_pad"]:
        covered = node.ops.select(padding, np.full((), math.prod(kernel), dtype), covered)
    rows = node.ops.reshape(
        node.adjoint / covered,
        node.ops.concat(np.array([-1, 1]), places, axis=0),
        special_zero=False,
    )
    (spread,) = node.several("ConvolutionBackpropData", rows, ones, **plain)
    return (node.reshaped(node.ops.pad(spread, -front, -back, pad_mode="constant"), data),)


def _surrounding(
    node: Reverse, lengths: Value, steps: _Steps
) -> tuple[Value | np.ndarray, Value | np.ndarray]:
    """Return the padding at the beginning of each axis, and True if any padding exists."""
    if not node.attributes["auto_pad"].startswith("same"):
        return np.array(steps.begin), np.array(any(steps.begin) or any(steps.end))
    strides = np.array(steps.strides)
    places = node.ops.divide(lengths + (strides - 1), strides)
    kernel: Sequence[int] = node.attributes["kernel"]
    total = node.ops.maximum(
        _reach(node, places, node.constant(np.array(kernel)), steps) - lengths, _FIRST
    )
    return _same(node, total)[0], node.ops.greater(
        node.ops.reduce_max(total, _FIRST, keep_dims=False), _FIRST
    )
