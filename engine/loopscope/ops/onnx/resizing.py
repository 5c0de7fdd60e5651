"""Resize: where each element of the output lies in the input along each axis, and which elements
around that place it is made of.

In the steps of ONNX Runtime, whose bits decide how quanta are rounded; whole numbers lose what is
behind the point, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.index import axis_within
from loopscope.ops.onnx.bilinear import between, neighbours
from loopscope.ops.onnx.output_sizes import Attributes, check_size

_ONE, _HALF = np.float32(1), np.float32(0.5)


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis that is resized: its lengths, the factor between them, and which part of it is
    taken, in shares of it.
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


def _half_pixel(made: Array, axis: _Axis) -> Array:
    return (made + _HALF) / axis.scale - _HALF


def _symmetric(made: Array, axis: _Axis) -> Array:
    """The middle of what is made lies on the middle of what there was."""
    ratio = np.float32(axis.after) / (axis.scale * np.float32(axis.before))
    return np.float32(axis.before / 2) * (_ONE - ratio) + _half_pixel(made, axis)


def _corners(made: Array, axis: _Axis) -> Array:
    return made * np.float32(axis.before - 1) / np.float32(max(axis.after - 1, 1))


def _cropped(made: Array, axis: _Axis) -> Array:
    start, end, last = np.float32(axis.start), np.float32(axis.end), np.float32(axis.before - 1)
    if axis.after == 1:
        return np.full_like(made, _HALF * (start + end) * last)
    return start * last + made * (end - start) * last / np.float32(axis.after - 1)


CROPPED = "tf_crop_and_resize"
_PLACES: Mapping[str, _Places] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda made, axis: _half_pixel(made, axis) if axis.after > 1 else made,
    "tf_half_pixel_for_nn": lambda made, axis: (made + _HALF) / axis.scale,
    "asymmetric": lambda made, axis: made / axis.scale,
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
    """The data resampled to another size: linearly along all axes at once, because the order
    decides the last bit; in the other modes axis by axis.
    """
    mode = attributes.get("mode") or "nearest"
    if mode not in ("nearest", "linear", "cubic"):
        raise ValueError(f"mode is {mode[:40]!r}, expected nearest, linear or cubic")
    scales, sizes = (
        None if one is None or not one.size else np.ravel(one) for one in (scales, sizes)
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
    places = _chosen(_PLACES, attributes, "coordinate_transformation_mode", "half_pixel")
    # In f32 as runtimes have it, on which the nearest depends; between the elements of f64 no digit
    # is lost.
    real = np.float64 if data.dtype == np.float64 and mode != "nearest" else np.float32
    axes = [axis for axis in _axes(data, (roi, scales, sizes), attributes, real) if axis.changes]
    if any(not axis.before and axis.after for axis in axes):
        raise ValueError(f"there is nothing in data of shape {list(data.shape)} to resize from")
    return resized(data, axes, mode, places, attributes)


def along(data: Array, lengths: Sequence[int], scales: Sequence[float]) -> Array:
    """Linearly, where an element of the output lies at its number over the scale: Upsample, and
    Resize of opset 10.
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


def _chosen(table: Mapping[str, Any], attributes: Attributes, name: str, default: str) -> Any:
    given = attributes.get(name) or default
    if given not in table:
        raise ValueError(f"{name} is {str(given)[:40]!r}, expected one of {', '.join(table)}")
    return table[given]


def _axes(
    data: Array, given: Sequence[Any], attributes: Attributes, real: type[np.floating]
) -> list[_Axis]:
    roi, scales, sizes = given
    named = [
        axis_within(int(axis), data.ndim) for axis in attributes.get("axes") or range(data.ndim)
    ]
    count = len(named)
    cropped = attributes.get("coordinate_transformation_mode") == CROPPED
    part = (
        np.ravel(roi).astype(np.float32)
        if cropped and roi is not None and roi.size
        else np.repeat(np.array([0, 1], np.float32), count)
    )
    if len(part) != 2 * count:
        raise ValueError(
            f"roi has {len(part)} numbers, expected {2 * count}: a start and an end for each resized axis"
        )
    before = [data.shape[number] for number in named]
    after, factors = (
        _scaled(before, scales) if sizes is None else _sized(before, sizes, attributes, real)
    )
    factors = [real(one) for one in factors]
    return [
        _Axis(*one)
        for one in zip(
            named, before, after, factors, part[:count].tolist(), part[count:].tolist(), strict=True
        )
    ]


def _scaled(before: Sequence[int], scales: Array) -> tuple[list[int], Sequence[np.floating]]:
    factors = [np.float32(one) for one in scales]
    if not all(np.isfinite(one) and one > 0 for one in factors):
        raise ValueError(f"the scales are {scales.tolist()[:8]}, expected numbers above 0")
    # In f32, as ONNX infers the shape: 10 times 0.7 is 7 and not 6.
    return [
        int(np.floor(np.float32(length) * factor))
        for length, factor in zip(before, factors, strict=True)
    ], factors


def _sized(
    before: Sequence[int], sizes: Array, attributes: Attributes, real: type[np.floating]
) -> tuple[list[int], Sequence[np.floating]]:
    wanted = [int(one) for one in sizes]
    if min(wanted) < 0:
        raise ValueError(f"the sizes are {wanted[:8]}, expected lengths")
    factors = [
        real(size) / real(length) if length else real(1)
        for size, length in zip(wanted, before, strict=True)
    ]
    policy = attributes.get("keep_aspect_ratio_policy") or "stretch"
    if policy == "stretch":
        return wanted, factors
    if policy not in ("not_larger", "not_smaller"):
        raise ValueError(
            f"keep_aspect_ratio_policy is {policy[:40]!r}, expected stretch, not_larger or not_smaller"
        )
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [
        math.floor(float(np.float32(factor) * np.float32(length)) + 0.5) for length in before
    ], [factor] * len(before)


def resized(
    data: Array, axes: Sequence[_Axis], mode: str, places: _Places, attributes: Attributes
) -> Array:
    """Along the axes that change; what lies outside a part that is cut out has a value of its
    own.
    """
    exact = {
        axis.number: places(np.arange(axis.after, dtype=axis.scale.dtype), axis) for axis in axes
    }
    if mode == "nearest":
        made = _nearest(
            data, axes, exact, _chosen(_ROUNDED, attributes, "nearest_mode", "round_prefer_floor")
        )
    elif mode == "linear" and not attributes.get("antialias"):
        made = _back(_between(_real(data), axes, exact), data.dtype)
    else:
        made = _weighted(data, axes, exact, mode, attributes)
    if attributes.get("coordinate_transformation_mode") == CROPPED:
        value = np.float64(attributes.get("extrapolation_value") or 0).astype(made.dtype)
        for axis in axes:
            outside = (exact[axis.number] < 0) | (exact[axis.number] > axis.before - 1)
            made = np.where(_lying(outside, axis, made.ndim), value, made)
    return made


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


def _real(data: Array) -> Array:
    return data if data.dtype == np.float64 else data.astype(np.float32, copy=False)


def _back(made: Array, dtype: np.dtype, cut: Callable[[Array], Array] = np.trunc) -> Array:
    """In the type of the data; whole numbers as near as their type goes."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        made = np.clip(cut(made.astype(np.float64)), float(limits.min), float(limits.max))
    return made.astype(dtype, copy=False)


_WHOLE: Mapping[int, Sequence[Sequence[int]]] = {
    2: ((0, 1),),
    3: ((0, 1, 2),),
    4: ((2, 3), (1, 2)),
    5: ((2, 3, 4),),
}
"""The axes of an image or a volume, by the rank of the tensor that holds it."""


def _half_up(numbers: Array) -> Array:
    """The nearest whole numbers; of two, the one farther from 0."""
    return np.trunc(numbers + np.copysign(0.5, numbers))


def _between(data: Array, axes: Sequence[_Axis], exact: Mapping[int, Array]) -> Array:
    """Between the neighbours along all axes of an image or a volume, as ONNX Runtime counts
    them; where others change, along those.
    """
    rank, changing = data.ndim, set(exact)
    chosen = next((one for one in _WHOLE.get(rank, ()) if changing <= set(one)), sorted(changing))
    if not changing:
        return data
    return between(
        data,
        chosen,
        [
            neighbours(
                data.shape[one], exact.get(one, np.arange(data.shape[one], dtype=np.float32))
            )
            for one in chosen
        ],
    )


def _weighted(
    data: Array,
    axes: Sequence[_Axis],
    exact: Mapping[int, Array],
    mode: str,
    attributes: Attributes,
) -> Array:
    """The last axis first; what antialiasing makes of whole numbers is rounded after each, as
    ONNX Runtime has it.
    """
    smooth = bool(attributes.get("antialias"))
    made = _real(data)
    for axis in reversed(axes):
        made = _filtered(made, axis, exact[axis.number], mode, attributes)
        made = _real(_back(made, data.dtype, _half_up)) if smooth else made
    return _back(made, data.dtype)


def _filtered(data: Array, axis: _Axis, exact: Array, mode: str, attributes: Attributes) -> Array:
    """Elements around each place, weighed by their distance; antialiased, from as much farther
    as the axis gets shorter.
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
    made = np.zeros(
        (*data.shape[: axis.number], axis.after, *data.shape[axis.number + 1 :]), data.dtype
    )
    for tap in range(2 * taps):
        made += data.take(read[:, tap], axis.number) * _lying(
            weights[:, tap].astype(data.dtype), axis, data.ndim
        )
    return made


def _lying(numbers: Array, axis: _Axis, rank: int) -> Array:
    """Numbers of the places along an axis, to be broadcast over the others."""
    return numbers.reshape(-1, *[1] * (rank - 1 - axis.number))


def upsample(data: Array, scales: Array | None = None, /, *, mode: str, **attributes: Any) -> Array:
    """Upsample, and Resize of opset 10: the element at i of the output lies at i / scale."""
    if scales is not None:
        factors = np.ravel(scales).tolist()
    elif "scales" in attributes:
        factors = list(attributes["scales"])
    else:
        factors = [1.0, 1.0, attributes["height_scale"], attributes["width_scale"]]
    if len(factors) != data.ndim or not all(math.isfinite(one) and one > 0 for one in factors):
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
