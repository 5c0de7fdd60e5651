"""ONNX operations that the onnx package computes for some attributes or shapes only: here by
their definition, or by our own kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.native.workers import WORKERS, Crashed, Refused
from loopscope.ops.activation.formulas import gelu
from loopscope.ops.bounds import check_elements
from loopscope.ops.einsum import einsum
from loopscope.ops.elements import means
from loopscope.ops.image.grid import grid_sample
from loopscope.ops.index import axis_within
from loopscope.ops.movement.distinct import unique
from loopscope.ops.movement.gathering import gather_elements, gather_nd
from loopscope.ops.onnx.conditions import check_inputs, one_axis
from loopscope.ops.onnx.older import Arguments, Attributes, Older
from loopscope.ops.onnx.recurrent import RECURRENT
from loopscope.ops.onnx.resizing import resize
from loopscope.ops.onnx.spectra import SPECTRA
from loopscope.ops.onnx.texts import TEXTS
from loopscope.ops.onnx.windows import NEWER_WINDOWS, WINDOWS
from loopscope.ops.precision import computable
from loopscope.ops.sort.suppression import suppress_indices


def _softsign(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    data = arguments[0]
    return ((data / (1 + np.abs(data))).astype(data.dtype),)


def _gelu(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    mode = attributes.get("approximate", "none")
    if mode not in ("none", "tanh"):
        raise ValueError(f"approximate is {str(mode)[:40]!r}, expected none or tanh")
    return (gelu(arguments[0], approximation_mode="erf" if mode == "none" else mode),)


def _mean(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """Of tensors of the same shape, or broadcast together."""
    total = computable(arguments[0])
    for other in arguments[1:]:
        total = total + computable(other)
    return ((total / len(arguments)).astype(arguments[0].dtype),)


def _lrn(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """Each element divided by a power of the squares of so many neighbours along the channels."""
    (data,) = arguments
    size, alpha, beta, bias = (
        attributes["size"],
        attributes["alpha"],
        attributes["beta"],
        attributes["bias"],
    )
    if data.ndim < 2 or size < 1:
        raise ValueError(
            f"size is {size} for data of shape {list(data.shape)}, expected at least 1 for [N, C, lengths...]"
        )
    values = computable(data)
    squares, sums = values * values, np.zeros_like(values)
    channels = data.shape[1]
    for offset in range(max(-((size - 1) // 2), -channels), min(size // 2, channels) + 1):
        sums[:, max(-offset, 0) : channels - max(offset, 0)] += squares[
            :, max(offset, 0) : channels + min(offset, 0)
        ]
    return ((values / (bias + alpha / size * sums) ** beta).astype(data.dtype),)


def _mean_variance(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """Less the mean over the axes, over the deviation and 1e-9; the onnx package computes no
    f64, f16 and bf16.
    """
    (data,) = arguments
    values, axes = computable(data), tuple(attributes.get("axes") or (0, 2, 3))
    mean = means(values, axes)
    variance = means(values * values, axes) - mean * mean
    deviation = np.sqrt(np.maximum(variance, 0)) + values.dtype.type(1e-9)
    return (((values - mean) / deviation).astype(data.dtype),)


def _lp_normalization(
    arguments: Arguments, attributes: Attributes, outputs: int
) -> tuple[Any, ...]:
    """Divided by the norm along an axis; 0 where that is 0."""
    (data,) = arguments
    values, axis, order = computable(data), attributes.get("axis", -1), attributes.get("p", 2)
    if order not in (1, 2):
        raise ValueError(f"p is {order}, expected 1 or 2")
    norm = np.linalg.norm(values, order, axis, keepdims=True)
    return (np.divide(values, norm, out=np.zeros_like(values), where=norm != 0).astype(data.dtype),)


def _pad(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """Negative pads cut off elements before anything is added; pads and value are attributes
    before opset 11.
    """
    data, pads, value, axes = (*arguments, None, None, None)[:4]
    if pads is None:
        pads = np.array(attributes.get("pads") or attributes.get("paddings") or (), np.int64)
        value = np.array(attributes.get("value", 0.0)).astype(data.dtype)
    chosen = (
        range(data.ndim) if axes is None else [axis_within(int(axis), data.ndim) for axis in axes]
    )
    if pads.shape != (2 * len(chosen),):
        raise ValueError(
            f"the pads have shape {list(pads.shape)}, expected {2 * len(chosen)} numbers"
        )
    both = [(0, 0)] * data.ndim
    for place, axis in enumerate(chosen):
        both[axis] = (int(pads[place]), int(pads[place + len(chosen)]))
    cut = data[
        tuple(
            slice(max(-before, 0), max(length - max(-after, 0), 0))
            for length, (before, after) in zip(data.shape, both, strict=True)
        )
    ]
    added = [(max(before, 0), max(after, 0)) for before, after in both]
    lengths = [length + sum(more) for length, more in zip(cut.shape, added, strict=True)]
    check_elements(math.prod(lengths), "the output of Pad")
    mode = attributes.get("mode", "constant")
    if mode != "constant":
        return (_continued(cut, added, mode),)
    filling = (
        ("" if data.dtype == object else data.dtype.type(0))
        if value is None
        else value.reshape(-1)[0]
    )
    made = np.full(lengths, filling, data.dtype)
    made[
        tuple(
            slice(before, before + length)
            for length, (before, _) in zip(cut.shape, added, strict=True)
        )
    ] = cut
    return (made,)


def _continued(data: np.ndarray, added: Sequence[tuple[int, int]], mode: str) -> np.ndarray:
    """Data that goes on beyond its ends as the mode says, axis by axis."""
    if mode not in _GOES_ON:
        raise ValueError(
            f"mode is {str(mode)[:40]!r}, expected one of constant, {', '.join(_GOES_ON)}"
        )
    for axis, (before, after) in enumerate(added):
        if before or after:
            length = data.shape[axis]
            if not length:
                raise ValueError(f"axis {axis} is empty and cannot be padded in mode '{mode}'")
            check_elements(before + length + after, "a padded axis")
            data = data.take(_GOES_ON[mode](np.arange(-before, length + after), length), axis)
    return data


def _reflected(places: np.ndarray, length: int) -> np.ndarray:
    """There and back again, with either end once."""
    along = places % max(2 * length - 2, 1)
    return np.minimum(along, 2 * length - 2 - along)


_GOES_ON: Mapping[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "reflect": _reflected,
    "edge": lambda places, length: np.clip(places, 0, length - 1),
    "wrap": lambda places, length: places % length,
}
"""Of places before, in and after an axis of a length, the places in it whose elements lie there."""


def _cumulative_product(
    arguments: Arguments, attributes: Attributes, outputs: int
) -> tuple[Any, ...]:
    data, axis = arguments
    one_axis(data, axis)
    along = axis_within(int(axis.reshape(-1)[0]), data.ndim)
    numbers = np.moveaxis(computable(data), along, 0)
    numbers = numbers[::-1] if attributes.get("reverse") else numbers
    if attributes.get("exclusive"):
        numbers = np.concatenate([np.ones_like(numbers[:1]), numbers[:-1]])
    made = np.cumprod(numbers, axis=0, dtype=numbers.dtype)
    return (
        np.moveaxis(made[::-1] if attributes.get("reverse") else made, 0, along).astype(data.dtype),
    )


def _determinants(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    check_inputs("Det", arguments, attributes)
    (data,) = arguments
    return (np.asarray(np.linalg.det(computable(data))).astype(data.dtype),)


def _affine_grid(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """Where each place of an image or a volume of a size is moved to; one place between corners
    is the last one, as in ONNX Runtime.
    """
    matrices, size = arguments
    lengths = [int(one) for one in np.ravel(size)[2:]]
    axes = len(lengths)
    if (
        axes not in (2, 3)
        or matrices.shape != (int(np.ravel(size)[0]), axes, axes + 1)
        or min(lengths) < 0
    ):
        expected = "[N, 2, 3] for [N, C, H, W] or [N, 3, 4] for [N, C, D, H, W]"
        raise ValueError(
            f"theta has shape {list(matrices.shape)} for size {np.ravel(size)[:8].tolist()}, expected {expected}"
        )
    check_elements(len(matrices) * math.prod(lengths) * axes, "the output of AffineGrid")
    theta = computable(matrices)
    corners = bool(attributes.get("align_corners"))
    lines = [_evenly(length, corners).astype(theta.dtype) for length in lengths]
    # x, which lies along the last axis, comes first.
    places = np.stack(
        [*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(lengths, theta.dtype)], axis=-1
    )
    moved = places.reshape(-1, axes + 1) @ theta.swapaxes(1, 2)
    return (moved.reshape(len(theta), *lengths, axes).astype(matrices.dtype),)


def _evenly(length: int, corners: bool) -> np.ndarray:
    """So many places from -1 to 1: corners on the ends, or pixels between them."""
    places = np.arange(length, dtype=np.float64)
    if corners:
        return places * (2 / (length - 1)) - 1 if length > 1 else places + 1
    return (2 * places + 1) / max(length, 1) - 1


def _one_hot(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """A new axis of ``depth`` places, with the second value at the one that the index names and
    the first elsewhere.
    """
    indices, depth, values = arguments
    length = int(depth.reshape(-1)[0])
    axis = axis_within(attributes.get("axis", -1), indices.ndim + 1)
    if length < 0 or values.shape != (2,):
        raise ValueError(
            f"the depth is {length} and the values have shape {list(values.shape)}, expected at least 0 and 2 values"
        )
    check_elements(indices.size * length, "the output of OneHot")
    whole = indices.astype(np.int64)
    named = np.expand_dims(np.where(whole < 0, whole + length, whole), axis)
    places = np.arange(length).reshape(-1, *[1] * (indices.ndim - axis))
    return (np.where(named == places, values[1], values[0]),)


def _unique(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    axis = attributes.get("axis")
    return unique(
        arguments[0],
        None if axis is None else np.array(axis),
        sorted=bool(attributes.get("sorted", 1)),
    )


def _gather_elements(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """The indices may be fewer than the data along the other axes as well."""
    data, indices = arguments
    along = axis_within(attributes.get("axis", 0), data.ndim)
    if indices.ndim == data.ndim:
        data = data[
            tuple(
                slice(None if axis == along else length)
                for axis, length in enumerate(indices.shape)
            )
        ]
    return (gather_elements(data, indices, axis=along),)


def _gather_nd(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    check_inputs("GatherND", arguments, attributes)
    return (gather_nd(*arguments, batch_dims=int(attributes.get("batch_dims") or 0)),)


def _non_max_suppression(
    arguments: Arguments, attributes: Attributes, outputs: int
) -> tuple[Any, ...]:
    """Without a threshold of scores all boxes are candidates."""
    boxes, scores, most, overlap, least = (*arguments, None, None, None)[:5]
    limits = [
        np.array(otherwise) if one is None else one.reshape(-1)[0]
        for one, otherwise in ((most, 0), (overlap, 0.0), (least, -np.inf))
    ]
    encoding = "center" if attributes.get("center_point_box") else "corner"
    return (
        suppress_indices(
            boxes, scores, *limits, box_encoding=encoding, sort_result_descending=False
        ),
    )


def _einsum(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    return (einsum(*arguments, equation=attributes["equation"]),)


def _image_decoder(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """The pixels of an image file, [H, W, 3] or [H, W, 1], whatever colours the file itself has."""
    (encoded,) = arguments
    layout = attributes.get("pixel_format", "RGB")
    if layout not in ("RGB", "BGR", "Grayscale"):
        raise ValueError(f"pixel_format is {str(layout)[:40]!r}, expected RGB, BGR or Grayscale")
    given = encoded.tobytes()
    try:
        height, width = map(int, WORKERS.ask("image size", given))
        check_elements(height * width * 3, "the output of ImageDecoder")
        (made,) = WORKERS.ask("image", b"L" if layout == "Grayscale" else b"RGB", given)
    except (Refused, Crashed):
        raise ValueError(
            f"the {encoded.size} bytes are not an image, expected a file such as PNG or JPEG as u8"
        ) from None
    pixels = np.frombuffer(made, np.uint8).reshape(height, width, -1)
    return (pixels[..., ::-1] if layout == "BGR" else pixels,)


def _word(given: object, default: str) -> str:
    """An attribute's word; of a damaged file's tensor in its place, what no word is, for the
    kernel to refuse.
    """
    return (
        given or default
        if isinstance(given, str)
        else default
        if given is None
        else f"a {type(given).__name__}"
    )


def images_sampled(
    slow: Callable[..., Any], attributes: Attributes, outputs: int
) -> Callable[..., Any]:
    """GridSample of images; ``slow`` samples volumes."""
    written = _word(attributes.get("mode"), "linear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(written, written)
    settings: dict[str, Any] = {
        "mode": mode,
        "padding_mode": _word(attributes.get("padding_mode"), "zeros"),
        "align_corners": bool(attributes.get("align_corners")),
    }
    otherwise = slow(attributes, outputs)

    def sampled(data: Any, grid: Any) -> Any:
        check_inputs("GridSample", (data, grid), attributes)
        if data.ndim == 4 and data.dtype.kind == "f":
            return (grid_sample(data, grid, **settings),)
        if settings["align_corners"] and settings["padding_mode"] == "reflection":
            # Between the corners of one element there is nothing to go back and forth in: between
            # two that are alike there is.
            for axis in range(2, data.ndim):
                data = data.repeat(2, axis) if data.shape[axis] == 1 else data
        return _sampled_anywhere(otherwise, data, grid)

    return sampled


def _sampled_anywhere(
    sampled: Callable[..., Any], data: np.ndarray, grid: np.ndarray
) -> tuple[Any, ...]:
    """By what takes finite coordinates of at least one point: infinite ones lie far outside, and
    those that are no number give none.
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


OWN: Mapping[str, tuple[int, Older]] = {
    # type: first version with this meaning, and how it is computed
    **{
        name: (1, computed)
        for name, computed in (
            *WINDOWS.items(),
            *RECURRENT.items(),
            *TEXTS.items(),
            *SPECTRA.items(),
        )
    },
    "AffineGrid": (20, _affine_grid),
    "CumProd": (26, _cumulative_product),
    "Det": (11, _determinants),
    "Einsum": (12, _einsum),
    "GatherElements": (11, _gather_elements),
    "GatherND": (11, _gather_nd),
    "Gelu": (20, _gelu),
    "ImageDecoder": (20, _image_decoder),
    "LRN": (1, _lrn),
    "LpNormalization": (1, _lp_normalization),
    "Mean": (6, _mean),
    "MeanVarianceNormalization": (9, _mean_variance),
    "NonMaxSuppression": (10, _non_max_suppression),
    "OneHot": (9, _one_hot),
    "Pad": (1, _pad),
    "Resize": (11, resize),
    "Softsign": (1, _softsign),
    "Unique": (11, _unique),
}
"""Operations whose kernel in the onnx package leaves out attributes, ranks or types; checked
against ONNX Runtime.
"""


def own(type: str, version: int) -> Older | None:
    """How a version is computed here; None where the onnx package does it right."""
    newest, newer = NEWER_WINDOWS.get(type, (1, None))
    if newer is not None and version >= newest:
        return newer
    first, computed = OWN.get(type, (1, None))
    return computed if version >= first else None
