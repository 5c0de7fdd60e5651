"""Images resized linearly have ONNX Runtime's very bits, whatever the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(37)
IMAGE = ((_DICE.integers(0, 256, (2, 3, 8, 10)) - 14) * np.float32(0.02045)).astype(np.float32)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")


def resize(opset: int, scales: list[float] | None, sizes: list[int] | None, data: np.ndarray = IMAGE, **attributes: Any) -> Case:
    given = [
        np.array([], np.float32) if opset < 13 else None,
        np.array(scales or [], np.float32) if scales or opset < 13 else None,
        np.array(sizes, np.int64) if sizes else None,
    ]
    constant = tuple(number for number, one in enumerate(given, 1) if one is not None)
    return Case("Resize", [data, *given], {"mode": "linear", **attributes}, domain="", opset=opset, constant=constant)


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


OTHERS = {
    "cubic": resize(18, [1, 1, 2, 2], None, mode="cubic"),
    "antialiased": resize(18, [1, 1, 0.5, 0.5], None, antialias=1),
    "some axes": resize(18, [1.5, 2], None, axes=[2, 3]),
    "a volume": resize(18, [1, 1, 2, 1.5, 2], None, IMAGE[:, :, None]),
    "a line": resize(18, [1, 1, 1.5], None, IMAGE[0]),
    "cut out": resize(18, [1, 1, 2, 2], None, coordinate_transformation_mode="half_pixel_symmetric"),
    "the nearest": resize(18, [1, 1, 2, 2], None, mode="nearest"),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS.keys())
def test_all_else_is_left_to_the_package(case: Case) -> None:
    np.testing.assert_allclose(case.here()[0], case.there()[0], rtol=1e-5, atol=1e-5)
