"""Conversion of colour spaces: NV12 and I420 video frames to RGB and BGR, and back to NV12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import FLOATS, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Kernel, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.kernel_arithmetic import PACKED
from loopscope.ops.kernel_checks import shape_of_rank

_TYPES = (frozenset({ElementType.U8}) | FLOATS) - PACKED
_F32 = np.float32


def nv12_to_colour(*planes: Array, reverse: bool = False) -> Array:
    """Convert NV12 to a frame [N, H, W, 3].

    The input is one plane [N, 3H/2, W, 1], or Y [N, H, W, 1] and UV [N, H/2, W/2, 2].
    """
    luma = np.asarray(planes[0])
    if len(planes) == 1:
        luma, rest = _split(luma)
        chroma = rest.reshape(len(luma), luma.shape[1] // 2, luma.shape[2] // 2, 2)
    else:
        chroma = _check_chroma(np.asarray(planes[1]), luma, 2)
    return _colour(luma, chroma[..., 0], chroma[..., 1], reverse)


def i420_to_colour(*planes: Array, reverse: bool = False) -> Array:
    """Convert I420 to a frame [N, H, W, 3].

    The input is one plane [N, 3H/2, W, 1], or Y [N, H, W, 1] and U and V [N, H/2, W/2, 1].
    """
    luma = np.asarray(planes[0])
    if len(planes) == 1:
        luma, rest = _split(luma)
        chroma = rest.reshape(len(luma), 2, luma.shape[1] // 2, luma.shape[2] // 2)
        return _colour(luma, chroma[:, 0], chroma[:, 1], reverse)
    if len(planes) != 3:
        raise ValueError(f"{len(planes)} planes: expected one, or three (Y, U, V)")
    u, v = (_check_chroma(np.asarray(plane), luma, 1)[..., 0] for plane in planes[1:])
    return _colour(luma, u, v, reverse)


def colour_to_nv12(
    image: Array, /, *, single_plane: bool = True, reverse: bool = False
) -> tuple[Array, ...]:
    """Convert a frame [N, H, W, 3] with even H and W to NV12.

    The result is one plane [N, 3H/2, W, 1], or Y [N, H, W, 1] and UV [N, H/2, W/2, 2].
    """
    image = np.asarray(image)
    if image.ndim != 4 or image.shape[3] != 3 or image.shape[1] % 2 or image.shape[2] % 2:
        raise ValueError(
            f"an image of shape {list(image.shape)}: expected [N, H, W, 3] with even H and W"
        )
    batch, height, width, _ = image.shape
    red, green, blue = np.moveaxis(image[..., ::-1] if reverse else image, -1, 0).astype(_F32)
    luma = _to_pixels(
        _F32(0.257) * red + _F32(0.504) * green + _F32(0.098) * blue + _F32(16), image.dtype
    )
    u = _to_pixels(
        _F32(-0.148) * red - _F32(0.291) * green + _F32(0.439) * blue + _F32(128), image.dtype
    )
    v = _to_pixels(
        _F32(0.439) * red - _F32(0.368) * green - _F32(0.071) * blue + _F32(128), image.dtype
    )
    chroma = np.stack([_to_pixels(_halve_resolution(plane), image.dtype) for plane in (u, v)], -1)
    if not single_plane:
        return luma[..., None], chroma
    return (np.concatenate([luma, chroma.reshape(batch, height // 2, width)], 1)[..., None],)


def _halve_resolution(plane: np.ndarray) -> np.ndarray:
    """Return means of 2 by 2 pixels."""
    batch, height, width = plane.shape
    return np.asarray(
        plane.astype(_F32).reshape(batch, height // 2, 2, width // 2, 2).sum((2, 4)) / _F32(4)
    )


def _split(plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if plane.ndim != 4 or plane.shape[3] != 1 or plane.shape[1] % 3 or plane.shape[2] % 2:
        raise ValueError(
            f"a plane of shape {list(plane.shape)}: expected [N, 3H/2, W, 1] with a "
            "height divisible by 3 and an even width"
        )
    height = plane.shape[1] // 3 * 2
    return plane[:, :height], plane[:, height:]


def _check_chroma(chroma: np.ndarray, luma: np.ndarray, channels: int) -> np.ndarray:
    expected = (
        (luma.shape[0], luma.shape[1] // 2, luma.shape[2] // 2, channels)
        if luma.ndim == 4 and luma.shape[3] == 1
        else None
    )
    if chroma.shape != expected or luma.shape[1] % 2 or luma.shape[2] % 2:
        raise ValueError(
            f"planes of shapes {list(luma.shape)} and {list(chroma.shape)}: expected "
            f"[N, H, W, 1] and [N, H/2, W/2, {channels}]"
        )
    return chroma


def _colour(luma: np.ndarray, u: np.ndarray, v: np.ndarray, reverse: bool) -> np.ndarray:
    brightness = _F32(1.164) * (luma[..., 0].astype(_F32) - _F32(16))
    blueness, redness = (
        (plane.astype(_F32) - _F32(128)).repeat(2, 1).repeat(2, 2) for plane in (u, v)
    )
    red = brightness + _F32(1.596) * redness
    green = brightness - _F32(0.391) * blueness - _F32(0.813) * redness
    blue = brightness + _F32(2.018) * blueness
    channels = (blue, green, red) if reverse else (red, green, blue)
    whole = luma.dtype == np.uint8
    return np.stack(
        [
            np.clip(np.rint(channel) if whole else channel, 0, 255).astype(luma.dtype)
            for channel in channels
        ],
        -1,
    )


def _to_pixels(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype == np.uint8:
        values = np.floor(values + _F32(0.5))
    return np.clip(values, 0, 255).astype(dtype)


def _infer_colour(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    shape = shape_of_rank(inputs[0], 4, "the first plane")
    height = shape.at(1)
    if len(inputs) == 1:
        height = static(height.length // 3 * 2) if height.is_static else UNKNOWN
    return (
        Known(inputs[0].element_type, PartialShape((shape.at(0), height, shape.at(2), static(3)))),
    )


def _infer_nv12(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    shape = shape_of_rank(inputs[0], 4, "the image")
    batch, height, width = shape.at(0), shape.at(1), shape.at(2)

    def plane(*dimensions: Dimension) -> Known:
        return Known(inputs[0].element_type, PartialShape(dimensions))

    if attributes["single_plane"]:
        return (
            plane(
                batch,
                static(height.length * 3 // 2) if height.is_static else UNKNOWN,
                width,
                static(1),
            ),
        )
    halves = [static(side.length // 2) if side.is_static else UNKNOWN for side in (height, width)]
    return plane(batch, height, width, static(1)), plane(batch, *halves, static(2))


def _bgr(kernel: Kernel) -> Kernel:
    """Return the kernel with colours in the order blue, green, red."""
    reversed_kernel = partial(kernel, reverse=True)
    reversed_kernel.__doc__ = kernel.__doc__
    return reversed_kernel


decoder = family("image", infer=_infer_colour, inputs=(1, 2), types=(_TYPES,))
encoder = family(
    "image",
    infer=_infer_nv12,
    outputs=None,
    attributes=(Attribute("single_plane", "bool", True),),
    types=(_TYPES,),
)

OPERATIONS: tuple[Operation, ...] = (
    decoder("NV12toRGB", nv12_to_colour, version=8, page="image/nv12-to-rgb-8"),
    decoder("NV12toBGR", _bgr(nv12_to_colour), version=8, page="image/nv12-to-bgr-8"),
    decoder("I420toRGB", i420_to_colour, version=8, page="image/i420-to-rgb-8", inputs=(1, 3)),
    decoder(
        "I420toBGR", _bgr(i420_to_colour), version=8, page="image/i420-to-bgr-8", inputs=(1, 3)
    ),
    encoder("RGBtoNV12", colour_to_nv12, version=17, opsets=(17, 17), page="image/rgb-to-nv12-17"),
    encoder(
        "BGRtoNV12", _bgr(colour_to_nv12), version=17, opsets=(17, 17), page="image/bgr-to-nv12-17"
    ),
)
