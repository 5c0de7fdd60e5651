"""Resizing by Interpolate-1, -4 and -11, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import INTEGERS, NUMERIC, REAL_FLOATS, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import images as gradients
from loopscope.ops.image.sampling import (
    PILLOW,
    Axis,
    Choices,
    Taps,
    cubic,
    linear,
    linear_onnx,
    nearest,
    pillow,
)
from loopscope.ops.kernel_arithmetic import (
    COMPUTED,
    INTEGER_DTYPES,
    saturate,
    to_element_type,
    widened,
)
from loopscope.ops.kernel_checks import axes_within, check_elements, whole_numbers

COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "align_corners",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
MODES = ("nearest", "linear", "linear_onnx", "cubic")


def interpolate_4(
    image: Array,
    sizes: Array,
    scales: Array,
    axes: Array | None = None,
    /,
    *,
    shape_calculation_mode: str = "sizes",
    **attributes: Any,
) -> Array:
    """Resize some axes of an image to given sizes or by given scales."""
    target = scales if shape_calculation_mode == "scales" else sizes
    return interpolate_11(
        image, target, axes, shape_calculation_mode=shape_calculation_mode, **attributes
    )


def interpolate_11(
    image: Array,
    scales_or_sizes: Array,
    axes: Array | None = None,
    /,
    *,
    mode: str,
    shape_calculation_mode: str,
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    antialias: bool = False,
    pads_begin: tuple[int, ...] = (),
    pads_end: tuple[int, ...] = (),
    cube_coeff: float = -0.75,
) -> Array:
    """Resize some axes of an image to given sizes or by given scales.

    Zeros are added first (``pads_begin``, ``pads_end``). Every mode weights each axis separately,
    so the axes are resized in turn.
    """
    padded = _pad(np.asarray(image), pads_begin, pads_end)
    chosen = (
        list(range(image.ndim)) if axes is None else axes_within(whole_numbers(axes), image.ndim)
    )
    real: type[np.floating] = (
        np.float64 if padded.dtype == np.float64 and mode != "nearest" else np.float32
    )
    resized = _axes_to_resize(
        padded.shape, chosen, np.asarray(scales_or_sizes), shape_calculation_mode, real
    )
    choices = Choices(coordinate_transformation_mode, nearest_mode, cube_coeff, real)
    if mode in PILLOW and len(chosen) != 2:
        raise ValueError(f"mode {mode} resizes two axes, got axes {chosen}")
    shrinks = any(axis.scale < 1 for axis in resized.values())
    taps = {
        number: _taps(axis, mode, choices, antialias and shrinks)
        for number, axis in resized.items()
    }
    return _resample(padded, taps, rounds_each=mode in PILLOW)


def interpolate_1(
    image: Array,
    target: Array,
    /,
    *,
    axes: tuple[int, ...],
    mode: str,
    align_corners: bool = True,
    antialias: bool = False,
    pads_begin: tuple[int, ...] = (),
    pads_end: tuple[int, ...] = (),
) -> Array:
    """Resize the axes to the target sizes."""
    attributes = as_version_11(
        image.ndim,
        axes=axes,
        mode=mode,
        align_corners=align_corners,
        antialias=antialias,
        pads_begin=pads_begin,
        pads_end=pads_end,
    )
    return interpolate_11(image, target, np.array(axes, np.int64), **attributes)


def as_version_11(
    rank: int,
    *,
    axes: Sequence[int],
    mode: str,
    align_corners: bool,
    antialias: bool,
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
) -> Mapping[str, Any]:
    """Return the attributes of version 11, where ``axes`` is an input.

    The page does not define coordinates; these are the runtimes'. Linear interpolation without pads
    uses pixel centres, unless it resizes axes 2 and 3 of four. Everything else scales from the
    corner.
    """
    coordinates = "align_corners" if align_corners else "asymmetric"
    centred = (
        mode in ("linear", "linear_onnx")
        and not any((*pads_begin, *pads_end))
        and not (rank == 4 and set(axes) == {2, 3})
    )
    if centred and not align_corners:
        coordinates = "half_pixel"
    return {
        "mode": "linear_onnx" if mode == "linear" and rank < 5 else mode,
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": "simple",
        "antialias": antialias,
        "pads_begin": pads_begin,
        "pads_end": pads_end,
    }


def _pad(image: np.ndarray, begin: Sequence[int], end: Sequence[int]) -> np.ndarray:
    if not any((*begin, *end)):
        return image
    if max(len(begin), len(end)) > image.ndim:
        raise ValueError(f"pads {list(begin)} and {list(end)} for an image of rank {image.ndim}")
    pads = [(_pad_of(begin, axis), _pad_of(end, axis)) for axis in range(image.ndim)]
    check_elements(
        math.prod(length + sum(pad) for length, pad in zip(image.shape, pads, strict=True)),
        "the padded image",
    )
    return np.pad(image, pads)


def _pad_of(pads: Sequence[int], axis: int) -> int:
    return pads[axis] if axis < len(pads) else 0


def _axes_to_resize(
    shape: Sequence[int],
    axes: Sequence[int],
    target: np.ndarray,
    shapes_by: str,
    real: type[np.floating],
) -> dict[int, Axis]:
    numbers = _numbers(target, shapes_by)
    if len(numbers) != len(axes):
        raise ValueError(f"{len(numbers)} {shapes_by} for {len(axes)} axes")
    resized_axes = {}
    for axis, value in zip(axes, numbers, strict=True):
        length = shape[axis]
        resized = resized_length(length, value) if shapes_by == "scales" else int(value)
        if resized < 0 or (length == 0 and resized > 0):
            raise ValueError(f"axis {axis} of length {length} cannot be resized to {resized}")
        scale = (
            float(value) if shapes_by == "scales" else float(real(resized) / real(max(length, 1)))
        )
        resized_axes[axis] = Axis(length, resized, scale)
    check_elements(
        math.prod(
            resized_axes[axis].resized if axis in resized_axes else length
            for axis, length in enumerate(shape)
        ),
        "the resized image",
    )
    return resized_axes


def _numbers(target: Array, shapes_by: str) -> list[float]:
    """Return the sizes or scales; scales may be integers, but sizes must be integers."""
    if shapes_by == "scales":
        return [float(value) for value in np.asarray(widened(np.asarray(target))).reshape(-1)]
    if not ElementType.of(target).is_integer:
        raise ValueError(f"the sizes are {ElementType.of(target)}, expected integers")
    return [*whole_numbers(target)]


def resized_length(length: int, scale: float) -> int:
    """Return floor(length * scale), multiplied in f32 as in runtimes.

    Raise ``ValueError`` for a scale that is not a positive number.

    >>> resized_length(5, 0.5), resized_length(10, float(np.float32(0.7)))
    (2, 7)
    """
    if not 0 < scale < math.inf:
        raise ValueError(f"scale {scale} is not a positive number")
    if length * scale > 2**63:
        raise ValueError(
            f"an axis of length {length} cannot be resized by {scale}: more than the limit"
        )
    return math.floor(np.float32(length) * np.float32(scale))


def _taps(axis: Axis, mode: str, choices: Choices, antialias: bool) -> Taps:
    match mode:
        case "nearest":
            return nearest(axis, choices)
        case "linear_onnx":
            return linear_onnx(axis, choices)
        case "linear":
            return linear(axis, choices, stretch=axis.scale if antialias else 1.0)
        case "cubic":
            return cubic(axis, choices)
        case _:
            return pillow(axis, choices, mode=mode)


def _resample(image: np.ndarray, taps: Mapping[int, Taps], *, rounds_each: bool) -> np.ndarray:
    """Apply the taps axis by axis, last axis first.

    Integers are rounded at the end, or (Pillow) after each axis.
    """
    whole = image.dtype in INTEGER_DTYPES
    values = image
    for axis in sorted(taps, reverse=True):
        axis_taps = taps[axis]
        if not axis_taps.positions.shape[1]:
            values = np.take(values, np.zeros(0, np.int64), axis)
            continue
        if len(axis_taps.positions) == 1:
            values = np.take(values, axis_taps.positions[0], axis)
            continue
        values = _weighted_sum(values, axis_taps, axis)
        if whole and rounds_each:
            values = saturate(np.trunc(values + np.copysign(0.5, values)), image.dtype)
    return to_element_type(values, image.dtype)


def _weighted_sum(values: np.ndarray, taps: Taps, axis: int) -> np.ndarray:
    exact = values.dtype.itemsize > 2 and values.dtype != np.float32
    wide = np.float64 if exact or taps.weights.dtype == np.float64 else np.float32
    weight_shape = tuple(-1 if number == axis else 1 for number in range(values.ndim))
    total = None
    for positions, weights in zip(taps.positions, taps.weights, strict=True):
        part = np.take(values, positions, axis).astype(wide) * weights.astype(wide).reshape(
            weight_shape
        )
        total = part if total is None else total + part
    assert total is not None
    return total


def _infer(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /, *, target_input: int, axes: int
) -> tuple[Known, ...]:
    """Infer resized lengths if sizes or scales are known; all other axes grow by their pads."""
    image = inputs[0]
    if image.shape.dimensions is None:
        return (Known(image.element_type),)
    rank = len(image.shape.dimensions)
    begin, end = attributes["pads_begin"], attributes["pads_end"]
    dimensions = [
        length + (_pad_of(begin, axis) + _pad_of(end, axis))
        for axis, length in enumerate(image.shape.dimensions)
    ]
    chosen = _known_axes(inputs, attributes, axes, rank)
    if chosen is None:
        return (Known(image.element_type, PartialShape.unknown(rank)),)
    by_scale = attributes.get("shape_calculation_mode") == "scales"
    source = (
        inputs[target_input - 1] if not by_scale and target_input == 2 else inputs[target_input]
    )
    values = (
        [] if source.value is None else _numbers(source.value, "scales" if by_scale else "sizes")
    )
    for number, axis in enumerate(chosen):
        dimensions[axis] = (
            _resized_dimension(dimensions[axis], values[number], by_scale)
            if number < len(values)
            else UNKNOWN
        )
    return (Known(image.element_type, PartialShape(tuple(dimensions))),)


def _known_axes(
    inputs: Sequence[Known], attributes: Mapping[str, Any], position: int, rank: int
) -> list[int] | None:
    if "axes" in attributes:
        return axes_within(attributes["axes"], rank)
    if len(inputs) <= position:
        return list(range(rank))
    value = inputs[position].value
    return None if value is None else axes_within(whole_numbers(value), rank)


def _resized_dimension(dimension: Dimension, value: float, by_scale: bool) -> Dimension:
    if by_scale:
        upper = None if dimension.most is None else resized_length(dimension.most, value)
        return Dimension(resized_length(dimension.least, value), upper)
    return static(int(value)) if value >= 0 else UNKNOWN


_PADS = (Attribute("pads_begin", "ints", (), least=0), Attribute("pads_end", "ints", (), least=0))


def _attributes(modes: tuple[str, ...]) -> tuple[Attribute, ...]:
    return (
        Attribute("mode", "str", allowed=modes),
        Attribute("shape_calculation_mode", "str", allowed=("sizes", "scales")),
        Attribute("coordinate_transformation_mode", "str", "half_pixel", allowed=COORDINATES),
        Attribute("nearest_mode", "str", "round_prefer_floor", allowed=NEAREST),
        Attribute("antialias", "bool", False),
        *_PADS,
        Attribute("cube_coeff", "float", -0.75),
    )


_NUMBERS = REAL_FLOATS | INTEGERS

row = family("image")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Interpolate",
        interpolate_1,
        opsets=(1, 3),
        infer=partial(_infer, target_input=1, axes=2),
        inputs=(2, 2),
        types=(COMPUTED, INTEGERS),
        attributes=(
            Attribute("axes", "ints", least=0),
            Attribute("mode", "str", allowed=MODES),
            Attribute("align_corners", "bool", True),
            Attribute("antialias", "bool", False),
            *_PADS,
        ),
        gradient=gradients.interpolate_1(as_version_11),
    ),
    row(
        "Interpolate",
        interpolate_4,
        version=4,
        opsets=(4, 10),
        infer=partial(_infer, target_input=2, axes=3),
        inputs=(3, 4),
        types=(COMPUTED, INTEGERS, NUMERIC, INTEGERS),
        attributes=_attributes(MODES),
        gradient=gradients.interpolate_4,
    ),
    row(
        "Interpolate",
        interpolate_11,
        version=11,
        infer=partial(_infer, target_input=1, axes=2),
        inputs=(2, 3),
        types=(COMPUTED, _NUMBERS, INTEGERS),
        attributes=_attributes((*MODES, *PILLOW)),
        gradient=gradients.interpolate_11,
    ),
)
