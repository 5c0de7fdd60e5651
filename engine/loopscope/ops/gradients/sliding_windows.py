"""Derivatives of convolutions and poolings: each place of a window gets what the windows over it
got.
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
    """How windows lie, for each spatial axis."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @staticmethod
    def of(at: Reverse, axes: int) -> _Steps:
        """Padding is 0 unless it is explicit."""
        found = at.attributes
        strides, dilations = (
            per_axis(found.get(name, ()), axes, 1, name) for name in ("strides", "dilations")
        )
        begin, end = (per_axis(found[name], axes, 0, name) for name in ("pads_begin", "pads_end"))
        explicit = found["auto_pad"] == "explicit"
        return _Steps(
            strides, dilations, begin if explicit else (0,) * axes, end if explicit else (0,) * axes
        )

    def unpadded(self) -> _Steps:
        """The same over data that has its padding."""
        return _Steps(self.strides, self.dilations, (0,) * len(self.begin), (0,) * len(self.end))

    def attributes(self) -> dict[str, object]:
        """As attributes of a convolution."""
        return {
            "strides": self.strides,
            "dilations": self.dilations,
            "pads_begin": self.begin,
            "pads_end": self.end,
            "auto_pad": "explicit",
        }


def convolution(at: Reverse, /) -> Adjoints:
    """The data gets a transposed convolution, the filters a convolution of the data with the
    adjoint.
    """
    return _convolution(at, "ConvolutionBackpropData")


def group_convolution(at: Reverse, /) -> Adjoints:
    """As Convolution within each group."""
    return _convolution(at, "GroupConvolutionBackpropData")


def _convolution(at: Reverse, transposed: str) -> Adjoints:
    data, filters = at.inputs
    steps = _Steps.of(at, _axes(data))
    if not at.attributes["auto_pad"].startswith("same"):
        of_data = _spread(at, transposed, at.adjoint, filters, data, steps)
        return of_data, _of_filters(at, data, at.adjoint, filters, steps)
    reach = _reach(
        at, _lengths(at, at.adjoint, 2), _lengths(at, filters, filters.rank or 0, data), steps
    )
    begin, end = _same(at, at.ops.maximum(reach - _lengths(at, data, 2), _FIRST))
    begin, end = (at.ops.concat(_NOTHING, one, axis=0) for one in (begin, end))
    padded = at.ops.pad(data, begin, end, pad_mode="constant")
    of_padded = _spread(at, transposed, at.adjoint, filters, padded, steps)
    of_data = at.ops.pad(of_padded, -begin, -end, pad_mode="constant")
    return of_data, _of_filters(at, padded, at.adjoint, filters, steps)


def convolution_backprop_data(at: Reverse, /) -> Adjoints:
    """The data gets a convolution, the filters a convolution of the adjoint with the data."""
    return _transposed(at, "Convolution")


def group_convolution_backprop_data(at: Reverse, /) -> Adjoints:
    """As ConvolutionBackpropData within each group."""
    return _transposed(at, "GroupConvolution")


def _transposed(at: Reverse, convolution: str) -> Adjoints:
    data, filters, *shape = at.inputs
    axes = _axes(data)
    steps, extra = (
        _Steps.of(at, axes),
        per_axis(at.attributes["output_padding"], axes, 0, "output_padding"),
    )
    adjoint = at.adjoint
    if shape or any(extra):
        # The adjoint is brought to the length that all filters reach over, of which the output is a
        # part.
        reach = _reach(
            at, _lengths(at, data, 2), _lengths(at, filters, filters.rank or 0, data), steps
        )
        wanted = _lengths(at, adjoint, 2)
        begin: Value | np.ndarray = np.array(steps.begin)
        if shape and at.attributes["auto_pad"].startswith("same"):
            # It is the output that is cut, so the odd one is cut from the beginning where it would
            # be added at the end.
            _, begin = _same(at, at.ops.maximum(reach + np.array(extra) - wanted, _FIRST))
        ends = (at.ops.concat(_NOTHING, one, axis=0) for one in (begin, reach - wanted - begin))
        adjoint, steps = at.ops.pad(adjoint, *ends, pad_mode="constant"), steps.unpadded()
    (of_data,) = at.several(convolution, adjoint, filters, **steps.attributes())
    return (of_data, _of_filters(at, adjoint, data, filters, steps), *[None] * len(shape))


def _axes(data: Value) -> int:
    if data.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    return data.rank - 2


def _lengths(at: Reverse, value: Value, leading: int, like: Value | None = None) -> Value:
    """The lengths after the leading axes; with ``like`` the last ones, as many as that has after
    batch and channels.
    """
    rank = value.rank or 0
    first = leading if like is None else rank - _axes(like)
    dimensions = (value.shape.dimensions or ())[first:]
    if all(one.is_static for one in dimensions):
        return at.constant(np.array([one.length for one in dimensions], np.int64))
    return at.ops.slice(at.shape_of(value), np.array([first]), np.array([rank]), _ONE)


def _reach(at: Reverse, places: Value, kernel: Value, steps: _Steps) -> Value:
    """From the first element of the first window to the last of the last one."""
    return (places - 1) * np.array(steps.strides) + (kernel - 1) * np.array(steps.dilations) + 1


def _same(at: Reverse, total: Value) -> tuple[Value, Value]:
    """Padding at both ends; of an odd number one more at the end with ``same_upper``."""
    less = at.ops.divide(total, np.array(2))
    more = total - less
    return (less, more) if at.attributes["auto_pad"] == "same_upper" else (more, less)


def _spread(
    at: Reverse, transposed: str, adjoint: Value, filters: Value, data: Value, steps: _Steps
) -> Value:
    """The adjoint of the data: each place's filters, weighed by the adjoint, at the length of
    the data.
    """
    attributes = steps.attributes()
    lengths, places, kernel = (
        [
            one.length if one.is_static else None
            for one in (value.shape.dimensions or ())[-_axes(data) :]
        ]
        for value in (data, adjoint, filters)
    )
    missing: list[int] = []
    for axis, (length, count, size) in enumerate(zip(lengths, places, kernel, strict=True)):
        if length is not None and count is not None and size is not None:
            reach = (count - 1) * steps.strides[axis] + (size - 1) * steps.dilations[axis] + 1
            missing.append(length + steps.begin[axis] + steps.end[axis] - reach)
    if len(missing) == len(lengths) and all(one >= 0 for one in missing):
        (found,) = at.several(
            transposed, adjoint, filters, **attributes, output_padding=tuple(missing)
        )
    else:
        (found,) = at.several(transposed, adjoint, filters, _lengths(at, data, 2), **attributes)
    return found


def _of_filters(at: Reverse, data: Value, adjoint: Value, filters: Value, steps: _Steps) -> Value:
    """The data as a batch of its channels, the adjoint as filters of its channels: strides and
    dilations change places.
    """
    axes = _axes(data)
    turned = _Steps(steps.dilations, steps.strides, steps.begin, steps.end).attributes()
    rest = range(2, 2 + axes)
    if filters.rank == axes + 2:
        swap = np.array([1, 0, *rest])
        rows, columns = at.ops.transpose(data, swap), at.ops.transpose(adjoint, swap)
        (found,) = at.several("Convolution", rows, columns, **turned)
        return _cut_to(at, at.ops.transpose(found, swap), filters, axes)
    rest = range(3, 3 + axes)
    apart = at.ops.transpose(_groups_apart(at, data, filters), np.array([2, 1, 0, *rest]))
    rows = at.ops.reshape(apart, _joined_shape(at, apart), special_zero=False)
    columns = at.ops.transpose(_groups_apart(at, adjoint, filters), np.array([1, 2, 0, *rest]))
    (found,) = at.several("GroupConvolution", rows, columns, **turned)
    return _cut_to(
        at,
        at.ops.transpose(_groups_apart(at, found, filters), np.array([1, 2, 0, *rest])),
        filters,
        axes,
    )


def _groups_apart(at: Reverse, value: Value, filters: Value) -> Value:
    """``[A, G*B, lengths...] -> [A, G, B, lengths...]``."""
    batch, groups = (
        at.ops.slice(at.shape_of(one), np.array([0]), _ONE, _ONE) for one in (value, filters)
    )
    shape = at.ops.concat(batch, groups, np.array([-1]), _lengths(at, value, 2), axis=0)
    return at.ops.reshape(value, shape, special_zero=False)


def _joined_shape(at: Reverse, apart: Value) -> Value:
    """Of ``[A, G, B, lengths...]`` the shape ``[A, G*B, lengths...]``."""
    batch = at.ops.slice(at.shape_of(apart), np.array([0]), _ONE, _ONE)
    return at.ops.concat(batch, np.array([-1]), _lengths(at, apart, 3), axis=0)


def _cut_to(at: Reverse, found: Value, filters: Value, axes: int) -> Value:
    """Without the places beyond the kernel, which a stride that leaves a rest gives."""
    if found.shape.is_static and found.shape == filters.shape:
        return found
    kernel, along = (
        _lengths(at, filters, filters.rank or 0, found if filters.rank == axes + 2 else None),
        range(-axes, 0),
    )
    if filters.rank != axes + 2:
        kernel = _lengths(at, filters, 3)
    return at.ops.slice(
        found, np.zeros(axes, np.int64), kernel, np.ones(axes, np.int64), np.array(along)
    )


def max_pool(at: Reverse, /) -> Adjoints:
    """The first of the greatest elements of each window, as PyTorch has it; a window over
    nothing but padding gives nothing back.
    """
    data, attributes = at.inputs[0], dict(at.attributes)
    attributes |= {
        "axis": 0,
        "index_element_type": "i64",
        "dilations": attributes.get("dilations", ()),
    }
    _, places = at.several("MaxPool", data, **attributes)
    row = np.array([-1])
    flat, places, adjoint = (
        at.ops.reshape(one, row, special_zero=False) for one in (data, places, at.adjoint)
    )
    if attributes["rounding_type"] != "floor":
        taken = at.ops.gather(flat, places, _FIRST, batch_dims=0)
        adjoint = at.where(
            at.ops.equal(taken, at.ops.reshape(at.outputs[0], row, special_zero=False)), adjoint
        )
    found = at.ops.scatter_elements_update(
        at.zeros_like(flat), places, adjoint, _FIRST, reduction="sum", use_init_val=True
    )
    return (at.reshaped(found, data),)


def average_pool(at: Reverse, /) -> Adjoints:
    """Each element of a window gets its part: spread by a transposed convolution with ones."""
    data, axes = at.inputs[0], _axes(at.inputs[0])
    steps, kernel = _Steps.of(at, axes), np.array(at.attributes["kernel"])
    lengths, places = _lengths(at, data, 2), _lengths(at, at.adjoint, 2)
    reach = _reach(at, places, at.constant(kernel), steps)
    begin, padding = _surrounding(at, lengths, steps)
    front = at.ops.concat(_NOTHING, begin, axis=0)
    back = at.ops.concat(_NOTHING, reach - lengths - begin, axis=0)
    dtype = data.element_type.dtype if data.element_type else np.dtype(np.float32)
    ones, plain = np.ones((1, 1, *kernel), dtype), steps.unpadded().attributes()
    whole = at.ops.broadcast(
        np.ones((), dtype), at.ops.concat(np.array([1, 1]), lengths, axis=0), mode="numpy"
    )
    (covered,) = at.several(
        "Convolution", at.ops.pad(whole, front, back, pad_mode="constant"), ones, **plain
    )
    covered = at.ops.maximum(covered, np.ones((), dtype))
    if not at.attributes["exclude_pad"]:
        covered = at.ops.select(padding, np.full((), math.prod(kernel), dtype), covered)
    rows = at.ops.reshape(
        at.adjoint / covered, at.ops.concat(np.array([-1, 1]), places, axis=0), special_zero=False
    )
    (found,) = at.several("ConvolutionBackpropData", rows, ones, **plain)
    return (at.reshaped(at.ops.pad(found, -front, -back, pad_mode="constant"), data),)


def _surrounding(
    at: Reverse, lengths: Value, steps: _Steps
) -> tuple[Value | np.ndarray, Value | np.ndarray]:
    """Padding at the beginning of each axis, and whether there is any padding at all."""
    if not at.attributes["auto_pad"].startswith("same"):
        return np.array(steps.begin), np.array(any(steps.begin) or any(steps.end))
    strides = np.array(steps.strides)
    places = at.ops.divide(lengths + (strides - 1), strides)
    kernel: Sequence[int] = at.attributes["kernel"]
    total = at.ops.maximum(
        _reach(at, places, at.constant(np.array(kernel)), steps) - lengths, _FIRST
    )
    return _same(at, total)[0], at.ops.greater(
        at.ops.reduce_max(total, _FIRST, keep_dims=False), _FIRST
    )
