"""Derivatives of ONNX's convolutions, poolings, Resize and Upsample, by those of OpenVINO.

Convolutions and poolings have the same groups and padding; the coordinates of Resize have the same
names as those of Interpolate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value, known_rank
from loopscope.ops.gradients.sampling import Corners, of_means
from loopscope.ops.onnx.derivatives import by_openvino_rule, openvino_adjoints
from loopscope.ops.onnx.windows import window_of
from loopscope.ops.window import per_axis

_ROI_ALIGN_DEFAULTS = (("mode", "avg"), ("coordinate_transformation_mode", "output_half_pixel"))


def conv(node: Reverse, /) -> Adjoints:
    _, filters, *bias = node.inputs
    node = _with_rank(node, known_rank(filters))
    window = window_of(node.attributes, known_rank(filters) - 2)
    return [*_in_groups(node, "Convolution", filters, window), *_bias_adjoint(node, bias)]


def conv_transpose(node: Reverse, /) -> Adjoints:
    _, filters, *bias = node.inputs
    node = _with_rank(node, known_rank(filters))
    axes = known_rank(filters) - 2
    if node.attributes["output_shape"] or str(node.attributes["auto_pad"]).startswith("SAME"):
        raise ValueError("its padding follows from output_shape or auto_pad: write it as pads")
    extra = per_axis(node.attributes["output_padding"] or (), axes, 0, "output_padding")
    window = {**window_of(node.attributes, axes), "output_padding": extra}
    return [
        *_in_groups(node, "ConvolutionBackpropData", filters, window),
        *_bias_adjoint(node, bias),
    ]


def _with_rank(node: Reverse, rank: int) -> Reverse:
    """Return the node with the rank of the filters as the rank of data and adjoint."""
    data, *rest = node.inputs
    return replace(
        node,
        inputs=(node.ranked(data, rank), *rest),
        adjoints=(node.ranked(node.adjoint, rank), *node.adjoints[1:]),
    )


def _in_groups(node: Reverse, openvino: str, filters: Value, window: Mapping[str, Any]) -> Adjoints:
    """Return the adjoints of data and filters. OpenVINO's filters have an axis of groups if there
    are several groups.
    """
    data, groups = node.inputs[0], int(node.attributes["group"])
    if groups == 1:
        return openvino_adjoints(openvino, node, (data, filters), window)[:2]
    if not filters.shape.is_static:
        raise ValueError("the shape of its filters is not known")
    first, *rest = filters.shape.lengths
    apart = node.ops.reshape(
        filters, np.array([groups, first // groups, *rest]), special_zero=False
    )
    of_data, of_filters = openvino_adjoints(f"Group{openvino}", node, (data, apart), window)[:2]
    return [of_data, None if of_filters is None else node.reshaped(of_filters, filters)]


def _bias_adjoint(node: Reverse, bias: list[Value]) -> Adjoints:
    others = np.array([0, *range(2, known_rank(node.inputs[0]))])
    return [node.ops.reduce_sum(node.adjoint, others, keep_dims=False) for _ in bias]


def max_pool(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the first of the greatest elements of each window."""
    window = window_of(node.attributes, known_rank(node.inputs[0]) - 2)
    kernel = tuple(node.attributes["kernel_shape"])
    rounding = "ceil_torch" if node.attributes.get("ceil_mode") else "floor"
    return by_openvino_rule(
        "MaxPool", node, node.inputs, {**window, "kernel": kernel, "rounding_type": rounding}
    )


def average_pool(node: Reverse, /) -> Adjoints:
    window = window_of(node.attributes, known_rank(node.inputs[0]) - 2)
    with_padding = bool(node.attributes.get("count_include_pad"))
    if node.attributes.get("ceil_mode"):
        raise ValueError("with ceil_mode its last windows reach beyond the padding")
    return by_openvino_rule(
        "AvgPool",
        node,
        node.inputs,
        {
            **window,
            "kernel": tuple(node.attributes["kernel_shape"]),
            "exclude_pad": not with_padding,
        },
    )


def over_all_places(openvino: str, node: Reverse) -> Adjoints:
    """Return the adjoint for GlobalAveragePool or GlobalMaxPool."""
    axes = node.constant(np.arange(2, known_rank(node.inputs[0])))
    return by_openvino_rule(openvino, node, (node.inputs[0], axes), {"keep_dims": True})


def lp_pool(node: Reverse, /) -> Adjoints:
    """Return the adjoint for the root of a sum of powers over each window. The sum is the average
    including padding, times the number of elements of a window.
    """
    if node.attributes.get("ceil_mode"):
        raise ValueError("with ceil_mode its last windows reach beyond the padding")
    kernel = tuple(node.attributes["kernel_shape"])
    window = window_of(node.attributes, known_rank(node.inputs[0]) - 2)
    inner = replace(node, adjoints=(_root(node) * float(math.prod(kernel)),))
    attributes = {**window, "kernel": kernel, "rounding_type": "floor", "exclude_pad": False}
    of_powers = openvino_adjoints("AvgPool", inner, node.inputs, attributes)[0]
    return (None if of_powers is None else of_powers * _power(node),)


def global_lp_pool(node: Reverse, /) -> Adjoints:
    return (_root(node) * _power(node),)


def _root(node: Reverse) -> Value:
    """Return the adjoint of the sum of powers, without the factor p. If the sum is 0, the slope
    does not exist, and 0 takes its place.
    """
    result, power = node.outputs[0], float(node.attributes.get("p", 2))
    positive = result > 0.0
    safe = node.ops.select(positive, result, node.filled(1, result))
    return node.where(positive, node.adjoint * safe ** (1 - power))


def _power(node: Reverse) -> Value:
    """Return the derivative of each element's power, without the factor p."""
    data, power = node.inputs[0], float(node.attributes.get("p", 2))
    return node.ops.sign(data) * node.ops.abs(data) ** (power - 1)


def roi_align(node: Reverse, /) -> Adjoints:
    """Return the adjoints of the images and the regions."""
    mode, coordinates = (
        str(node.attributes.get(name) or usual).lower() for name, usual in _ROI_ALIGN_DEFAULTS
    )
    if mode != "avg":
        raise ValueError(f"its mode is {mode}: only avg has a derivative")
    half = coordinates == "half_pixel"
    corners = Corners(
        0.0, float(node.attributes["spatial_scale"]), -0.5 if half else 0.0, None if half else 1.0
    )
    bins = int(node.attributes["output_height"]), int(node.attributes["output_width"])
    return of_means(node, bins, int(node.attributes["sampling_ratio"]), corners)


_DATA, _SCALES, _SIZES = 0, 2, 3
_MODES = {"nearest": "nearest", "linear": "linear_onnx", "cubic": "cubic"}
_COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
)


def resize(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoint of the data. Each element of the result is a weighted sum of the data's
    elements, so its adjoint is distributed by the same weights.
    """
    data = node.input_at(_DATA)
    assert data is not None
    mode = str(node.attributes["mode"])
    coordinates = str(node.attributes["coordinate_transformation_mode"])
    if mode not in _MODES or coordinates not in _COORDINATES:
        raise ValueError(
            f"its mode is {mode} and its coordinates are {coordinates}: "
            f"only the coordinates {', '.join(_COORDINATES)} have a derivative"
        )
    for name, usual in (
        ("antialias", 0),
        ("exclude_outside", 0),
        ("keep_aspect_ratio_policy", "stretch"),
    ):
        if (node.attributes.get(name) or usual) != usual:
            raise ValueError(f"its {name} is {node.attributes[name]}")
    lengths, by_sizes = _scales_or_sizes(node)
    attributes = {
        "mode": _MODES[mode],
        "shape_calculation_mode": "sizes" if by_sizes else "scales",
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": node.attributes["nearest_mode"],
        "cube_coeff": node.attributes["cubic_coeff_a"],
        "antialias": False,
        "pads_begin": (),
        "pads_end": (),
    }
    axes = node.attributes.get("axes")
    chosen = () if axes is None else (node.constant(np.array(axes, np.int64)),)
    return {_DATA: openvino_adjoints("Interpolate", node, (data, lengths, *chosen), attributes)[0]}


def _scales_or_sizes(node: Reverse) -> tuple[Value, bool]:
    """Return the scales or the sizes, and True for sizes. Before opset 13, the input that is not
    used may be present and empty.
    """
    scales, sizes = node.input_at(_SCALES), node.input_at(_SIZES)
    if sizes is not None and not (sizes.shape.is_static and sizes.shape.lengths == (0,)):
        return sizes, True
    assert scales is not None
    return scales, False


def upsample(node: Reverse, /) -> Adjoints:
    """Return the adjoint for Upsample, and for Resize of opset 10, whose coordinates start at the
    corner.
    """
    named = node.attributes.get("scales")
    if len(node.inputs) > 1:
        scales = node.inputs[1]
    elif named is not None:
        scales = node.constant(np.array(named, np.float32))
    else:
        scales = node.constant(
            np.array(
                [1, 1, node.attributes["height_scale"], node.attributes["width_scale"]], np.float32
            )
        )
    mode = str(node.attributes["mode"])
    attributes = {
        "mode": "linear_onnx" if mode in ("linear", "bilinear") else mode,
        "shape_calculation_mode": "scales",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "simple",
        "antialias": False,
        "pads_begin": (),
        "pads_end": (),
    }
    return by_openvino_rule("Interpolate", node, (node.inputs[0], scales), attributes)
