"""Derivatives of the category movement."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    Row("Broadcast", ((2, 1), np.array([3, 2, 4])), {"mode": "numpy"}),
    Row("Broadcast", ((2, 3), np.array([2, 1])), {"mode": "bidirectional"}),
    Row("Broadcast", ((2, 3), np.array([2, 4, 3]), np.array([0, 2])), {"mode": "explicit"}),
    *(Row("Concat", ((2, 3), (2, 1), (2, 2)), {"axis": axis}) for axis in (1, -1)),
    Row("Concat", ((2, 3),), {"axis": 0}),
    Row("Split", ((2, 6), np.array(1)), {"num_splits": 3}),
    Row("Split", ((2, 6), np.array(-2)), {"num_splits": 2}, output=1),
    Row("VariadicSplit", ((2, 6), np.array(-1), np.array([1, -1, 2]))),
    Row("VariadicSplit", ((5, 2), np.array(0), np.array([3, 0, 2])), output=2),
    *(
        Row("Transpose", ((2, 3, 4), np.array(order, np.int64)))
        for order in ([1, 2, 0], [0, 2, -2], [])
    ),
    Row("Tile", ((2, 3), np.array([2, 3]))),
    Row("Tile", ((2, 3), np.array([2]))),
    Row("Tile", ((3,), np.array([2, 1, 2]))),
    Row("Pad", ((2, 3), np.array([1, 0]), np.array([0, 2])), {"pad_mode": "constant"}),
    Row(
        "Pad", ((2, 3), np.array([1, 0]), np.array([0, 2]), ()), {"pad_mode": "constant"}, version=1
    ),
    Row("Pad", ((3, 3), np.array([-1, 1]), np.array([2, -2]), ()), {"pad_mode": "constant"}),
    *(
        Row("Pad", ((2, 3), np.array([1, 1]), np.array([0, 2])), {"pad_mode": mode})
        for mode in ("edge", "reflect", "symmetric")
    ),
    Row("Roll", ((3, 4), np.array([1, -2]), np.array([0, 1]))),
    Row("Roll", ((3, 4), np.array(2), np.array([-1, 0]))),
    Row("Reverse", ((3, 4), np.array([1])), {"mode": "index"}),
    Row("Reverse", ((3, 4), np.array([True, False])), {"mode": "mask"}),
    Row("ReverseSequence", ((2, 4, 2), np.array([3, 2])), {"batch_axis": 0, "seq_axis": 1}),
    Row("ReverseSequence", ((4, 3, 2), np.array([3, 2])), {"batch_axis": 2, "seq_axis": 0}),
    *(
        Row(name, (shape,), {"mode": mode, "block_size": 2})
        for name, shape in (("DepthToSpace", (1, 8, 2, 1)), ("SpaceToDepth", (1, 2, 4, 2)))
        for mode in ("blocks_first", "depth_first")
    ),
    Row("BatchToSpace", ((4, 2, 3), np.array([1, 2, 2]), np.array([0, 1, 0]), np.array([0, 0, 1]))),
    Row("SpaceToBatch", ((1, 3, 3), np.array([1, 2, 2]), np.array([0, 1, 0]), np.array([0, 0, 1]))),
)
