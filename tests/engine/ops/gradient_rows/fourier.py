"""Derivatives of single operations of the category signals."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.gradient_rows.row import Row


def _i(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


ROWS = (
    *(
        Row(name, ((3, 4, 2), axes))
        for name in ("DFT", "IDFT")
        for axes in (_i(0), _i(-1), _i(0, 1))
    ),
    *(Row(name, ((3, 4, 2), _i(1, 0), _i(6, 2))) for name in ("DFT", "IDFT")),
    *(Row("RDFT", ((3, length), axes)) for length in (4, 5) for axes in (_i(1), _i(0, -1), _i(-2))),
    Row("RDFT", ((3, 4), _i(0, 1), _i(-1, 6))),
    Row("RDFT", ((3, 5), _i(0, 1), _i(2, 3))),
    *(Row("IRDFT", ((3, 4, 2), axes)) for axes in (_i(1), _i(1, 0), _i(-2))),
    Row("IRDFT", ((3, 4, 2), _i(0, 1), _i(-1, 5))),
    Row("IRDFT", ((3, 4, 2), _i(1), _i(10))),
    Row("IRDFT", ((2, 4, 2), _i(0, 1), _i(3, 4))),
    *(
        Row(
            "STFT",
            ((2, 9), window, np.array(5), np.array(2)),
            {"transpose_frames": swapped},
            unknown_lengths=False,
        )
        for window in ((5,), (2,))
        for swapped in (False, True)
    ),
    Row(
        "STFT",
        ((8,), np.array([0.5, 1.0, 0.7, 0.2]), np.array(4), np.array(4)),
        {"transpose_frames": False},
        unknown_lengths=False,
    ),
)
