"""Derivatives of what takes elements from places or writes them there."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row


def _i(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


_MASKS = {"begin_mask": (0, 0), "end_mask": (0, 0)}

ROWS = (
    Row("Slice", ((4, 3), _i(1), _i(4), _i(2))),
    Row("Slice", ((4, 3), _i(-1), _i(-5), _i(-2), _i(0))),
    Row("Slice", ((4, 3, 2), _i(0, 1), _i(2**31, 3), _i(3, 1), _i(-1, 1))),
    Row("SliceScatter", ((4, 3), (2, 3), _i(1), _i(4), _i(2), _i(0))),
    Row("StridedSlice", ((4, 3), _i(1, 0), _i(4, 2), _i(2, 1)), _MASKS),
    Row(
        "StridedSlice",
        ((4, 3), _i(3, 0), _i(0, 2), _i(-1, 1)),
        {"begin_mask": (1, 0), "end_mask": (1, 1)},
    ),
    Row(
        "StridedSlice",
        ((4, 3), _i(2, 0), _i(3, 0)),
        _MASKS | {"shrink_axis_mask": (1, 0), "new_axis_mask": (0, 1)},
    ),
    Row("StridedSlice", ((4, 3, 2), _i(0, 1), _i(0, 2)), _MASKS | {"ellipsis_mask": (1, 0)}),
    *(
        Row("Gather", ((3, 4, 2), indices, np.array(axis)), {"batch_dims": 0})
        for indices in (np.array(1), _i(2, 0, 2), np.array([[0, 1], [1, -1]]))
        for axis in (0, 1, -1)
        if not (axis == -1 and indices.size == 3)
    ),
    Row(
        "Gather",
        ((3, 4, 2), np.array([[3, 0, 3], [1, 1, 2], [0, 1, 2]]), np.array(1)),
        {"batch_dims": 1},
    ),
    Row("Gather", ((2, 3, 4), np.array([[3, 0], [1, 1]]), np.array(2)), {"batch_dims": -1}),
    Row("Gather", ((3, 2), np.array([1, 3, -4, -1]), np.array(0))),
    Row("Gather", ((2, 3, 2), np.array([[2, 9], [-7, 0]]), np.array(1))),
    Row("Gather", ((2, 2, 3), np.array([[2, 3], [-4, 0]]), np.array(2)), {"batch_dims": 1}),
    Row("Gather", ((2, 3), np.array(-4, np.int32), np.array(1))),
    Row("Gather", ((3, 2), _i(2, 2), np.array(0)), version=1),
    Row("Gather", ((3, 2), _i(2, 2), np.array(0)), version=7),
    Row("GatherElements", ((3, 2), np.array([[0, 2], [2, 2]])), {"axis": 0}),
    Row("GatherElements", ((2, 3), np.array([[0, 0, 2, 1], [-1, 2, 2, 0]])), {"axis": -1}),
    Row("GatherND", ((3, 4, 2), np.array([[0, 1], [2, 3], [0, 1]]))),
    Row("GatherND", ((3, 4), np.array([[[1]], [[1]]]))),
    Row("GatherND", ((2, 3, 4), np.array([[[1], [0]], [[1], [1]]])), {"batch_dims": 1}),
    Row("GatherND", ((2, 2, 3), np.array([[[1], [0]], [[1], [1]]])), {"batch_dims": 2}, version=5),
    Row("ScatterUpdate", ((4, 3), _i(2, 0), (2, 3), np.array(0))),
    Row("ScatterUpdate", ((2, 4), _i(1, 3, 1), (2, 3), np.array(1))),
    Row("ScatterUpdate", ((2, 4, 2), np.array([[1, 3], [-1, 0]]), (2, 2, 2, 2), np.array(-2))),
    Row("ScatterUpdate", ((4, 3), np.array(2), (3,), np.array(0))),
    Row("ScatterElementsUpdate", ((4, 3), np.array([[0, 1, 3], [0, 2, 3]]), (2, 3), np.array(0))),
    Row("ScatterElementsUpdate", ((4, 3), np.array([[0, 1]]), (1, 2), np.array(1)), version=3),
    *(
        Row(
            "ScatterElementsUpdate",
            ((3, 4), np.array([[0, 1, 1], [-1, 2, 3]]), (2, 3), np.array(-1)),
            {"reduction": "sum", "use_init_val": use},
        )
        for use in (False, True)
    ),
    *(
        Row(
            "ScatterElementsUpdate",
            ((3, 4), np.array([[0, 1, 1], [-1, 2, 3]]), (2, 3), np.array(-1)),
            {"reduction": reduction},
        )
        for reduction in ("prod", "min", "max", "mean")
    ),
    Row(
        "ScatterElementsUpdate",
        ((3,), _i(1, 1, 2), np.array([0.0, 0.5, 0.0]), np.array(0)),
        {"reduction": "prod"},
    ),
    Row("ScatterNDUpdate", ((3, 4), np.array([[0], [2]]), (2, 4)), version=4),
    *(
        Row(
            "ScatterNDUpdate",
            ((3, 4), np.array([[0, 1], [2, 3], [0, 1]]), (3,)),
            {"reduction": reduction},
        )
        for reduction in ("none", "sum", "sub", "prod", "min", "max")
    ),
    Row("ScatterNDUpdate", ((3, 4), np.array([[1]]), (1, 4))),
)
