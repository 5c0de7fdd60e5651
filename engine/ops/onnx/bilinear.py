"""Resize of images between their four nearest pixels, in the steps of ONNX Runtime: its bits decide how quanta are rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.ops.bounds import check_elements
from engine.ops.declare import Array, Kernel

_Places = Callable[[np.ndarray, np.float32, int, int], np.ndarray]
_PLACES: Mapping[str, _Places] = {
    # From the places of the output: its scale, and the lengths before and after.
    "half_pixel": lambda made, scale, before, after: (made + np.float32(0.5)) / scale - np.float32(0.5),
    "pytorch_half_pixel": lambda made, scale, before, after: (made + np.float32(0.5)) / scale - np.float32(0.5) if after > 1 else made,
    "asymmetric": lambda made, scale, before, after: made / scale,
    "align_corners": lambda made, scale, before, after: made * np.float32(before - 1) / np.float32(max(after - 1, 1)),
}
_PLAIN: Mapping[str, object] = {"mode": "linear", "antialias": 0, "axes": None, "keep_aspect_ratio_policy": "stretch"}
"""Attributes, where a version has them, of what is computed here."""


def resized_linearly(slow: Any, attributes: Mapping[str, Any], outputs: int) -> Kernel:
    """The kernel of a Resize node; ``slow`` prepares the one of the onnx package, for all but images of f32 and their last two axes."""
    otherwise = slow(attributes, outputs)
    places = _PLACES.get(attributes.get("coordinate_transformation_mode") or "half_pixel")
    if places is None or any(attributes.get(name, value) not in (value, None) for name, value in _PLAIN.items()) or attributes.get("axes"):
        return otherwise

    def resize(data: Any, roi: Any = None, scales: Any = None, sizes: Any = None, /) -> Any:
        wanted = _lengths(data, scales, sizes)
        return (_between_pixels(data, *wanted, places),) if wanted is not None else otherwise(data, roi, scales, sizes)

    return resize if attributes.get("mode") == "linear" else otherwise


def _lengths(data: Any, scales: Any, sizes: Any) -> tuple[Sequence[int], Array] | None:
    """The lengths of the image that is asked for, and the scales of its two axes; None where other axes change, too."""
    if not isinstance(data, np.ndarray) or data.ndim != 4 or data.dtype != np.float32 or not data.size:
        return None
    given = [one for one in (scales, sizes) if isinstance(one, np.ndarray) and one.size]
    if len(given) != 1 or given[0].shape != (4,):
        return None
    before = np.array(data.shape, np.float32)
    factors = given[0].astype(np.float32) if given[0].dtype.kind == "f" else given[0].astype(np.float32) / before
    if (factors[:2] != 1).any() or not (np.isfinite(factors) & (factors > 0)).all():
        return None
    # In f32, as ONNX infers the shape: 10 times 0.7 is 7 and not 6.
    made = np.floor(factors * before) if given[0].dtype.kind == "f" else given[0]
    lengths = [int(one) for one in made[2:]]
    return (lengths, factors[2:]) if min(lengths) > 0 else None


def _between_pixels(data: Array, lengths: Sequence[int], factors: Array, places: _Places) -> Array:
    check_elements(math.prod(data.shape[:2]) * math.prod(lengths), "the output of Resize")
    (above, below, to_above, to_below), (left, right, to_left, to_right) = (
        _neighbours(before, after, factor, places) for before, after, factor in zip(data.shape[2:], lengths, factors, strict=True)
    )
    upper, lower = data.take(above, 2), data.take(below, 2)
    near, far = to_below[:, None], to_above[:, None]
    made = (to_right * near) * upper.take(left, 3)
    made += (to_left * near) * upper.take(right, 3)
    made += (to_right * far) * lower.take(left, 3)
    made += (to_left * far) * lower.take(right, 3)
    return made


def _neighbours(before: int, after: int, factor: np.float32, places: _Places) -> tuple[Array, Array, Array, Array]:
    """The pixels on both sides of each place along an axis, and how far they are; halves where both are one."""
    exact = places(np.arange(after, dtype=np.float32), factor, before, after)
    exact = np.clip(exact, np.float32(0), np.float32(before - 1)).astype(np.float32)
    first = np.minimum(exact.astype(np.int64), before - 1)
    second = np.minimum(first + 1, before - 1)
    distances = [np.abs(exact - one.astype(np.float32)) for one in (first, second)]
    return first, second, *(np.where(first == second, np.float32(0.5), one) for one in distances)
