"""Images resized to the nearest pixel are ONNX Runtime's, whatever the coordinates, the
rounding, the axes and the type.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.test_onnx_resizing import COORDINATES, IMAGE, resize

ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
WAYS: dict[str, tuple[list[float] | None, list[int] | None]] = {
    "twice": ([1, 1, 2, 2], None),
    "uneven": ([1, 1, 0.3, 3.3], None),
    "channels, too": ([1, 2, 0.5, 1.5], None),
    "to lengths": (None, [2, 3, 13, 4]),
    "to one pixel": (None, [2, 3, 1, 1]),
}


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize(("coordinates", "rounding"), list(product(COORDINATES, ROUNDINGS)))
def test_the_nearest_pixels(coordinates: str, rounding: str, opset: int) -> None:
    for name, way in WAYS.items():
        case = resize(
            opset,
            *way,
            mode="nearest",
            coordinate_transformation_mode=coordinates,
            nearest_mode=rounding,
        )
        np.testing.assert_array_equal(case.here()[0], case.there()[0], err_msg=name)


def nearest(opset: int, scales: list[float] | None, data: np.ndarray, **attributes: Any) -> Case:
    return resize(opset, scales, None, data, mode="nearest", **attributes)


OTHERS = {
    "some axes": nearest(18, [1.5, 2], IMAGE, axes=[3, 2]),
    "bytes": nearest(13, [1, 1, 2, 0.5], (IMAGE * 20).astype(np.int8)),
    "a volume": nearest(18, [1, 1, 2, 1.5, 2], IMAGE[:, :, None]),
    "a line": nearest(18, [1.5], IMAGE[0, 0, 0]),
    "symmetric": nearest(
        19, [1, 1, 1.3, 2], IMAGE, coordinate_transformation_mode="half_pixel_symmetric"
    ),
    "no larger": resize(
        18, None, [12, 9], mode="nearest", axes=[2, 3], keep_aspect_ratio_policy="not_larger"
    ),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS.keys())
def test_other_shapes_and_attributes(case: Case) -> None:
    np.testing.assert_array_equal(case.here()[0], case.there()[0])
