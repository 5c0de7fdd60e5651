"""Derivatives of the category normalization."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

_NEAR = (-1.0, 1.0)
_CHANNELS = ((3,), (3,), (3,), (3,))

ROWS = (
    *(
        Row(
            "MVN",
            ((2, 3, 4), np.array(axes)),
            {"normalize_variance": variance, "eps": 0.01, "eps_mode": mode},
            within=_NEAR,
        )
        for axes in ([1, 2], [-1])
        for variance, mode in (
            (True, "inside_sqrt"),
            (True, "outside_sqrt"),
            (False, "inside_sqrt"),
        )
    ),
    *(
        Row(
            "MVN",
            ((2, 3, 4),),
            {"normalize_variance": True, "eps": 0.1, **over},
            within=_NEAR,
            version=2,
        )
        for over in ({}, {"across_channels": True}, {"reduction_axes": (0, -1)})
    ),
    *(
        Row("NormalizeL2", ((2, 3), np.array(axes)), {"eps": eps, "eps_mode": mode})
        for axes in ([1], [0, 1])
        for eps, mode in ((0.3, "add"), (0.3, "max"), (100.0, "max"))
    ),
    Row("GRN", ((2, 3, 2),), {"bias": 0.2}),
    Row("BatchNormInference", ((2, 3, 2), *_CHANNELS), {"epsilon": 0.1}),
    Row("BatchNormInference", ((2, 3), *_CHANNELS), {"epsilon": 0.1}),
    Row("BatchNormInference", ((2, 3, 2), *_CHANNELS), {"epsilon": 0.1}, version=1),
    Row("BatchNormInference", ((3,), (3,), (2, 3, 2), (3,), (3,)), {"epsilon": 0.1}, version=1),
    *(
        Row(
            "LRN",
            ((2, 5, 3), np.array(axes)),
            {"size": size, "alpha": 0.9, "beta": 0.6, "bias": 1.5},
        )
        for axes in ([1], [1, -1], [2, 0])
        for size in (1, 3, 4, 9)
    ),
    Row("LRN", ((3, 4), np.array([0])), {"size": 3, "alpha": 0.9, "beta": 0.75, "bias": 1.0}),
    Row(
        "GroupNormalization",
        ((2, 4, 3), (4,), (4,)),
        {"num_groups": 2, "epsilon": 0.1},
        within=_NEAR,
    ),
)
