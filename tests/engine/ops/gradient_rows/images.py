"""Derivatives of single operations that sample images, take patches of them, or make tensors of
a few numbers.
"""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row


def _i(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# Points within pixels, between them, and outside; none of them at a kink.
_POINTS = np.array(
    [[[[-0.83, 0.31], [0.27, -0.56], [1.17, 0.91]], [[-1.37, -1.13], [0.61, 1.43], [0.05, -0.07]]]]
)
_MODES = ("bilinear", "bicubic", "nearest")
_PADDING = ("zeros", "border", "reflection")
_APART = np.linspace(-1, 1, 60)[np.random.default_rng(3).permutation(60)].reshape(1, 2, 6, 5)
_PATCHES = {"sizes": (2, 3), "strides": (2, 1), "rates": (1, 1)}

ROWS = (
    *(
        Row(
            "GridSample",
            ((1, 2, 4, 5), _POINTS),
            {"align_corners": corners, "mode": mode, "padding_mode": padding},
            second=padding == "zeros",
        )
        for corners in (False, True)
        for mode in _MODES
        for padding in _PADDING
    ),
    Row("GridSample", ((1, 1, 3, 1), _POINTS), {"align_corners": True}),
    Row("ShuffleChannels", ((2, 6, 2),), {"axis": 1, "group": 3}),
    Row("ShuffleChannels", ((2, 3, 4),), {"axis": -1, "group": 2}),
    Row("ReorgYolo", ((1, 4, 4, 2),), {"stride": (2,)}),
    *(
        Row("ExtractImagePatches", ((1, 2, 5, 6),), _PATCHES | {"auto_pad": pad})
        for pad in ("valid", "same_upper", "same_lower")
    ),
    Row(
        "ExtractImagePatches",
        ((2, 1, 5, 5),),
        {"sizes": (2, 2), "strides": (3, 3), "rates": (2, 1), "auto_pad": "valid"},
    ),
    Row("Col2Im", ((2, 8, 9), _i(4, 4), _i(2, 2))),
    Row(
        "Col2Im",
        ((6, 8), _i(4, 4), _i(2, 3)),
        {"strides": (1, 2), "pads_begin": (1, 0), "pads_end": (1, 1), "dilations": (2, 1)},
    ),
    *(
        Row("AdaptiveAvgPool", (shape, counts))
        for shape, counts in (((1, 2, 7), _i(3)), ((1, 2, 4, 5), _i(2, 3)))
    ),
    Row("AdaptiveMaxPool", (_APART, _i(3, 2)), output=0),
    Row(
        "Range",
        (np.array(0.5), np.array(2.9), np.array(0.7)),
        {"output_type": "f64"},
        unknown_lengths=False,
    ),
    Row("OneHot", (_i(1, 0, 2), np.array(3), np.array(2.5), np.array(0.5)), {"axis": -1}),
    Row("Inverse", (np.array([[[2.0, 0.3], [0.4, 1.5]], [[1.0, 0.2], [-0.5, 0.8]]]),)),
    Row(
        "Inverse",
        (np.array([[2.0, 0.3, 0.1], [0.4, 1.5, -0.2], [0.3, 0.1, 1.2]]),),
        {"adjoint": True},
    ),
    Row("ConvertPromoteTypes", ((2, 3), (3,))),
    Row("Print", ((2, 3), (3,)), {"message": "x"}),
    Row("After", ((2, 3), (3,))),
)
