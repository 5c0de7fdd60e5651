"""ONNX's operations on images, boxes and regions.

They are AffineGrid, GridSample, ImageDecoder, NonMaxSuppression, RoiAlign, MaxRoiPool, and the
experimental Crop and ImageScaler. RoiAlign resamples regions without rounding; all channels of a
region take part in a few products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from loopscope.native.workers import WORKERS, Crashed, Refused
from loopscope.ops.declare import Array, Known
from loopscope.ops.image.sampling import grid_sample
from loopscope.ops.kernel_arithmetic import computable, rounded, through_float
from loopscope.ops.kernel_checks import check_elements, positions
from loopscope.ops.onnx.conditions import check_inputs
from loopscope.ops.sort.suppression import suppress_indices

Attributes = Mapping[str, Any]


def affine_grid(matrices: Array, size: Array, /, *, align_corners: int = 0) -> Array:
    """Return the position to which each position of an image or a volume is moved. Along an axis of
    length 1 with aligned corners, it is the last position, as in ONNX Runtime.
    """
    lengths = [int(length) for length in np.ravel(size)[2:]]
    axes = len(lengths)
    if (
        axes not in (2, 3)
        or matrices.shape != (int(np.ravel(size)[0]), axes, axes + 1)
        or min(lengths) < 0
    ):
        raise ValueError(
            f"theta has shape {list(matrices.shape)} for size {np.ravel(size)[:8].tolist()}, "
            "expected [N, 2, 3] for [N, C, H, W] or [N, 3, 4] for [N, C, D, H, W]"
        )
    check_elements(len(matrices) * math.prod(lengths) * axes, "the output of AffineGrid")
    theta = computable(matrices)
    lines = [_coordinates(length, bool(align_corners)).astype(theta.dtype) for length in lengths]
    # The first coordinate is x, which lies along the last axis.
    positions = np.stack(
        [*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(lengths, theta.dtype)], axis=-1
    )
    moved = positions.reshape(-1, axes + 1) @ theta.swapaxes(1, 2)
    return moved.reshape(len(theta), *lengths, axes).astype(matrices.dtype)


def _coordinates(length: int, corners: bool) -> Array:
    """Return ``length`` coordinates from -1 to 1. With ``corners`` the first and last pixel lie on
    the ends, otherwise all pixels lie between the ends.
    """
    numbers = np.arange(length, dtype=np.float64)
    if corners:
        return numbers * (2 / (length - 1)) - 1 if length > 1 else numbers + 1
    return (2 * numbers + 1) / max(length, 1) - 1


def image_decoder(encoded: Array, /, *, pixel_format: object = "RGB") -> Array:
    """Return the pixels of an image file, [H, W, 3] or [H, W, 1], for all colour models of
    files.
    """
    if pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise ValueError(
            f"pixel_format is {str(pixel_format)[:40]!r}, expected RGB, BGR or Grayscale"
        )
    content = encoded.tobytes()
    try:
        height, width = map(int, WORKERS.ask("image size", content))
        check_elements(height * width * 3, "the output of ImageDecoder")
        mode = b"L" if pixel_format == "Grayscale" else b"RGB"
        (decoded,) = WORKERS.ask("image", mode, content)
    except (Refused, Crashed):
        raise ValueError(
            f"the {encoded.size} bytes are not an image, expected a file such as PNG or JPEG as u8"
        ) from None
    pixels = np.frombuffer(decoded, np.uint8).reshape(height, width, -1)
    return pixels[..., ::-1] if pixel_format == "BGR" else pixels


def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_boxes: Array | None = None,
    overlap: Array | None = None,
    min_score: Array | None = None,
    /,
    *,
    center_point_box: int = 0,
) -> Array:
    """Return indices of the selected boxes. Without a score threshold all boxes are candidates."""
    limits = [
        np.array(default) if limit is None else limit.reshape(-1)[0]
        for limit, default in ((max_boxes, 0), (overlap, 0.0), (min_score, -np.inf))
    ]
    encoding = "center" if center_point_box else "corner"
    return suppress_indices(
        boxes, scores, *limits, box_encoding=encoding, sort_result_descending=False
    )


def _string_attribute(value: object, default: str) -> str:
    """Return a string attribute. For a tensor in its place (a damaged file), return a text that the
    kernel rejects.
    """
    return (
        value or default
        if isinstance(value, str)
        else default
        if value is None
        else f"a {type(value).__name__}"
    )


def images_sampled(
    slow: Callable[..., Any], attributes: Attributes, outputs: int
) -> Callable[..., Any]:
    """Return the kernel of GridSample for images; ``slow`` samples volumes."""
    mode_name = _string_attribute(attributes.get("mode"), "linear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode_name, mode_name)
    settings: dict[str, Any] = {
        "mode": mode,
        "padding_mode": _string_attribute(attributes.get("padding_mode"), "zeros"),
        "align_corners": bool(attributes.get("align_corners")),
    }
    otherwise = slow(attributes, outputs)

    def sampled(data: Any, grid: Any) -> Any:
        check_inputs("GridSample", (data, grid), attributes)
        if data.ndim == 4 and data.dtype.kind == "f":
            return (grid_sample(data, grid, **settings),)
        if settings["align_corners"] and settings["padding_mode"] == "reflection":
            # Reflection between the corners of a single element is undefined; between two equal
            # elements it is defined and gives the same values.
            for axis in range(2, data.ndim):
                data = data.repeat(2, axis) if data.shape[axis] == 1 else data
        return _sample_any(otherwise, data, grid)

    return sampled


def _sample_any(sampled: Callable[..., Any], data: np.ndarray, grid: np.ndarray) -> tuple[Any, ...]:
    """Sample at coordinates that may be infinite, which lie far outside, or NaN, which gives NaN.
    ``sampled`` takes only finite coordinates of at least one point.
    """
    shape = (*data.shape[:2], *grid.shape[1:-1])
    if not math.prod(shape):
        return (np.empty(shape, data.dtype),)
    if np.isfinite(grid).all():
        return sampled(data, grid)
    (values,) = sampled(data, np.nan_to_num(grid, nan=0, posinf=_FAR, neginf=-_FAR))
    unknown = np.isnan(grid).any(-1)[:, None]
    return (
        np.where(unknown, np.nan, values).astype(data.dtype) if data.dtype.kind == "f" else values,
    )


_FAR = 1e6


@through_float
def image_scaler(data: Array, /, *, bias: Sequence[float], scale: float = 1.0) -> Array:
    """Return ``scale * x`` plus a bias for each channel: (N, C, H, W)."""
    if data.ndim != 4 or len(bias) != data.shape[1]:
        raise ValueError(
            f"shape {list(data.shape)} and {len(bias)} numbers in bias: "
            "expected 4 axes, and one number for each channel"
        )
    return data * data.dtype.type(scale) + np.asarray(bias, data.dtype).reshape(-1, 1, 1)


def crop(data: Array, /, *, border: Sequence[int], scale: Sequence[int] | None = None) -> Array:
    """Return the data without ``border`` (left, top, right, bottom), or ``scale`` rows and columns
    from the left and top border: (N, C, H, W).
    """
    if data.ndim != 4 or len(border) != 4 or min(border) < 0:
        raise ValueError(
            f"shape {list(data.shape)} and border {list(border)[:8]}: "
            "expected 4 axes, and 4 lengths from 0 on"
        )
    left, top, right, bottom = border
    height, width = (
        (data.shape[2] - top - bottom, data.shape[3] - left - right) if scale is None else scale
    )
    if not (0 < height <= data.shape[2] - top and 0 < width <= data.shape[3] - left):
        raise ValueError(
            f"{height} rows and {width} columns do not lie inside an image of "
            f"{list(data.shape[2:])} with border {list(border)}"
        )
    return data[:, :, top : top + height, left : left + width]


def cropped_shape(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Return the element type of Crop's output; its shape is not inferred."""
    return (Known(inputs[0].element_type),)


class _Samples(NamedTuple):
    """Samples along one side of a region, ``[bins, samples]``: the two pixels on both sides of
    each, and their weights.
    """

    low: Array
    high: Array
    of_low: Array
    of_high: Array


def roi_align(
    images: Array,
    regions: Array,
    batches: Array,
    /,
    *,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    coordinate_transformation_mode: str = "output_half_pixel",
) -> Array:
    """Pool images ``[N, C, H, W]`` in regions ``[n, 4]`` (x1, y1, x2, y2) of images ``batches
    [n]``, as ``[n, C, height, width]``.

    Each bin is the mean of bilinear samples, or the greatest product of a pixel and its weight in
    these samples (as in ONNX Runtime). Samples more than a pixel outside the image count as 0.
    """
    check_inputs("RoiAlign", (images, regions, batches), {})
    if mode.lower() not in ("avg", "max") or coordinate_transformation_mode.lower() not in (
        "half_pixel",
        "output_half_pixel",
    ):
        raise ValueError(
            f"mode is {mode[:40]!r} and coordinate_transformation_mode "
            f"{coordinate_transformation_mode[:40]!r}, "
            "expected avg or max, and half_pixel or output_half_pixel"
        )
    if min(output_height, output_width) < 0 or sampling_ratio < 0:
        raise ValueError(
            f"the output is {output_height} by {output_width} and sampling_ratio {sampling_ratio}, "
            "expected no negative numbers"
        )
    count, channels = len(regions), images.shape[1]
    check_elements(count * channels * output_height * output_width, "the output of RoiAlign")
    wide = computable(images)
    half_pixel = coordinate_transformation_mode.lower() == "half_pixel"
    corners = computable(regions).astype(wide.dtype) * wide.dtype.type(
        spatial_scale
    ) - wide.dtype.type(0.5 if half_pixel else 0)
    sizes = corners[:, 2:] - corners[:, :2]
    if not half_pixel:
        sizes = np.maximum(sizes, wide.dtype.type(1))
    if not np.isfinite(sizes).all():
        raise ValueError("a region has corners that are not finite")
    # Channels come last, so that the elements of a pixel are contiguous.
    channels_last = np.ascontiguousarray(wide.transpose(0, 2, 3, 1))
    pool = _mean if mode.lower() == "avg" else _max_of_products
    pooled = np.zeros((count, output_height, output_width, channels), wide.dtype)
    if pooled.size and wide.size:
        for number, image in enumerate(positions(batches)):
            down = _samples(
                corners[number, 1], sizes[number, 1], output_height, sampling_ratio, wide.shape[2]
            )
            across = _samples(
                corners[number, 0], sizes[number, 0], output_width, sampling_ratio, wide.shape[3]
            )
            if down.low.size and across.low.size:
                pooled[number] = pool(channels_last[image], down, across)
    return rounded(np.ascontiguousarray(pooled.transpose(0, 3, 1, 2)), images.dtype)


def _samples(start: np.floating, size: np.floating, bins: int, ratio: int, length: int) -> _Samples:
    """Return the samples in the precision and order of operations of ONNX Runtime. Samples outside
    the image have weights of 0.
    """
    real = start.dtype.type
    width = size / real(bins)
    count = ratio or max(0, int(np.ceil(width)))
    check_elements(bins * count, "the samples of a region")
    within = (np.arange(count, dtype=real) + real(0.5)) * width / real(max(1, count))
    positions_along = start + np.arange(bins, dtype=real)[:, None] * width + within
    outside = ~((positions_along >= -1) & (positions_along <= length))
    positions_along = np.where(outside, real(0), np.maximum(positions_along, real(0)))
    low = np.minimum(positions_along.astype(np.int64), length - 1)
    high = np.minimum(low + 1, length - 1)
    of_high = np.where(low == high, real(0), positions_along - low)
    of_low = np.where(outside, real(0), real(1) - of_high)
    return _Samples(low, high, of_low, np.where(outside, real(0), of_high))


def _mean(image: Array, down: _Samples, across: _Samples) -> Array:
    """Return ``[H, W, C] -> [bins, bins, C]``: weighted sums of the rows in use, then of the
    columns.
    """
    rows, by_row = _pixel_shares(down)
    columns, by_column = _pixel_shares(across)
    check_elements(len(rows) * len(columns) * image.shape[2], "the pixels of a region")
    part = image[rows[:, None], columns]
    tall = (by_row @ part.reshape(len(rows), -1)).reshape(len(by_row), len(columns), -1)
    return np.asarray(np.matmul(by_column, tall))


def _pixel_shares(samples: _Samples) -> tuple[Array, Array]:
    """Return the pixels along a side that samples lie between, and the share of each in the mean of
    each bin, ``[bins, pixels]``.
    """
    pixels, places = np.unique(np.stack((samples.low, samples.high)), return_inverse=True)
    bins, count = samples.low.shape
    shares = np.zeros((bins, len(pixels)), samples.of_low.dtype)
    each = np.broadcast_to(np.arange(bins)[:, None], (bins, count))
    for pixel_indices, weight in zip(
        places.reshape(2, bins, count), (samples.of_low, samples.of_high), strict=True
    ):
        np.add.at(shares, (each, pixel_indices), weight)
    return pixels, shares / shares.dtype.type(count)


def _max_of_products(image: Array, down: _Samples, across: _Samples) -> Array:
    """Return ``[H, W, C] -> [bins, bins, C]``: the greatest product of a pixel and its weight, over
    the four pixels of all samples.
    """
    bins = (*down.low.shape, *across.low.shape)
    check_elements(down.low.size * across.low.size * image.shape[2], "the samples of a region")
    products_max: Array | None = None
    for rows, of_row in ((down.low, down.of_low), (down.high, down.of_high)):
        for columns, of_column in ((across.low, across.of_low), (across.high, across.of_high)):
            weights = np.multiply.outer(of_row.reshape(-1), of_column.reshape(-1))[..., None]
            products = image[rows.reshape(-1)[:, None], columns.reshape(-1)] * weights
            products_max = (
                products
                if products_max is None
                else np.maximum(products_max, products, out=products_max)
            )
    assert products_max is not None
    greatest: Array = products_max.reshape(*bins, -1).max((1, 3))
    return greatest


def max_roi_pool(
    data: Array, regions: Array, /, *, pooled_shape: Sequence[int], spatial_scale: float
) -> Array:
    """Return the greatest element of each cell of a grid over each region (batch, left, top, right,
    bottom).
    """
    height, width = pooled_shape
    check_elements(
        len(regions) * data.shape[1] * max(height, 0) * max(width, 0), "the output of MaxRoiPool"
    )
    result = np.zeros((len(regions), data.shape[1], height, width), data.dtype)
    for number, region in enumerate(regions):
        batch, bounds = int(region[0]), np.floor(region[1:] * spatial_scale + 0.5)
        if not 0 <= batch < len(data):
            raise ValueError(f"region {number} is in tensor {batch} of a batch of {len(data)}")
        left, top, right, bottom = bounds.tolist()
        rows = _cells(top, bottom, height, data.shape[2])
        columns = _cells(left, right, width, data.shape[3])
        for y, (above, below) in enumerate(rows):
            for x, (before, after) in enumerate(columns):
                if above < below and before < after:
                    cell = data[batch, :, above:below, before:after]
                    result[number, :, y, x] = cell.max(axis=(1, 2))
    return result


def _cells(first: float, last: float, count: int, length: int) -> list[tuple[int, int]]:
    """Return begin and end of each of ``count`` cells between two positions, cut to 0 ..
    ``length``.
    """
    size = max(last - first + 1, 1) / count
    bounds = [
        (math.floor(cell * size) + first, math.ceil((cell + 1) * size) + first)
        for cell in range(count)
    ]
    return [
        (int(min(max(begin, 0), length)), int(min(max(end, 0), length))) for begin, end in bounds
    ]
