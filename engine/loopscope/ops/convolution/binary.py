"""The operation BinaryConvolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.convolution.dense import group_convolution, infer_convolution
from loopscope.ops.declare import Array, Known
from loopscope.ops.precision import computable, rounded
from loopscope.ops.window import Lengths, pad_data, pads, per_axis


def binary_convolution(
    data: Array,
    filters: Array,
    /,
    *,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    dilations: Lengths,
    auto_pad: str,
    mode: str,
    pad_value: float,
) -> Array:
    """Count equal minus unequal bits under each filter, for data of 0 and 1.

    Other values equal neither bit. ``[N, I, Y, X] x u1 [O, I, Y, X] -> [N, O, Y, X]``; ``mode`` is
    xnor-popcount. Spec: convolution/binary-convolution-1.
    """
    if data.ndim != 4 or filters.ndim != 4:
        raise ValueError(
            f"data of shape {list(data.shape)} and filters of shape "
            f"{list(filters.shape)}: expected rank 4"
        )
    kernel = filters.shape[2:]
    strides, dilations = per_axis(strides, 2, 1, "strides"), per_axis(dilations, 2, 1, "dilations")
    begin, end = per_axis(pads_begin, 2, 0, "pads_begin"), per_axis(pads_end, 2, 0, "pads_end")
    begin, end = pads(data.shape[2:], kernel, strides, dilations, begin, end, auto_pad)
    surrounded = pad_data(computable(data), begin, end, pad_value)
    bits = (filters["u1"] if filters.dtype.names else filters).astype(np.float32)[None]
    ones, zeros = (surrounded == 1).astype(np.float32), (surrounded == 0).astype(np.float32)
    window: dict[str, Any] = {
        "strides": strides,
        "dilations": dilations,
        "pads_begin": (),
        "pads_end": (),
        "auto_pad": "valid",
    }
    equal = group_convolution(ones, bits, **window) + group_convolution(zeros, 1 - bits, **window)
    return rounded(2 * equal - np.float32(np.prod(filters.shape[1:])), data.dtype)


def infer_binary_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the shape as for Convolution; the element type is the data's."""
    (known,) = infer_convolution(
        [Known(None, inputs[0].shape), Known(None, inputs[1].shape)], attributes
    )
    return (Known(inputs[0].element_type, known.shape),)
