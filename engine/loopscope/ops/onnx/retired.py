"""Operations that the first versions of ONNX had as experimental ones: old files hold them, and
ONNX Runtime still runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elements import means, through_float
from loopscope.ops.infer import same


@through_float
def thresholded_relu(data: Array, /, *, alpha: float = 1.0) -> Array:
    """Elements above alpha, 0 for the others."""
    return np.where(data > alpha, data, np.zeros_like(data))


@through_float
def affine(data: Array, /, *, alpha: float = 1.0, beta: float = 0.0) -> Array:
    """``alpha * x + beta``."""
    return data * data.dtype.type(alpha) + data.dtype.type(beta)


@through_float
def scaled(data: Array, /, *, scale: float = 1.0) -> Array:
    """``scale * x``."""
    return data * data.dtype.type(scale)


@through_float
def scaled_tanh(data: Array, /, *, alpha: float, beta: float) -> Array:
    """``alpha * tanh(beta * x)``."""
    return data.dtype.type(alpha) * np.tanh(data.dtype.type(beta) * data)


@through_float
def parametric_softplus(data: Array, /, *, alpha: float, beta: float) -> Array:
    """``alpha * log(exp(beta * x) + 1)``."""
    return data.dtype.type(alpha) * np.logaddexp(data.dtype.type(beta) * data, data.dtype.type(0))


@through_float
def image_scaler(data: Array, /, *, bias: Sequence[float], scale: float = 1.0) -> Array:
    """``scale * x`` and a bias for each channel: (N, C, H, W)."""
    if data.ndim != 4 or len(bias) != data.shape[1]:
        raise ValueError(
            f"shape {list(data.shape)} and {len(bias)} numbers in bias: expected 4 axes, and one number for each channel"
        )
    return data * data.dtype.type(scale) + np.asarray(bias, data.dtype).reshape(-1, 1, 1)


def crop(data: Array, /, *, border: Sequence[int], scale: Sequence[int] | None = None) -> Array:
    """Without ``border`` (left, top, right, bottom), or ``scale`` rows and columns from its left
    and top on: (N, C, H, W).
    """
    if data.ndim != 4 or len(border) != 4 or min(border) < 0:
        raise ValueError(
            f"shape {list(data.shape)} and border {list(border)[:8]}: expected 4 axes, and 4 lengths from 0 on"
        )
    left, top, right, bottom = border
    height, width = (
        (data.shape[2] - top - bottom, data.shape[3] - left - right) if scale is None else scale
    )
    if not (0 < height <= data.shape[2] - top and 0 < width <= data.shape[3] - left):
        raise ValueError(
            f"{height} rows and {width} columns do not lie inside an image of {list(data.shape[2:])} with border {list(border)}"
        )
    return data[:, :, top : top + height, left : left + width]


@through_float
def mean_variance_normalization(
    data: Array, /, *, across_channels: int = 0, normalize_variance: int = 1
) -> Array:
    """Less the mean of each channel (or of all of an image), over the standard deviation: (N, C,
    H, W).
    """
    axes = tuple(range(1 if across_channels else 2, data.ndim))
    centred = data - means(data, axes)
    if not normalize_variance:
        return np.asarray(centred)
    return np.asarray(centred / np.sqrt(means(centred**2, axes)))


def _unknown(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(inputs[0].element_type),)


_FLOATS = frozenset({ElementType.F16, ElementType.F32, ElementType.F64})
_ALPHA, _BETA = Attribute("alpha", "float"), Attribute("beta", "float")


def _row(name: str, last: int, kernel: Any, *attributes: Attribute, infer: Any = same) -> Operation:
    page = f"onnx_{name}"
    return Operation(
        name=name,
        version=1,
        opsets=(1, last),
        page=page,
        kernel=kernel,
        infer=infer,
        attributes=attributes,
        types=(_FLOATS,),
    )


RETIRED: Mapping[str, Operation] = {
    row.name: row
    for row in (
        _row(
            "Affine", 9, affine, Attribute("alpha", "float", 1.0), Attribute("beta", "float", 0.0)
        ),
        _row(
            "Crop",
            9,
            crop,
            Attribute("border", "ints"),
            Attribute("scale", "ints", None),
            infer=_unknown,
        ),
        _row(
            "ImageScaler",
            9,
            image_scaler,
            Attribute("bias", "floats"),
            Attribute("scale", "float", 1.0),
        ),
        _row(
            "MeanVarianceNormalization",
            8,
            mean_variance_normalization,
            Attribute("across_channels", "int", 0),
            Attribute("normalize_variance", "int", 1),
        ),
        _row("ParametricSoftplus", 9, parametric_softplus, _ALPHA, _BETA),
        _row("Scale", 9, scaled, Attribute("scale", "float", 1.0)),
        _row("ScaledTanh", 9, scaled_tanh, _ALPHA, _BETA),
        _row("ThresholdedRelu", 9, thresholded_relu, Attribute("alpha", "float", 1.0)),
    )
}


def retired(type: str, version: int) -> Operation | None:
    """The row of an operation in an opset that had it; None in those that no longer have it."""
    found = RETIRED.get(type)
    return found if found is not None and version <= found.opsets[1] else None
