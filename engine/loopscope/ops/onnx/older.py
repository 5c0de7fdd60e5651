"""First versions of ONNX operations with the meaning that they had: the onnx package computes
them as later ones, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.movement.joining import concat
from loopscope.ops.onnx.elementwise import divide
from loopscope.ops.onnx.resizing import along
from loopscope.ops.precision import computable

Arguments = Sequence[Any]
"""Arrays; None for an input that is left out."""
Attributes = Mapping[str, Any]
Older = Callable[[Arguments, Attributes, int], tuple[Any, ...]]
"""From the arguments, the attributes that the node has, and the number of its outputs."""


def _elementwise(function: Callable[..., np.ndarray]) -> Older:
    """With ``broadcast``, the second tensor lies along the first one's axes from ``axis`` on;
    without it, the shapes are the same.
    """

    def compute(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
        one, other = arguments
        if attributes.get("broadcast") and other.ndim < one.ndim:
            axis = attributes.get("axis", one.ndim - other.ndim)
            axis += one.ndim if axis < 0 else 0
            other = other.reshape(other.shape + (1,) * (one.ndim - axis - other.ndim))
        return (function(one, other),)

    return compute


def _power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    return np.power(base, exponent).astype(base.dtype)


def _gemm(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    a, b, c = arguments
    product = (a.T if attributes.get("transA") else a) @ (b.T if attributes.get("transB") else b)
    return ((attributes["alpha"] * product + attributes["beta"] * c).astype(a.dtype),)


def _reshape(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """0 keeps the length of the axis."""
    (data,) = arguments
    kept = (
        data.shape[number] if length == 0 and number < data.ndim else length
        for number, length in enumerate(attributes["shape"])
    )
    return (data.reshape(tuple(kept)),)


def _split(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    data, lengths = (*arguments, None)[:2]
    axis = attributes.get("axis", 0)
    chosen = attributes.get("split") if lengths is None else lengths.tolist()
    if chosen is None:
        return tuple(np.split(data, outputs, axis))
    if sum(chosen) != data.shape[axis]:
        raise ValueError(
            f"the parts of lengths {list(chosen)[:8]} do not make up the {data.shape[axis]} of axis {axis}"
        )
    return tuple(np.split(data, np.cumsum(chosen)[:-1], axis))


def _dropout(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    data = arguments[0]
    if not attributes.get("is_test"):
        raise ValueError(
            "with is_test 0 it trains, which is not computed before opset 7: export the model for inference"
        )
    return data, np.ones_like(data)


def _dropout_with_a_mask_of(dtype: type | None) -> Older:
    """Nothing is dropped; what the mask holds then ONNX leaves open, and ONNX Runtime leaves 0.
    None: of the type of the data.
    """

    def compute(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
        return arguments[0], np.zeros_like(arguments[0], dtype)

    return compute


def _batch_normalization(
    arguments: Arguments, attributes: Attributes, outputs: int
) -> tuple[Any, ...]:
    data = arguments[0]
    if outputs > 1 and not attributes.get("is_test"):
        raise ValueError(
            f"with {outputs} outputs it trains, which is not computed before opset 14: export the model for inference"
        )
    # Not spatial: every place of a channel has numbers of its own.
    form = (-1,) + (1,) * (data.ndim - 2) if attributes.get("spatial", 1) else data.shape[1:]
    scale, bias, mean, variance = (one.reshape(form) for one in arguments[1:5])
    return (
        ((data - mean) / np.sqrt(variance + attributes["epsilon"]) * scale + bias).astype(
            data.dtype
        ),
    )


def _flat(function: Callable[[np.ndarray], np.ndarray]) -> Older:
    """Over all axes from ``axis`` on taken as one."""

    def compute(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
        (data,) = arguments
        axis = attributes["axis"] + (data.ndim if attributes["axis"] < 0 else 0)
        rows = math.prod(data.shape[:axis])
        return (
            function(computable(data).reshape(rows, -1)).reshape(data.shape).astype(data.dtype)
            if data.size
            else data,
        )

    return compute


def _softmax(rows: np.ndarray) -> np.ndarray:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_softmax(rows: np.ndarray) -> np.ndarray:
    below = rows - rows.max(axis=1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=1, keepdims=True)))


def _hardmax(rows: np.ndarray) -> np.ndarray:
    made = np.zeros_like(rows)
    np.put_along_axis(made, rows.argmax(axis=1)[:, None], 1, axis=1)
    return made


def _cast(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    name = str(attributes["to"]).upper()
    dtype = _DTYPES.get(name)
    if dtype is None:
        raise ValueError(f"to is {name[:40]!r}, expected one of {', '.join(_DTYPES)}")
    return (arguments[0].astype(dtype),)


_DTYPES: Mapping[str, str] = {
    **{
        name: name.lower()
        for name in (
            "UINT8",
            "INT8",
            "UINT16",
            "INT16",
            "INT32",
            "INT64",
            "UINT32",
            "UINT64",
            "FLOAT16",
            "BOOL",
        )
    },
    "FLOAT": "float32",
    "DOUBLE": "float64",
}


def _concat(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    return (concat(*arguments, axis=attributes.get("axis", 1)),)


def _tile(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    data, tiles, axis = arguments[0], int(np.ravel(arguments[1])[0]), int(np.ravel(arguments[2])[0])
    check_elements(data.size * max(tiles, 0), "the output of Tile")
    return (np.concatenate([data] * tiles, axis) if tiles > 0 else np.take(data, [], axis),)


def _squeeze(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """Axes in any order, counted from either end; all of length 1 where none is named."""
    (data,) = arguments
    named = attributes.get("axes")
    return (np.squeeze(data, tuple(named) if named else None),)


def _unsqueeze(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    return (np.expand_dims(arguments[0], tuple(attributes["axes"])),)


def _upsample(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """Upsample, and Resize of opset 10: output place i lies at i / scale."""
    data = arguments[0]
    if len(arguments) > 1:
        scales = np.ravel(arguments[1]).tolist()
    elif "scales" in attributes:
        scales = list(attributes["scales"])
    else:
        scales = [1.0, 1.0, attributes["height_scale"], attributes["width_scale"]]
    if len(scales) != data.ndim or not all(math.isfinite(one) and one > 0 for one in scales):
        raise ValueError(f"the scales are {scales[:8]}, expected {data.ndim} numbers above 0")
    lengths = [math.floor(length * scale) for length, scale in zip(data.shape, scales, strict=True)]
    check_elements(math.prod(lengths), "the output of Upsample")
    if attributes["mode"] == "linear":
        return (along(data, lengths, scales),)
    for axis, (length, scale) in enumerate(zip(lengths, scales, strict=True)):
        if scale != 1:
            # In f32 as runtimes have it, on which the nearest depends.
            places = np.arange(length, dtype=np.float32) / np.float32(scale)
            whole = np.ceil(places) if scale < 1 else np.floor(places)
            data = data.take(np.minimum(whole.astype(np.int64), data.shape[axis] - 1), axis)
    return (data,)


def _max_roi_pool(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """The greatest element of each cell of a grid laid over each region (batch, left, top,
    right, bottom).
    """
    data, regions = arguments
    height, width = attributes["pooled_shape"]
    check_elements(
        len(regions) * data.shape[1] * max(height, 0) * max(width, 0), "the output of MaxRoiPool"
    )
    made = np.zeros((len(regions), data.shape[1], height, width), data.dtype)
    for number, region in enumerate(regions):
        batch, bounds = int(region[0]), np.floor(region[1:] * attributes["spatial_scale"] + 0.5)
        if not 0 <= batch < len(data):
            raise ValueError(f"region {number} is in tensor {batch} of a batch of {len(data)}")
        left, top, right, bottom = bounds.tolist()
        rows, columns = (
            _cells(top, bottom, height, data.shape[2]),
            _cells(left, right, width, data.shape[3]),
        )
        for y, (above, below) in enumerate(rows):
            for x, (before, after) in enumerate(columns):
                if above < below and before < after:
                    made[number, :, y, x] = data[batch, :, above:below, before:after].max(
                        axis=(1, 2)
                    )
    return (made,)


def _cells(first: float, last: float, count: int, most: int) -> list[tuple[int, int]]:
    """Where each of ``count`` cells between two places begins and ends."""
    size = max(last - first + 1, 1) / count
    bounds = [
        (math.floor(cell * size) + first, math.ceil((cell + 1) * size) + first)
        for cell in range(count)
    ]
    return [(int(min(max(begin, 0), most)), int(min(max(end, 0), most))) for begin, end in bounds]


_OLDER: Mapping[str, tuple[int, Older]] = {
    # type: last version with this meaning, and how it is computed
    "Add": (6, _elementwise(np.add)),
    "And": (6, _elementwise(np.logical_and)),
    "BatchNormalization": (13, _batch_normalization),
    "Cast": (5, _cast),
    "Concat": (3, _concat),
    "Div": (6, _elementwise(divide)),
    "Equal": (6, _elementwise(np.equal)),
    "Gemm": (6, _gemm),
    "Greater": (6, _elementwise(np.greater)),
    "Hardmax": (12, _flat(_hardmax)),
    "Less": (6, _elementwise(np.less)),
    "LogSoftmax": (12, _flat(_log_softmax)),
    "MaxRoiPool": (22, _max_roi_pool),
    "Mul": (6, _elementwise(np.multiply)),
    "Or": (6, _elementwise(np.logical_or)),
    "Pow": (6, _elementwise(_power)),
    "Reshape": (4, _reshape),
    "Resize": (10, _upsample),
    "Softmax": (12, _flat(_softmax)),
    "Split": (1, _split),
    "Squeeze": (12, _squeeze),
    "Sub": (6, _elementwise(np.subtract)),
    "Tile": (5, _tile),
    "Unsqueeze": (12, _unsqueeze),
    "Upsample": (10, _upsample),
    "Xor": (6, _elementwise(np.logical_xor)),
}
LATER: Mapping[tuple[str, int], int] = {("Clip", 1): 6, ("RNN", 1): 7}
"""Versions that mean what a later one does, which the onnx package computes."""


_CHANGED_OFTEN: Mapping[str, Sequence[tuple[int, Older]]] = {
    "Dropout": (
        (6, _dropout),
        (9, _dropout_with_a_mask_of(None)),
        (11, _dropout_with_a_mask_of(np.bool_)),
    ),
}
"""Each meaning with the last version that has it."""


def older(type: str, version: int) -> Older | None:
    """How an old version is computed; None where the onnx package does it right."""
    meanings = _CHANGED_OFTEN.get(type) or ([_OLDER[type]] if type in _OLDER else [])
    return next((kernel for last, kernel in meanings if version <= last), None)


def spelled_now(type: str, version: int, attributes: Attributes) -> dict[str, Any]:
    """The attributes of a version as the kernel that computes it knows them."""
    now = {name: value for name, value in attributes.items() if name != "consumed_inputs"}
    match type:
        case "GridSample" if version == 16:
            now["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(now["mode"], now["mode"])
        case "RoiAlign" if version == 10:
            now["coordinate_transformation_mode"] = "output_half_pixel"
        case "TfIdfVectorizer" if not now.get("weights"):
            now["weights"] = (1.0,) * len(now.get("ngram_indexes") or ())
        case "GRU" if now.get("direction") == "foward":
            now["direction"] = "forward"  # misspelt in the default of the first versions
        case _:
            pass
    return now
