"""Derivatives of ONNX's Resize and Upsample, by that of OpenVINO's Interpolate, whose coordinates
have the same names.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.onnx.openvino_rules import by_openvino_rule, openvino_adjoints

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
