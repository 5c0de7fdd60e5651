"""Data movement of com.microsoft: Pad, ExpandDims, Trilu, Unique, Range, CropAndResize."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import same
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import axis_within, check_elements, whole_number, whole_numbers
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.movement.ordering import unique as distinct
from loopscope.ops.onnx import placement

_WHOLE = frozenset({ElementType.I64})
_AXIS = frozenset({ElementType.I32})


def pad(data: Array, pads: Array, value: Array | None = None, /, *, mode: str) -> Array:
    """Compute ONNX's Pad; the padding may also have the shape ``[1, 2 rank]``."""
    return np.asarray(placement.pad(data, pads.reshape(-1), value, mode=mode))


def expand_dims(data: Array, axis: Array, /) -> Array:
    """Insert a new axis of length 1."""
    return np.expand_dims(data, axis_within(whole_number(axis), data.ndim + 1))


def trilu(data: Array, diagonal: Array | None = None, /, *, upper: int) -> Array:
    """Set matrix elements below (or, without ``upper``, above) a diagonal to 0."""
    if data.ndim < 2:
        raise ValueError(f"the data has shape {list(data.shape)}, expected matrices")
    # All diagonals beyond the matrix have the same effect.
    limit = sum(data.shape[-2:])
    offset = 0 if diagonal is None else max(-limit, min(whole_number(diagonal), limit))
    return (np.triu if upper else np.tril)(data, offset)


def unique(data: Array, /) -> tuple[Array, Array, Array]:
    """Return the distinct elements of ``[N]`` by first occurrence, element indices, and counts.

    Every NaN is distinct from every other NaN.
    """
    if data.ndim != 1:
        raise ValueError(f"the data has shape {list(data.shape)}, expected one axis")
    values, _, place, count = distinct(data, sorted=False)
    return values, place, count


def sequence(start: Array, limit: Array, delta: Array | None = None, /) -> Array:
    """Return the numbers from the start in steps up to the limit (excluded), in their own type.

    Each number is the sum of its predecessor and the step.
    """
    first, last = (_single_number(bound) for bound in (start, limit))
    step = first.dtype.type(1) if delta is None else _single_number(delta)
    if not step or not all(np.isfinite(number) for number in (first, last, step)):
        raise ValueError(f"a range from {first} to {last} in steps of {step} has no end")
    count = max(0, math.ceil((last.item() - first.item()) / step.item()))
    check_elements(count, "the range")
    if first.dtype.kind == "i":
        return np.arange(first.item(), last.item(), step.item(), dtype=first.dtype)
    steps = np.full(count, step)
    steps[:1] = first
    return np.cumsum(steps, dtype=first.dtype)


def _single_number(number: Array) -> Any:
    if number.size != 1:
        raise ValueError(f"expected one number, the tensor has shape {list(number.shape)}")
    return number.reshape(-1)[0]


def crop_and_resize(
    images: Array,
    regions: Array,
    numbers: Array,
    size: Array,
    /,
    *,
    mode: str,
    extrapolation_value: float,
) -> Array:
    """Sample regions of images on a grid whose outer points are the corners of the region.

    ``[N, C, H, W], [R, 4] (top, left, bottom, right; 0 and 1 are the borders), [R], [2] -> [R, C,
    height, width]``. Points outside of the image get ``extrapolation_value``.
    """
    if (
        images.ndim != 4
        or regions.ndim != 2
        or regions.shape[1] != 4
        or numbers.shape != (len(regions),)
        or size.shape != (2,)
    ):
        shapes = [list(array.shape) for array in (images, regions, numbers, size)]
        raise ValueError(f"the shapes are {shapes}, expected [N, C, H, W], [R, 4], [R] and [2]")
    height, width = whole_numbers(size)
    if min(height, width) < 1 or (
        numbers.size and not 0 <= numbers.min() <= numbers.max() < len(images)
    ):
        raise ValueError(
            f"a size of {height} by {width} and images {numbers[:8].tolist()} of {len(images)}, "
            "expected sizes above 0"
        )
    check_elements(len(regions) * images.shape[1] * height * width, "the crops")
    values = computable(images)
    result = np.full(
        (len(regions), images.shape[1], height, width), extrapolation_value, values.dtype
    )
    for number, region in enumerate(computable(regions)):
        rows = _pixel_positions(region[0], region[2], height, images.shape[2])
        columns = _pixel_positions(region[1], region[3], width, images.shape[3])
        inside = [
            np.flatnonzero((positions >= 0) & (positions <= length - 1))
            for positions, length in zip((rows, columns), images.shape[2:], strict=True)
        ]
        cropped = _sample(values[int(numbers[number])], rows[inside[0]], columns[inside[1]], mode)
        result[number][:, inside[0][:, None], inside[1]] = cropped
    return result.astype(images.dtype, copy=False)


def _pixel_positions(begin: Any, end: Any, count: int, length: int) -> Array:
    """Return the positions of equidistant points between two borders, in pixels."""
    last_pixel = np.float32(length - 1)
    if count == 1:
        return np.array([np.float32(0.5) * (begin + end) * last_pixel])
    return np.asarray(
        begin * last_pixel
        + np.arange(count, dtype=np.float32) * ((end - begin) * last_pixel / np.float32(count - 1))
    )


def _sample(image: Array, rows: Array, columns: Array, mode: str) -> Array:
    """Sample ``[C, H, W] -> [C, rows, columns]``."""
    if mode == "nearest":
        return image[
            :, np.floor(rows + 0.5).astype(int)[:, None], np.floor(columns + 0.5).astype(int)
        ]
    above, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    vertical, horizontal = (rows - above)[:, None], columns - left
    low, high = (
        _interpolate(image[:, row.astype(int)], left, horizontal) for row in (above, np.ceil(rows))
    )
    return np.asarray(low + (high - low) * vertical)


def _interpolate(lines: Array, left: Array, across: Array) -> Array:
    begin, end = lines[..., left], lines[..., np.minimum(left + (across > 0), lines.shape[-1] - 1)]
    return np.asarray(begin + (end - begin) * across)


def infer_expand_dims(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the lengths with a length of 1 inserted, if the axis is known."""
    shape, axis = inputs[0].shape, inputs[1].value
    if shape.dimensions is None:
        return (Known(inputs[0].element_type),)
    if axis is None:
        return (Known(inputs[0].element_type, PartialShape.unknown(len(shape.dimensions) + 1)),)
    lengths = list(shape.dimensions)
    lengths.insert(axis_within(whole_number(axis), len(lengths) + 1), static(1))
    return (Known(inputs[0].element_type, PartialShape(tuple(lengths))),)


def infer_pad(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the padded lengths, if the padding is known."""
    shape, pads = inputs[0].shape, inputs[1].value
    if shape.dimensions is None:
        return (Known(inputs[0].element_type),)
    rank = len(shape.dimensions)
    if pads is None or pads.size != 2 * rank or not shape.is_static:
        return (Known(inputs[0].element_type, PartialShape.unknown(rank)),)
    padding = pads.reshape(2, rank).sum(0).tolist()
    return (
        Known(
            inputs[0].element_type,
            PartialShape.of(
                max(length + extra, 0) for length, extra in zip(shape.lengths, padding, strict=True)
            ),
        ),
    )


def infer_unique(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer an axis of unknown length, and an index for each element."""
    unknown_length = PartialShape.unknown(1)
    return (
        Known(inputs[0].element_type, unknown_length),
        Known(ElementType.I64, inputs[0].shape),
        Known(ElementType.I64, unknown_length),
    )


def infer_sequence(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer one axis of unknown length."""
    return (Known(inputs[0].element_type, PartialShape.unknown(1)),)


def infer_crop_and_resize(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer regions, channels and, if known, the size."""
    images, regions, size = inputs[0].shape, inputs[1].shape, inputs[3].value
    if images.rank != 4 or regions.rank != 2:
        return (Known(inputs[0].element_type, DYNAMIC),)
    lengths = [None, None] if size is None or size.shape != (2,) else whole_numbers(size)
    return (
        Known(inputs[0].element_type, PartialShape.of((regions.at(0), images.at(1), *lengths))),
    )


OPERATIONS: tuple[Operation, ...] = (
    row(
        "Pad",
        pad,
        infer=infer_pad,
        inputs=(2, 3),
        attributes=(
            Attribute("mode", "str", "constant", allowed=("constant", "reflect", "edge", "wrap")),
        ),
        types=(FLOATING, _WHOLE, FLOATING),
    ),
    row("ExpandDims", expand_dims, infer=infer_expand_dims, inputs=(2, 2), types=(ANY_TYPE, _AXIS)),
    row(
        "Trilu",
        trilu,
        infer=same,
        inputs=(1, 2),
        attributes=(Attribute("upper", "int", 1),),
        types=(ANY_TYPE, _WHOLE),
    ),
    row("Unique", unique, infer=infer_unique, outputs=3, types=(NUMERIC,)),
    row("Range", sequence, infer=infer_sequence, inputs=(2, 3), types=(NUMERIC,)),
    row(
        "CropAndResize",
        crop_and_resize,
        infer=infer_crop_and_resize,
        inputs=(4, 4),
        attributes=(
            Attribute("mode", "str", "bilinear", allowed=("bilinear", "nearest")),
            Attribute("extrapolation_value", "float", 0.0),
        ),
        types=(FLOATING, FLOATING, _AXIS, _AXIS),
    ),
)
