"""Derivatives of ONNX's convolutions and poolings: those of OpenVINO's, with groups and padding
as these have them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.region_samples import Corners, of_means
from loopscope.ops.onnx.openvino_rules import by, through
from loopscope.ops.onnx.windows import window_of
from loopscope.ops.window import per_axis


def _rank(value: Value) -> int:
    if value.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    return value.rank


def conv(at: Reverse, /) -> Adjoints:
    _, filters, *bias = at.inputs
    at = _with_rank(at, _rank(filters))
    window = window_of(at.attributes, _rank(filters) - 2)
    return [*_in_groups(at, "Convolution", filters, window), *_of_bias(at, bias)]


def conv_transpose(at: Reverse, /) -> Adjoints:
    _, filters, *bias = at.inputs
    at = _with_rank(at, _rank(filters))
    axes = _rank(filters) - 2
    if at.attributes["output_shape"] or str(at.attributes["auto_pad"]).startswith("SAME"):
        raise ValueError("its padding follows from output_shape or auto_pad: write it as pads")
    extra = per_axis(at.attributes["output_padding"] or (), axes, 0, "output_padding")
    window = {**window_of(at.attributes, axes), "output_padding": extra}
    return [*_in_groups(at, "ConvolutionBackpropData", filters, window), *_of_bias(at, bias)]


def _with_rank(at: Reverse, rank: int) -> Reverse:
    """The same with data and adjoint of a rank that is known, since the filters have it."""
    data, *rest = at.inputs
    return replace(
        at,
        inputs=(at.ranked(data, rank), *rest),
        adjoints=(at.ranked(at.adjoint, rank), *at.adjoints[1:]),
    )


def _in_groups(at: Reverse, openvino: str, filters: Value, window: Mapping[str, Any]) -> Adjoints:
    """OpenVINO's filters have an axis of groups, where there are several."""
    data, groups = at.inputs[0], int(at.attributes["group"])
    if groups == 1:
        return through(openvino, at, (data, filters), window)[:2]
    if not filters.shape.is_static:
        raise ValueError("the shape of its filters is not known")
    first, *rest = filters.shape.lengths
    apart = at.ops.reshape(filters, np.array([groups, first // groups, *rest]), special_zero=False)
    of_data, of_filters = through(f"Group{openvino}", at, (data, apart), window)[:2]
    return [of_data, None if of_filters is None else at.reshaped(of_filters, filters)]


def _of_bias(at: Reverse, bias: list[Value]) -> Adjoints:
    others = np.array([0, *range(2, _rank(at.inputs[0]))])
    return [at.ops.reduce_sum(at.adjoint, others, keep_dims=False) for _ in bias]


def max_pool(at: Reverse, /) -> Adjoints:
    """The first of the greatest elements of each window."""
    window = window_of(at.attributes, _rank(at.inputs[0]) - 2)
    kernel, rounding = (
        tuple(at.attributes["kernel_shape"]),
        "ceil_torch" if at.attributes.get("ceil_mode") else "floor",
    )
    return by("MaxPool", at, at.inputs, {**window, "kernel": kernel, "rounding_type": rounding})


def average_pool(at: Reverse, /) -> Adjoints:
    window = window_of(at.attributes, _rank(at.inputs[0]) - 2)
    with_padding = bool(at.attributes.get("count_include_pad"))
    if at.attributes.get("ceil_mode"):
        raise ValueError("with ceil_mode its last windows reach beyond the padding")
    return by(
        "AvgPool",
        at,
        at.inputs,
        {**window, "kernel": tuple(at.attributes["kernel_shape"]), "exclude_pad": not with_padding},
    )


def over_all_places(openvino: str, at: Reverse) -> Adjoints:
    """Of GlobalAveragePool and GlobalMaxPool."""
    axes = at.constant(np.arange(2, _rank(at.inputs[0])))
    return by(openvino, at, (at.inputs[0], axes), {"keep_dims": True})


def lp_pool(at: Reverse, /) -> Adjoints:
    """The root of a sum of powers over each window: the sum is an average that counts its
    padding, times the elements of a window.
    """
    if at.attributes.get("ceil_mode"):
        raise ValueError("with ceil_mode its last windows reach beyond the padding")
    kernel, window = (
        tuple(at.attributes["kernel_shape"]),
        window_of(at.attributes, _rank(at.inputs[0]) - 2),
    )
    inner = replace(at, adjoints=(_root(at) * float(math.prod(kernel)),))
    attributes = {**window, "kernel": kernel, "rounding_type": "floor", "exclude_pad": False}
    of_powers = through("AvgPool", inner, at.inputs, attributes)[0]
    return (None if of_powers is None else of_powers * _power(at),)


def global_lp_pool(at: Reverse, /) -> Adjoints:
    return (_root(at) * _power(at),)


def _root(at: Reverse) -> Value:
    """The adjoint of the sum of powers, but for a factor p; where the sum is 0 there is no
    slope, and 0 stands for it.
    """
    result, power = at.outputs[0], float(at.attributes.get("p", 2))
    positive = result > 0.0
    safe = at.ops.select(positive, result, at.filled(1, result))
    return at.where(positive, at.adjoint * safe ** (1 - power))


def _power(at: Reverse) -> Value:
    """The derivative of each element's power, but for the factor p."""
    data, power = at.inputs[0], float(at.attributes.get("p", 2))
    return at.ops.sign(data) * at.ops.abs(data) ** (power - 1)


def roi_align(at: Reverse, /) -> Adjoints:
    """Of the images and the regions."""
    mode, coordinates = (str(at.attributes.get(name) or usual).lower() for name, usual in _ALIGNED)
    if mode != "avg":
        raise ValueError(f"its mode is {mode}: only that of avg is walked back here")
    half = coordinates == "half_pixel"
    corners = Corners(
        0.0, float(at.attributes["spatial_scale"]), -0.5 if half else 0.0, None if half else 1.0
    )
    bins = int(at.attributes["output_height"]), int(at.attributes["output_width"])
    return of_means(at, bins, int(at.attributes["sampling_ratio"]), corners)


_ALIGNED = (("mode", "avg"), ("coordinate_transformation_mode", "output_half_pixel"))
