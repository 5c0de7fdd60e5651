"""Derivatives of the categories convolution and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

_DIFFERENT = np.random.default_rng(3).permutation(25).reshape(1, 1, 5, 5) / 20.0
_STEPS: tuple[dict[str, Any], ...] = (
    {},
    {"strides": (2,), "pads_begin": (1,), "pads_end": (2,)},
    {"strides": (2,), "dilations": (2,), "pads_begin": (0,), "pads_end": (1,)},
    {"strides": (3,), "auto_pad": "valid"},
    {"strides": (2,), "auto_pad": "same_upper"},
    {"auto_pad": "same_lower"},
)
_SPREADS: tuple[dict[str, Any], ...] = (
    {},
    {"strides": (2,), "pads_begin": (1,), "pads_end": (0,)},
    {"strides": (2,), "dilations": (2,), "output_padding": (1,)},
    {"strides": (2,), "auto_pad": "same_upper"},
)
# Regions inside, over the border, with a side that is too short, and one of another image; none of
# their samples is at a pixel.
_REGIONS = np.array(
    [
        [0.37, 0.71, 4.13, 3.59],
        [-1.43, -0.77, 2.91, 6.38],
        [2.27, 1.63, 2.83, 1.97],
        [1.19, 0.53, 7.61, 2.41],
    ]
)
_IMAGES = np.array([0, 1, 0, 1])
_ALIGNED = {"pooled_h": 2, "pooled_w": 3, "spatial_scale": 0.75, "mode": "avg"}
_POOLS: tuple[dict[str, Any], ...] = (
    {"kernel": (2, 2), "strides": (2, 2)},
    {"kernel": (3, 2), "strides": (2, 1), "pads_begin": (1, 0), "pads_end": (1, 1)},
    {"kernel": (3, 3), "strides": (2, 2), "auto_pad": "same_upper"},
    {"kernel": (2, 3), "strides": (2, 1), "auto_pad": "same_lower"},
    {"kernel": (3, 3), "strides": (2, 2), "rounding_type": "ceil"},
    {
        "kernel": (4, 1),
        "strides": (4, 3),
        "rounding_type": "ceil",
        "pads_begin": (1, 0),
        "pads_end": (1, 0),
    },
)

ROWS = (
    *(Row("Convolution", ((1, 2, 7), (2, 2, 2)), steps) for steps in _STEPS),
    Row(
        "Convolution",
        ((1, 2, 4, 5), (2, 2, 2, 3)),
        {"strides": (1, 2), "pads_begin": (1, 0), "pads_end": (0, 1)},
    ),
    Row("Convolution", ((1, 1, 3, 3, 3), (2, 1, 2, 2, 2))),
    *(Row("GroupConvolution", ((1, 4, 7), (2, 1, 2, 2)), steps) for steps in _STEPS),
    Row("GroupConvolution", ((1, 2, 4, 4), (2, 1, 1, 2, 2)), {"strides": (2, 1)}),
    *(Row("ConvolutionBackpropData", ((2, 3, 4), (3, 2, 3)), steps) for steps in _SPREADS),
    *(
        Row(
            "ConvolutionBackpropData",
            ((2, 3, 4), (3, 2, 3), np.array([8])),
            {"strides": (2,), "auto_pad": pad},
        )
        for pad in ("explicit", "same_upper", "same_lower")
    ),
    *(Row("GroupConvolutionBackpropData", ((2, 4, 3), (2, 2, 1, 2)), steps) for steps in _SPREADS),
    *(
        Row("AvgPool", ((1, 1, 5, 5),), {"exclude_pad": exclude, **pool})
        for pool in _POOLS
        for exclude in (False, True)
    ),
    Row(
        "AvgPool",
        ((1, 2, 7),),
        {"kernel": (2,), "exclude_pad": True, "dilations": (2,), "strides": (2,)},
        version=16,
    ),
    Row("AvgPool", ((1, 2, 7),), {"kernel": (3,), "exclude_pad": False}, version=1),
    # A window over nothing but padding has the least number there is, which no difference can be
    # taken of.
    *(Row("MaxPool", (_DIFFERENT,), pool) for pool in _POOLS[:-1]),
    Row("MaxPool", (_DIFFERENT,), {"kernel": (2, 2), "dilations": (2, 1), "axis": 2}),
    Row("MaxPool", (_DIFFERENT,), {"kernel": (2, 2), "strides": (2, 2)}, version=1),
    Row("MaxPool", (_DIFFERENT,), {"kernel": (2, 3)}, version=8),
    *(
        Row(
            "ROIAlign",
            ((2, 2, 5, 6), _REGIONS, _IMAGES),
            {**_ALIGNED, "sampling_ratio": ratio, "aligned_mode": mode},
        )
        for mode in ("asymmetric", "half_pixel_for_nn", "half_pixel")
        for ratio in (0, 1, 2)
    ),
    Row(
        "ROIAlign", ((2, 1, 4, 4), _REGIONS, _IMAGES), {**_ALIGNED, "sampling_ratio": 2}, version=3
    ),
)
