"""Operations of the domain com.microsoft that move, cut and fill: Pad, ExpandDims, Trilu,
Unique, Range, CropAndResize.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.index import axis_within, whole_number, whole_numbers
from loopscope.ops.infer import same
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.movement.distinct import unique as distinct
from loopscope.ops.onnx import padding
from loopscope.ops.precision import computable

_WHOLE = frozenset({ElementType.I64})
_AXIS = frozenset({ElementType.I32})


def pad(data: Array, pads: Array, value: Array | None = None, /, *, mode: str) -> Array:
    """As ONNX's Pad; the numbers may lie in a row, ``[1, 2 rank]``."""
    return np.asarray(padding.pad(data, pads.reshape(-1), value, mode=mode))


def expand_dims(data: Array, axis: Array, /) -> Array:
    """A new axis of length 1."""
    return np.expand_dims(data, axis_within(whole_number(axis), data.ndim + 1))


def trilu(data: Array, diagonal: Array | None = None, /, *, upper: int) -> Array:
    """Matrices with 0 below (or, without ``upper``, above) a diagonal."""
    if data.ndim < 2:
        raise ValueError(f"the data has shape {list(data.shape)}, expected matrices")
    # Beyond the lengths all diagonals are alike.
    most = sum(data.shape[-2:])
    chosen = 0 if diagonal is None else max(-most, min(whole_number(diagonal), most))
    return (np.triu if upper else np.tril)(data, chosen)


def unique(data: Array, /) -> tuple[Array, Array, Array]:
    """The distinct elements of ``[N]`` in the order in which they come first; which of them each
    is; how often each is there.

    Every NaN is distinct from every other.
    """
    if data.ndim != 1:
        raise ValueError(f"the data has shape {list(data.shape)}, expected one axis")
    values, _, place, count = distinct(data, sorted=False)
    return values, place, count


def sequence(start: Array, limit: Array, delta: Array | None = None, /) -> Array:
    """From the start in steps up to the limit, which is left out; each number is the one before
    and the step, in their own type.
    """
    first, last = (_one(one) for one in (start, limit))
    step = first.dtype.type(1) if delta is None else _one(delta)
    if not step or not all(np.isfinite(one) for one in (first, last, step)):
        raise ValueError(f"a range from {first} to {last} in steps of {step} has no end")
    count = max(0, math.ceil((last.item() - first.item()) / step.item()))
    check_elements(count, "the range")
    if first.dtype.kind == "i":
        return np.arange(first.item(), last.item(), step.item(), dtype=first.dtype)
    steps = np.full(count, step)
    steps[:1] = first
    return np.cumsum(steps, dtype=first.dtype)


def _one(number: Array) -> Any:
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
    """Regions of images, each laid over a grid of places of which the outer ones are its corners.

    ``[N, C, H, W], [R, 4] (top, left, bottom, right; 0 and 1 are the borders), [R], [2] -> [R, C,
    height, width]``. What lies outside of the image is ``extrapolation_value``.
    """
    if (
        images.ndim != 4
        or regions.ndim != 2
        or regions.shape[1] != 4
        or numbers.shape != (len(regions),)
        or size.shape != (2,)
    ):
        shapes = [list(one.shape) for one in (images, regions, numbers, size)]
        raise ValueError(f"the shapes are {shapes}, expected [N, C, H, W], [R, 4], [R] and [2]")
    height, width = whole_numbers(size)
    if min(height, width) < 1 or (
        numbers.size and not 0 <= numbers.min() <= numbers.max() < len(images)
    ):
        raise ValueError(
            f"a size of {height} by {width} and images {numbers[:8].tolist()} of {len(images)}, expected sizes above 0"
        )
    check_elements(len(regions) * images.shape[1] * height * width, "the crops")
    wide = computable(images)
    made = np.full((len(regions), images.shape[1], height, width), extrapolation_value, wide.dtype)
    for number, region in enumerate(computable(regions)):
        rows = _places(region[0], region[2], height, images.shape[2])
        columns = _places(region[1], region[3], width, images.shape[3])
        inside = [
            np.flatnonzero((one >= 0) & (one <= length - 1))
            for one, length in zip((rows, columns), images.shape[2:], strict=True)
        ]
        cropped = _sampled(wide[int(numbers[number])], rows[inside[0]], columns[inside[1]], mode)
        made[number][:, inside[0][:, None], inside[1]] = cropped
    return made.astype(images.dtype, copy=False)


def _places(begin: Any, end: Any, count: int, length: int) -> Array:
    """Where places between two borders lie, in pixels."""
    most = np.float32(length - 1)
    if count == 1:
        return np.array([np.float32(0.5) * (begin + end) * most])
    return np.asarray(
        begin * most
        + np.arange(count, dtype=np.float32) * ((end - begin) * most / np.float32(count - 1))
    )


def _sampled(image: Array, rows: Array, columns: Array, mode: str) -> Array:
    """``[C, H, W] -> [C, rows, columns]``."""
    if mode == "nearest":
        return image[
            :, np.floor(rows + 0.5).astype(int)[:, None], np.floor(columns + 0.5).astype(int)
        ]
    above, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, across = (rows - above)[:, None], columns - left
    low, high = (
        _between(image[:, one.astype(int)], left, across) for one in (above, np.ceil(rows))
    )
    return np.asarray(low + (high - low) * down)


def _between(lines: Array, left: Array, across: Array) -> Array:
    begin, end = lines[..., left], lines[..., np.minimum(left + (across > 0), lines.shape[-1] - 1)]
    return np.asarray(begin + (end - begin) * across)


def infer_expand_dims(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """A length of 1 more, where the axis is known."""
    shape, axis = inputs[0].shape, inputs[1].value
    if shape.dimensions is None:
        return (Known(inputs[0].element_type),)
    if axis is None:
        return (Known(inputs[0].element_type, PartialShape.unknown(len(shape.dimensions) + 1)),)
    lengths = list(shape.dimensions)
    lengths.insert(axis_within(whole_number(axis), len(lengths) + 1), static(1))
    return (Known(inputs[0].element_type, PartialShape(tuple(lengths))),)


def infer_pad(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Lengths and what is added, where that is known."""
    shape, pads = inputs[0].shape, inputs[1].value
    if shape.dimensions is None:
        return (Known(inputs[0].element_type),)
    rank = len(shape.dimensions)
    if pads is None or pads.size != 2 * rank or not shape.is_static:
        return (Known(inputs[0].element_type, PartialShape.unknown(rank)),)
    both = pads.reshape(2, rank).sum(0).tolist()
    return (
        Known(
            inputs[0].element_type,
            PartialShape.of(
                max(one + more, 0) for one, more in zip(shape.lengths, both, strict=True)
            ),
        ),
    )


def infer_unique(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """One axis of unknown length, and an index for each element."""
    some = PartialShape.unknown(1)
    return (
        Known(inputs[0].element_type, some),
        Known(ElementType.I64, inputs[0].shape),
        Known(ElementType.I64, some),
    )


def infer_sequence(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """One axis."""
    return (Known(inputs[0].element_type, PartialShape.unknown(1)),)


def infer_crop_and_resize(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Regions, channels and the size, where that is known."""
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
