"""Derivatives of ONNX's Resize and Upsample: those of OpenVINO's Interpolate, whose coordinates
have the same names.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.onnx.openvino_rules import by, through

_DATA, _SCALES, _SIZES = 0, 2, 3
_MODES = {"nearest": "nearest", "linear": "linear_onnx", "cubic": "cubic"}
_COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
)


def resize(at: Reverse, /) -> Mapping[int, Value | None]:
    """Each element of the result is a weighted sum of the data's, and hands its adjoint back by
    the same weights.
    """
    data = at.input_at(_DATA)
    assert data is not None
    mode, coordinates = (
        str(at.attributes["mode"]),
        str(at.attributes["coordinate_transformation_mode"]),
    )
    if mode not in _MODES or coordinates not in _COORDINATES:
        raise ValueError(
            f"its mode is {mode} and its coordinates are {coordinates}: of {', '.join(_COORDINATES)} there is a derivative here"
        )
    for name, usual in (
        ("antialias", 0),
        ("exclude_outside", 0),
        ("keep_aspect_ratio_policy", "stretch"),
    ):
        if (at.attributes.get(name) or usual) != usual:
            raise ValueError(f"its {name} is {at.attributes[name]}")
    given, by_sizes = _given(at)
    attributes = {
        "mode": _MODES[mode],
        "shape_calculation_mode": "sizes" if by_sizes else "scales",
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": at.attributes["nearest_mode"],
        "cube_coeff": at.attributes["cubic_coeff_a"],
        "antialias": False,
        "pads_begin": (),
        "pads_end": (),
    }
    axes = at.attributes.get("axes")
    named = () if axes is None else (at.constant(np.array(axes, np.int64)),)
    return {_DATA: through("Interpolate", at, (data, given, *named), attributes)[0]}


def _given(at: Reverse) -> tuple[Value, bool]:
    """The scales or the sizes, and whether they are sizes; before opset 13 the other one may be
    there and empty.
    """
    scales, sizes = at.input_at(_SCALES), at.input_at(_SIZES)
    if sizes is not None and not (sizes.shape.is_static and sizes.shape.lengths == (0,)):
        return sizes, True
    assert scales is not None
    return scales, False


def upsample(at: Reverse, /) -> Adjoints:
    """Of Upsample, and of Resize in opset 10: places are counted from the corner."""
    named = at.attributes.get("scales")
    if len(at.inputs) > 1:
        scales = at.inputs[1]
    elif named is not None:
        scales = at.constant(np.array(named, np.float32))
    else:
        scales = at.constant(
            np.array(
                [1, 1, at.attributes["height_scale"], at.attributes["width_scale"]], np.float32
            )
        )
    mode = str(at.attributes["mode"])
    attributes = {
        "mode": "linear_onnx" if mode in ("linear", "bilinear") else mode,
        "shape_calculation_mode": "scales",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "simple",
        "antialias": False,
        "pads_begin": (),
        "pads_end": (),
    }
    return by("Interpolate", at, (at.inputs[0], scales), attributes)
