"""ONNX's operations on images and boxes: AffineGrid, GridSample, ImageDecoder, NonMaxSuppression,
and the experimental Crop and ImageScaler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.native.workers import WORKERS, Crashed, Refused
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Known
from loopscope.ops.elementwise_kernels import through_float
from loopscope.ops.image.grid import grid_sample
from loopscope.ops.onnx.conditions import check_inputs
from loopscope.ops.precision import computable
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
