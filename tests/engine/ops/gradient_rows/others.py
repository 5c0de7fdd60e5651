"""Derivatives of single operations of the categories image, quantization, sort and sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.ops.gradient_rows.row import Row


def _i(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


_APART = np.array([[0.3, 2.0, -1.0, 1.1, 0.7], [1.5, -0.5, 0.1, 3.0, 2.2]])
_RESIZED: tuple[dict[str, Any], ...] = (
    {"mode": "linear"},
    {"mode": "linear_onnx", "coordinate_transformation_mode": "align_corners"},
    {"mode": "nearest"},
    {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    {"mode": "nearest", "coordinate_transformation_mode": "tf_half_pixel_for_nn"},
    {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"},
    {"mode": "cubic", "cube_coeff": -0.5},
)
_SIZES = {"shape_calculation_mode": "sizes"}
_SCALES = {"shape_calculation_mode": "scales"}
_BAGS = ((4, 2), _i(0, 2, 2, 3, 1), _i(0, 2, 2, 4))
_SEGMENTS = ((4, 2), _i(0, 2, 2, 3, 1), _i(0, 0, 2, 2, 3))

# So many levels that the step is far below the difference: what is rounded then is as if it were
# not.
_FINE = {"levels": 2**40}
_MARGINS = (np.array([-0.6]), np.array([[1.6]]), np.array(-0.25), np.array([2.0, 3.0, 1.0]))

ROWS = (
    *(
        Row("TopK", (_APART, np.array(2)), {"axis": 1, "mode": mode, "sort": sort}, output=0)
        for mode, sort in (("max", "value"), ("min", "index"))
    ),
    Row(
        "TopK",
        (_APART, np.array(1)),
        {"axis": -2, "mode": "max", "sort": "none"},
        version=3,
        output=0,
    ),
    *(Row("Interpolate", ((1, 2, 3, 4), _i(5, 3), _i(2, 3)), _SIZES | one) for one in _RESIZED),
    # Whole numbers, as floats would be differentiated: sizes and scales are no arguments of the
    # derivative.
    Row("Interpolate", ((1, 3, 4), _i(1, 2, 3)), _SCALES | {"mode": "linear"}),
    Row(
        "Interpolate",
        ((2, 3), _i(5), _i(1)),
        _SIZES | {"mode": "linear", "pads_begin": (1, 1), "pads_end": (0, 2)},
    ),
    Row(
        "Interpolate",
        ((2, 3), _i(4, 5), np.array([2.0, 2.0], np.float32), _i(0, 1)),
        _SIZES | {"mode": "nearest"},
        version=4,
    ),
    *(
        Row("Interpolate", ((1, 2, 3, 4), _i(5, 3)), {"axes": (2, 3), "mode": mode}, version=1)
        for mode in ("nearest", "linear", "cubic")
    ),
    *(
        Row(
            "Interpolate",
            ((2, 3, 4), _i(7)),
            {"axes": (2,), "mode": "linear", "align_corners": one},
            version=1,
        )
        for one in (True, False)
    ),
    Row(
        "Interpolate",
        ((2, 4), _i(5)),
        {"axes": (1,), "mode": "linear", "pads_begin": (1, 1), "pads_end": (0, 2)},
        version=1,
    ),
    # The step has no second derivative here, and the level that the output limits are weighed by is
    # rounded.
    Row("FakeQuantize", (_APART[:, :3], *_MARGINS), _FINE, second=False),
    Row("EmbeddingBagOffsetsSum", _BAGS),
    Row("EmbeddingBagOffsetsSum", ((4, 2), _i(0, 2, 2, 3, 1), _i(1, 2, 2, 4), np.array(1), (5,))),
    Row("EmbeddingBagOffsets", (*_BAGS, np.array(-1), (5,)), {"reduction": "sum"}),
    Row("EmbeddingBagPackedSum", ((4, 2, 2), np.array([[0, 2], [2, 3], [1, 1]]), (3, 2))),
    Row("EmbeddingBagPacked", ((4, 2), np.array([[0, 2], [2, 3], [1, 1]])), {"reduction": "sum"}),
    Row("EmbeddingSegmentsSum", (*_SEGMENTS, np.array(4))),
    Row("EmbeddingSegmentsSum", (*_SEGMENTS, np.array(3), np.array(0), (5,))),
)
