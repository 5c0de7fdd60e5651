"""Resize and Upsample: the position of each output element in the input along each axis, and the
elements around that position.

The steps are those of ONNX Runtime, because the last bit decides how quantized values are rounded.
Integers lose their fraction, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_checks import axis_within, check_elements
from loopscope.ops.onnx.bilinear import between, neighbours
from loopscope.ops.onnx.output_sizes import Attributes, check_size

_ONE, _HALF = np.float32(1), np.float32(0.5)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Resized axis: its lengths, the factor between them, and the part of it that is read, as
    fractions of its length.
    """

    number: int
    before: int
    after: int
    scale: np.floating
    start: float = 0.0
    end: float = 1.0

    @property
    def changes(self) -> bool:
        return self.after != self.before or self.scale != 1 or (self.start, self.end) != (0, 1)


_Places = Callable[[Array, _Axis], Array]


def _half_pixel(numbers: Array, axis: _Axis) -> Array:
    return (numbers + _HALF) / axis.scale - _HALF


def _symmetric(numbers: Array, axis: _Axis) -> Array:
    """Return positions for which the middle of the output lies on the middle of the input."""
    ratio = np.float32(axis.after) / (axis.scale * np.float32(axis.before))
    return np.float32(axis.before / 2) * (_ONE - ratio) + _half_pixel(numbers, axis)


def _corners(numbers: Array, axis: _Axis) -> Array:
    return numbers * np.float32(axis.before - 1) / np.float32(max(axis.after - 1, 1))


def _cropped(numbers: Array, axis: _Axis) -> Array:
    start, end, last = np.float32(axis.start), np.float32(axis.end), np.float32(axis.before - 1)
    if axis.after == 1:
        return np.full_like(numbers, _HALF * (start + end) * last)
    return start * last + numbers * (end - start) * last / np.float32(axis.after - 1)


CROPPED = "tf_crop_and_resize"
_PLACES: Mapping[str, _Places] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda numbers, axis: (
        _half_pixel(numbers, axis) if axis.after > 1 else numbers
    ),
    "tf_half_pixel_for_nn": lambda numbers, axis: (numbers + _HALF) / axis.scale,
    "asymmetric": lambda numbers, axis: numbers / axis.scale,
    "align_corners": _corners,
    CROPPED: _cropped,
}
_ROUNDED: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda places: np.ceil(places - 0.5),
    "round_prefer_ceil": lambda places: np.floor(places + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _triangle(distance: Array) -> Array:
    return np.maximum(1 - distance, 0)


def _cubic(a: float) -> Callable[[Array], Array]:
    def weight(distance: Array) -> Array:
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        return np.where(distance <= 1, near, np.where(distance < 2, far, 0))

    return weight


def resize(
    data: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    /,
    **attributes: Any,
) -> Array:
    """Return the data resampled to another size: linearly along all axes at once, because the order
    decides the last bit; in the other modes axis by axis.
    """
    mode = attributes.get("mode") or "nearest"
    if mode not in ("nearest", "linear", "cubic"):
        raise ValueError(f"mode is {mode[:40]!r}, expected nearest, linear or cubic")
    scales, sizes = (
        None if numbers is None or not numbers.size else np.ravel(numbers)
        for numbers in (scales, sizes)
    )
    if (scales is None) == (sizes is None):
        raise ValueError(
            "one of scales and sizes says how large the output is, expected exactly one of them"
        )
    check_size(
        "Resize",
        (data, None, scales, sizes),
        {**attributes, "axes": attributes.get("axes") or None},
    )
    places = _choose(_PLACES, attributes, "coordinate_transformation_mode", "half_pixel")
    # Computed in f32 as in runtimes, because the nearest element depends on the last bit; f64 data
    # is interpolated in f64.
    real = np.float64 if data.dtype == np.float64 and mode != "nearest" else np.float32
    axes = [axis for axis in _axes(data, (roi, scales, sizes), attributes, real) if axis.changes]
    if any(not axis.before and axis.after for axis in axes):
        raise ValueError(f"data of shape {list(data.shape)} has no elements to resize")
    return resized(data, axes, mode, places, attributes)


def along(data: Array, lengths: Sequence[int], scales: Sequence[float]) -> Array:
    """Return the data resampled linearly, with output element i at i / scale: Upsample, and Resize
    of opset 10.
    """
    axes = [
        _Axis(
            number,
            data.shape[number],
            length,
            data.dtype.type(scale) if data.dtype == np.float64 else np.float32(scale),
        )
        for number, (length, scale) in enumerate(zip(lengths, scales, strict=True))
        if scale != 1
    ]
    return resized(data, axes, "linear", _PLACES["asymmetric"], {})


def _choose(table: Mapping[str, Any], attributes: Attributes, name: str, default: str) -> Any:
    name_in_table = attributes.get(name) or default
    if name_in_table not in table:
        raise ValueError(
            f"{name} is {str(name_in_table)[:40]!r}, expected one of {', '.join(table)}"
        )
    return table[name_in_table]


def _axes(
    data: Array, inputs: Sequence[Any], attributes: Attributes, real: type[np.floating]
) -> list[_Axis]:
    roi, scales, sizes = inputs
    numbers = [
        axis_within(int(axis), data.ndim) for axis in attributes.get("axes") or range(data.ndim)
    ]
    count = len(numbers)
    cropped = attributes.get("coordinate_transformation_mode") == CROPPED
    part = (
        np.ravel(roi).astype(np.float32)
        if cropped and roi is not None and roi.size
        else np.repeat(np.array([0, 1], np.float32), count)
    )
    if len(part) != 2 * count:
        raise ValueError(
            f"roi has {len(part)} numbers, "
            f"expected {2 * count}: a start and an end for each resized axis"
        )
    before = [data.shape[number] for number in numbers]
    after, factors = (
        _lengths_by_scales(before, scales)
        if sizes is None
        else _lengths_by_sizes(before, sizes, attributes, real)
    )
    factors = [real(values) for values in factors]
    return [
        _Axis(*values)
        for values in zip(
            numbers,
            before,
            after,
            factors,
            part[:count].tolist(),
            part[count:].tolist(),
            strict=True,
        )
    ]


def _lengths_by_scales(
    before: Sequence[int], scales: Array
) -> tuple[list[int], Sequence[np.floating]]:
    factors = [np.float32(factor) for factor in scales]
    if not all(np.isfinite(factor) and factor > 0 for factor in factors):
        raise ValueError(f"the scales are {scales.tolist()[:8]}, expected numbers above 0")
    # Computed in f32, as ONNX infers the shape: 10 times 0.7 is 7 and not 6.
    return [
        int(np.floor(np.float32(length) * factor))
        for length, factor in zip(before, factors, strict=True)
    ], factors


def _lengths_by_sizes(
    before: Sequence[int], sizes: Array, attributes: Attributes, real: type[np.floating]
) -> tuple[list[int], Sequence[np.floating]]:
    lengths = [int(size) for size in sizes]
    if min(lengths) < 0:
        raise ValueError(f"the sizes are {lengths[:8]}, expected lengths")
    factors = [
        real(size) / real(length) if length else real(1)
        for size, length in zip(lengths, before, strict=True)
    ]
    policy = attributes.get("keep_aspect_ratio_policy") or "stretch"
    if policy == "stretch":
        return lengths, factors
    if policy not in ("not_larger", "not_smaller"):
        raise ValueError(
            f"keep_aspect_ratio_policy is {policy[:40]!r}, "
            "expected stretch, not_larger or not_smaller"
        )
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [
        math.floor(float(np.float32(factor) * np.float32(length)) + 0.5) for length in before
    ], [factor] * len(before)


def resized(
    data: Array, axes: Sequence[_Axis], mode: str, places: _Places, attributes: Attributes
) -> Array:
    """Return the data resampled along the axes that change. Positions outside a cropped part have
    the extrapolation value.
    """
    exact = {
        axis.number: places(np.arange(axis.after, dtype=axis.scale.dtype), axis) for axis in axes
    }
    if mode == "nearest":
        result = _nearest(
            data, axes, exact, _choose(_ROUNDED, attributes, "nearest_mode", "round_prefer_floor")
        )
    elif mode == "linear" and not attributes.get("antialias"):
        result = _to_type(_interpolate(_as_real(data), axes, exact), data.dtype)
    else:
        result = _filter_axes(data, axes, exact, mode, attributes)
    if attributes.get("coordinate_transformation_mode") == CROPPED:
        value = np.float64(attributes.get("extrapolation_value") or 0).astype(result.dtype)
        for axis in axes:
            outside = (exact[axis.number] < 0) | (exact[axis.number] > axis.before - 1)
            result = np.where(_along_axis(outside, axis, result.ndim), value, result)
    return result


def _nearest(
    data: Array,
    axes: Sequence[_Axis],
    exact: Mapping[int, Array],
    rounded: Callable[[Array], Array],
) -> Array:
    for axis in axes:
        chosen = rounded(exact[axis.number].astype(np.float64))
        data = data.take(np.clip(chosen, 0, axis.before - 1).astype(np.int64), axis.number)
    return data


def _as_real(data: Array) -> Array:
    return data if data.dtype == np.float64 else data.astype(np.float32, copy=False)


def _to_type(values: Array, dtype: np.dtype, cut: Callable[[Array], Array] = np.trunc) -> Array:
    """Return the values in the type of the data; integers are cut to the limits of their type."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = np.clip(cut(values.astype(np.float64)), float(limits.min), float(limits.max))
    return values.astype(dtype, copy=False)


_SPATIAL_AXES: Mapping[int, Sequence[Sequence[int]]] = {
    2: ((0, 1),),
    3: ((0, 1, 2),),
    4: ((2, 3), (1, 2)),
    5: ((2, 3, 4),),
}
"""Axes of an image or a volume, by the rank of the tensor."""


def _half_up(numbers: Array) -> Array:
    """Return the nearest integers, halves away from 0."""
    return np.trunc(numbers + np.copysign(0.5, numbers))


def _interpolate(data: Array, axes: Sequence[_Axis], exact: Mapping[int, Array]) -> Array:
    """Interpolate along all axes of an image or a volume together, as ONNX Runtime does; for other
    axes, along the axes that change.
    """
    rank, changing = data.ndim, set(exact)
    chosen = next(
        (axis for axis in _SPATIAL_AXES.get(rank, ()) if changing <= set(axis)), sorted(changing)
    )
    if not changing:
        return data
    return between(
        data,
        chosen,
        [
            neighbours(
                data.shape[axis], exact.get(axis, np.arange(data.shape[axis], dtype=np.float32))
            )
            for axis in chosen
        ],
    )


def _filter_axes(
    data: Array,
    axes: Sequence[_Axis],
    exact: Mapping[int, Array],
    mode: str,
    attributes: Attributes,
) -> Array:
    """Filter along one axis after the other, the last first. With antialiasing, integers are
    rounded after each axis, as in ONNX Runtime.
    """
    smooth = bool(attributes.get("antialias"))
    result = _as_real(data)
    for axis in reversed(axes):
        result = _filter_axis(result, axis, exact[axis.number], mode, attributes)
        result = _as_real(_to_type(result, data.dtype, _half_up)) if smooth else result
    return _to_type(result, data.dtype)


def _filter_axis(
    data: Array, axis: _Axis, exact: Array, mode: str, attributes: Attributes
) -> Array:
    """Return sums of elements around each position, weighted by their distance. With antialiasing,
    the elements are taken from a range that is as much wider as the axis gets shorter.
    """
    weight = (
        _triangle if mode == "linear" else _cubic(float(attributes.get("cubic_coeff_a", -0.75)))
    )
    reach = 1 if mode == "linear" else 2
    narrowed = min(float(axis.scale), 1.0) if attributes.get("antialias") else 1.0
    exact = exact.astype(np.float64)
    taps = math.ceil(reach / narrowed)
    around = np.floor(exact)[:, None] + np.arange(1 - taps, taps + 1)
    weights = weight(np.abs(around - exact[:, None]) * narrowed)
    if attributes.get("exclude_outside"):
        weights = np.where((around >= 0) & (around < axis.before), weights, 0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    read = np.clip(around, 0, axis.before - 1).astype(np.int64)
    result = np.zeros(
        (*data.shape[: axis.number], axis.after, *data.shape[axis.number + 1 :]), data.dtype
    )
    for tap in range(2 * taps):
        result += data.take(read[:, tap], axis.number) * _along_axis(
            weights[:, tap].astype(data.dtype), axis, data.ndim
        )
    return result


def _along_axis(numbers: Array, axis: _Axis, rank: int) -> Array:
    """Return numbers along an axis in a form that broadcasts over the other axes."""
    return numbers.reshape(-1, *[1] * (rank - 1 - axis.number))


def upsample(data: Array, scales: Array | None = None, /, *, mode: str, **attributes: Any) -> Array:
    """Return the data of Upsample, and Resize of opset 10: output element i lies at i / scale."""
    if scales is not None:
        factors = np.ravel(scales).tolist()
    elif "scales" in attributes:
        factors = list(attributes["scales"])
    else:
        factors = [1.0, 1.0, attributes["height_scale"], attributes["width_scale"]]
    if len(factors) != data.ndim or not all(
        math.isfinite(factor) and factor > 0 for factor in factors
    ):
        raise ValueError(f"the scales are {factors[:8]}, expected {data.ndim} numbers above 0")
    lengths = [
        math.floor(length * factor) for length, factor in zip(data.shape, factors, strict=True)
    ]
    check_elements(math.prod(lengths), "the output of Upsample")
    if mode == "linear":
        return along(data, lengths, factors)
    for axis, (length, factor) in enumerate(zip(lengths, factors, strict=True)):
        if factor != 1:
            # In f32 as in runtimes, because the nearest element depends on the last bit.
            positions = np.arange(length, dtype=np.float32) / np.float32(factor)
            whole = np.ceil(positions) if factor < 1 else np.floor(positions)
            data = data.take(np.minimum(whole.astype(np.int64), data.shape[axis] - 1), axis)
    return data
