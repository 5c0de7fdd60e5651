"""Resize is what ONNX Runtime makes of it: images resized linearly to the very bits, all else
within roundings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopscope.debug.result import RunStopped
from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(37)
IMAGE = ((_DICE.integers(0, 256, (2, 3, 8, 10)) - 14) * np.float32(0.02045)).astype(np.float32)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")


def resize(
    opset: int,
    scales: list[float] | None,
    sizes: list[int] | None,
    data: np.ndarray = IMAGE,
    **attributes: Any,
) -> Case:
    given = [
        np.array([], np.float32) if opset < 13 else None,
        np.array(scales or [], np.float32) if scales or opset < 13 else None,
        np.array(sizes, np.int64) if sizes else None,
    ]
    constant = tuple(number for number, one in enumerate(given, 1) if one is not None)
    return Case(
        "Resize",
        [data, *given],
        {"mode": "linear", **attributes},
        domain="",
        opset=opset,
        constant=constant,
    )


CASES = {
    **{
        f"{coordinates} of {opset} by {size}": resize(
            opset,
            None if isinstance(size, list) else [1, 1, size, size],
            size if isinstance(size, list) else None,
            coordinate_transformation_mode=coordinates,
        )
        for coordinates in COORDINATES
        for opset in (11, 13, 18, 19)
        for size in (1.5, 2, 0.7, [2, 3, 13, 1], [2, 3, 1, 25], [2, 3, 8, 10])
    },
    "each axis by its own": resize(18, [1, 1, 0.3, 3.3], None),
    "one pixel": resize(18, [1, 1, 4, 5], None, IMAGE[:, :, :1, :1]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_bits_of_the_runtime(case: Case) -> None:
    np.testing.assert_array_equal(case.here()[0], case.there()[0])


LEAVES = _DICE.integers(0, 256, (2, 3, 5, 6)).astype(np.uint8)
SMALL = _DICE.integers(-9, 10, (2, 3, 5)).astype(np.int32)
OTHERS = {
    "cubic": resize(18, [1, 1, 2, 2], None, mode="cubic"),
    "cubic, nothing from outside": resize(
        18, [1, 1, 1.5, 0.7], None, mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5
    ),
    "cubic to one pixel": resize(
        18,
        [1, 1, 0.7, 1],
        None,
        IMAGE[:, :, :2],
        mode="cubic",
        coordinate_transformation_mode="pytorch_half_pixel",
    ),
    "antialiased": resize(18, [1, 1, 0.5, 0.5], None, antialias=1),
    "antialiased, cubic": resize(18, [1, 1, 0.3, 0.7], None, antialias=1, mode="cubic"),
    "antialiased bytes": resize(18, [1, 1, 0.5, 0.7], None, LEAVES, antialias=1),
    "antialiased whole numbers": resize(18, [1, 0.5, 0.7], None, SMALL, antialias=1),
    "some axes": resize(18, [1.5, 2], None, axes=[2, 3]),
    "axes from the end": resize(19, [2, 1.5], None, axes=[-1, -2]),
    "sizes of axes from the end": resize(18, None, [5, 12], axes=[-2, -1]),
    "sizes in proportion": resize(
        18, None, [12, 12], axes=[2, 3], keep_aspect_ratio_policy="not_larger"
    ),
    "a volume": resize(18, [1, 1, 2, 1.5, 2], None, IMAGE[:, :, None]),
    "a line": resize(18, [1, 1, 1.5], None, IMAGE[0]),
    "channels last": resize(13, [1, 2, 1.5, 1], None),
    "bytes lose what is behind the point": resize(13, [1, 1, 1.5, 2], None, LEAVES),
    "whole numbers towards 0": resize(13, [1, 1.5, 2], None, SMALL),
    "places of TensorFlow 1": resize(
        11, [1, 1, 1.5, 0.7], None, coordinate_transformation_mode="tf_half_pixel_for_nn"
    ),
    "places of TensorFlow 1, cubic": resize(
        11,
        [1, 1, 1.5, 2],
        None,
        mode="cubic",
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    ),
    "around the middle": resize(
        19, [1, 1, 0.7, 0.7], None, coordinate_transformation_mode="half_pixel_symmetric"
    ),
    "the nearest": resize(18, [1, 1, 2, 2], None, mode="nearest"),
    **{
        f"the nearest by {rounding}": resize(
            19, [1, 1.5, 0.7, 3], None, mode="nearest", nearest_mode=rounding
        )
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    },
    "of opset 10": Case(
        "Resize",
        [LEAVES, np.array([1, 1, 0.7, 3], np.float32)],
        {"mode": "linear"},
        domain="",
        opset=10,
    ),
    "Upsample": Case(
        "Upsample", [LEAVES], {"mode": "linear", "scales": [1.0, 1.0, 1.5, 1.5]}, domain="", opset=8
    ),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS.keys())
def test_the_numbers_of_the_runtime(case: Case) -> None:
    np.testing.assert_allclose(case.here()[0], case.there()[0], rtol=1e-5, atol=1e-5)


def test_a_part_is_cut_out() -> None:
    roi = np.array([0, 0, 0.2, 0.1, 1, 1, 1, 1.2], np.float32)
    given = [IMAGE[:1, :, :5, :2], roi, np.array([1, 1, 2, 3], np.float32)]
    cut = {
        "mode": "cubic",
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 7.0,
    }
    case = Case("Resize", given, cut, domain="", opset=19, constant=(1, 2))
    np.testing.assert_allclose(case.here()[0], case.there()[0], rtol=1e-5, atol=1e-5)


REFUSED = {
    "no size": ({}, "one of scales and sizes says how large the output is"),
    "a mode that is none": (
        {"mode": "quadratic", "scales": [2]},
        "mode is 'quadratic', expected nearest, linear or cubic",
    ),
    "a scale of 0": ({"scales": [0]}, "the scales are .*, expected numbers above 0"),
    "of nothing": (
        {"scales": [2], "data": np.zeros((1, 1, 3, 0), np.float32), "sizes": [1, 1, 3, 4]},
        "has no elements to resize",
    ),
}


@pytest.mark.parametrize(("given", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    data = given.get("data", IMAGE)
    scales = [1, 1, 1, *given["scales"]] if "scales" in given and "sizes" not in given else None
    case = resize(18, scales, given.get("sizes"), data, mode=given.get("mode", "linear"))
    with pytest.raises(RunStopped, match=said):
        case.here()
