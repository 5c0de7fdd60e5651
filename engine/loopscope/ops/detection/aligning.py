"""Regions resampled without rounding: ROIAlign, ROIAlignRotated and the feature extractor over a
pyramid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.element_type import INTEGERS, REAL_FLOATS
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients.sampling import roi_align as gradient_of_roi_align
from loopscope.ops.kernel_arithmetic import to_element_type, widened
from loopscope.ops.kernel_checks import check_elements, check_rank, positions_within, shape_of_rank

_CANONICAL_SIZE, _CANONICAL_LEVEL = 224.0, 2.0
"""Size and pyramid level of the reference region: 224 by 224 pixels, level 2 (arXiv 1612.03144)."""


@dataclass(frozen=True, slots=True)
class _Region:
    """A region in pixels of the feature map: corner and size, optionally rotated around a
    centre.
    """

    left: float
    top: float
    width: float
    height: float
    turn: tuple[float, float, float, float] | None = None
    """Centre x and y, cosine and sine of the rotation; the corner is then relative to the
    centre.
    """


def roi_align(
    features: Array,
    regions: Array,
    batches: Array,
    /,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    mode: str,
    aligned_mode: str = "asymmetric",
) -> Array:
    """Pool features [N, C, H, W] in regions [n, 4] (x1, y1, x2, y2) of images ``batches`` [n].

    The result is [n, C, pooled_h, pooled_w]. Each bin is the mean or the maximum of bilinear
    samples; samples more than a pixel outside count as 0.
    """
    before, after = {"asymmetric": (0.0, 0.0), "half_pixel_for_nn": (0.0, -0.5)}.get(
        aligned_mode, (0.5, -0.5)
    )
    scaled = (_rows(regions, 4) + before) * np.float32(spatial_scale) + np.float32(after)
    min_size = 1.0 if aligned_mode == "asymmetric" else -math.inf
    boxes = [
        _Region(left, top, max(right - left, min_size), max(bottom - top, min_size))
        for left, top, right, bottom in scaled
    ]
    return _pool(features, boxes, batches, (pooled_h, pooled_w), sampling_ratio, mode)


def roi_align_rotated(
    features: Array,
    regions: Array,
    batches: Array,
    /,
    *,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    clockwise_mode: bool = False,
) -> Array:
    """Pool as ROIAlign with mode avg, in rotated regions [n, 5].

    A region is centre x and y, width, height and an angle in radians.
    """
    rows = _rows(regions, 5)
    sizes = rows[:, :4] * np.float32(spatial_scale)
    boxes = []
    for (x, y, width, height), angle in zip(
        sizes, rows[:, 4] * (-1 if clockwise_mode else 1), strict=True
    ):
        turn = (x - np.float32(0.5), y - np.float32(0.5), np.cos(angle), np.sin(angle))
        boxes.append(_Region(-width / 2, -height / 2, width, height, turn))
    return _pool(features, boxes, batches, (pooled_h, pooled_w), sampling_ratio, "avg")


def feature_extractor(
    regions: Array,
    /,
    *pyramid: Array,
    output_size: int,
    sampling_ratio: int,
    pyramid_scales: tuple[int, ...],
    aligned: bool = False,
) -> tuple[Array, Array]:
    """Return features [n, C, size, size] of regions [n, 4], and the regions.

    Each region is read from the pyramid level for its size. A region without area has features of
    0.
    """
    if len(pyramid_scales) < len(pyramid):
        raise ValueError(f"{len(pyramid)} levels of the pyramid and {len(pyramid_scales)} scales")
    rows = _rows(regions, 4)
    for layer in pyramid:
        check_rank(layer, 4, "a level of the pyramid")
    levels = _levels(rows, len(pyramid))
    check_elements(
        len(rows) * pyramid[0].shape[1] * output_size * output_size, "the features of the regions"
    )
    features = np.zeros((len(rows), pyramid[0].shape[1], output_size, output_size), regions.dtype)
    offset = 0.5 if aligned else 0.0
    for level, layer in enumerate(pyramid):
        members = np.flatnonzero(levels == level)
        scaled = rows[members] * np.float32(1 / pyramid_scales[level]) - np.float32(offset)
        boxes = [
            _Region(left, top, max(right - left, 1.0), max(bottom - top, 1.0))
            for left, top, right, bottom in scaled
        ]
        batches = np.zeros(len(members), np.int64)
        features[members] = _pool(
            layer, boxes, batches, (output_size, output_size), sampling_ratio, "avg"
        )
    return features, regions


def _levels(regions: np.ndarray, count: int) -> np.ndarray:
    """Return the pyramid level of each region; ``count`` (no level) for a region without area."""
    area = (regions[:, 2] - regions[:, 0]) * (regions[:, 3] - regions[:, 1])
    size = np.sqrt(np.maximum(area, 0)) / np.float32(_CANONICAL_SIZE)
    level = np.floor(np.log2(size + np.float32(1e-6)) + np.float32(_CANONICAL_LEVEL))
    return np.where(area > 0, np.clip(level, 0, count - 1), count).astype(np.int64)


def _rows(regions: Array, size: int) -> np.ndarray:
    if regions.ndim != 2 or regions.shape[1] != size:
        raise ValueError(f"regions of shape {list(regions.shape)}: expected [n, {size}]")
    return np.asarray(widened(np.asarray(regions)))


def _pool(
    features: Array,
    regions: Sequence[_Region],
    batches: Array,
    bins: tuple[int, int],
    ratio: int,
    mode: str,
) -> np.ndarray:
    if features.ndim != 4 or batches.shape != (len(regions),):
        raise ValueError(
            f"features of shape {list(features.shape)} and batches of shape "
            f"{list(batches.shape)} for {len(regions)} regions"
        )
    channels = features.shape[1]
    check_elements(len(regions) * channels * bins[0] * bins[1], "the pooled regions")
    images = positions_within(np.asarray(batches), len(features), "batch index")
    values = np.asarray(widened(np.asarray(features)))
    pooled = np.zeros((len(regions), channels, *bins), values.dtype)
    for number, region in enumerate(regions):
        samples = _sample_region(values[images[number]], region, bins, ratio)
        if samples.shape[3] and samples.shape[4]:
            pooled[number] = (
                np.maximum(samples.max((3, 4)), 0) if mode == "max" else samples.mean((3, 4))
            )
    return to_element_type(pooled, features.dtype)


def _sample_region(
    image: np.ndarray, region: _Region, bins: tuple[int, int], ratio: int
) -> np.ndarray:
    """Return bilinear samples [C, bins, bins, samples, samples] of one region."""
    high, wide = region.height / bins[0], region.width / bins[1]
    if not (math.isfinite(high) and math.isfinite(wide)):
        raise ValueError(
            f"a region of {region.width} by {region.height} pixels cannot be divided into bins"
        )
    down, across = (
        (ratio, ratio) if ratio > 0 else (max(math.ceil(high), 0), max(math.ceil(wide), 0))
    )
    check_elements(4 * len(image) * bins[0] * bins[1] * down * across, "the samples of a region")
    ys = _places(region.top, high, bins[0], down)[:, None, :, None]
    xs = _places(region.left, wide, bins[1], across)[None, :, None, :]
    if region.turn is not None:
        x, y, cosine, sine = region.turn
        xs, ys = ys * sine + xs * cosine + x, ys * cosine - xs * sine + y
    return _bilinear(image, *np.broadcast_arrays(ys, xs))


def _places(start: float, size: float, bins: int, samples: int) -> np.ndarray:
    """Return coordinates [bins, samples] along one side, in f32 as in runtimes, or f64 if the
    corners are f64.
    """
    real: type[np.floating] = np.float64 if isinstance(start, np.float64) else np.float32
    bin_size = real(size)
    offsets = (np.arange(samples, dtype=real) + real(0.5)) * (bin_size / real(max(samples, 1)))
    return np.asarray(real(start) + np.arange(bins, dtype=real)[:, None] * bin_size + offsets)


def _bilinear(image: np.ndarray, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
    """Return values [C, ...] of an image [C, H, W] between its pixels; 0 more than a pixel
    outside.
    """
    height, width = image.shape[1:]
    outside = ~((ys >= -1) & (ys <= height) & (xs >= -1) & (xs <= width))
    if not height or not width:
        return np.zeros((len(image), *ys.shape), image.dtype)
    ys, xs = (
        np.clip(np.where(outside, 0, coordinates), 0, length - 1)
        for coordinates, length in ((ys, height), (xs, width))
    )
    top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
    down, right = (ys - top).astype(image.dtype), (xs - left).astype(image.dtype)
    bottom, end = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    upper = (1 - right) * image[:, top, left] + right * image[:, top, end]
    lower = (1 - right) * image[:, bottom, left] + right * image[:, bottom, end]
    return np.where(outside, image.dtype.type(0), (1 - down) * upper + down * lower)


def _infer_align(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    features = shape_of_rank(inputs[0], 4, "the feature map")
    regions = shape_of_rank(inputs[1], 2, "the table of regions")
    images = shape_of_rank(inputs[2], 1, "the list of images")
    count = regions.at(0).intersect(images.at(0))
    if count is None:
        raise ValueError(f"{regions.at(0)} regions and {images.at(0)} batch indices")
    shape = PartialShape(
        (count, features.at(1), static(attributes["pooled_h"]), static(attributes["pooled_w"]))
    )
    return (Known(inputs[0].element_type, shape),)


def _infer_extractor(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    count = shape_of_rank(inputs[0], 2, "the table of regions").at(0)
    size = static(attributes["output_size"])
    channels = shape_of_rank(inputs[1], 4, "the first level").at(1)
    element_type = inputs[0].element_type
    return Known(element_type, PartialShape((count, channels, size, size))), Known(
        element_type, PartialShape((count, static(4)))
    )


_ALIGN = (
    Attribute("pooled_h", "int", least=1),
    Attribute("pooled_w", "int", least=1),
    Attribute("sampling_ratio", "int", least=0),
    Attribute("spatial_scale", "float"),
)
_MODE = Attribute("mode", "str", allowed=("avg", "max"))
_TYPES = (REAL_FLOATS, REAL_FLOATS, INTEGERS)


_ALIGNED_MODES = ("asymmetric", "half_pixel_for_nn", "half_pixel")
row = family("detection", infer=_infer_align, inputs=(3, 3), types=_TYPES)

OPERATIONS: tuple[Operation, ...] = (
    row(
        "ROIAlign",
        roi_align,
        version=3,
        opsets=(3, 8),
        attributes=(*_ALIGN, _MODE),
        gradient=gradient_of_roi_align,
    ),
    row(
        "ROIAlign",
        roi_align,
        version=9,
        attributes=(
            *_ALIGN,
            _MODE,
            Attribute("aligned_mode", "str", "asymmetric", allowed=_ALIGNED_MODES),
        ),
        gradient=gradient_of_roi_align,
    ),
    row(
        "ROIAlignRotated",
        roi_align_rotated,
        version=15,
        attributes=(*_ALIGN, Attribute("clockwise_mode", "bool", False)),
    ),
    row(
        "ExperimentalDetectronROIFeatureExtractor",
        feature_extractor,
        version=6,
        infer=_infer_extractor,
        inputs=(2, None),
        outputs=2,
        types=(REAL_FLOATS,),
        attributes=(
            Attribute("output_size", "int", least=1),
            Attribute("sampling_ratio", "int", least=0),
            Attribute("pyramid_scales", "ints", least=1),
            Attribute("aligned", "bool", False),
        ),
    ),
)
