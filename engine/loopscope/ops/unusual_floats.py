"""NaNs and infinities in values: of either kind, or of one."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from loopscope.ops.values import is_tensor

UnusualFloat = Literal["nan", "infinity"]
NOUNS: dict[UnusualFloat | None, str] = {
    "nan": "NaN",
    "infinity": "infinity",
    None: "NaN or infinity",
}


def rows_with(column: np.ndarray, kind: UnusualFloat | None) -> np.ndarray:
    """Return for each entry along the first axis whether it holds one; a kind of None stands for
    both.
    """
    if column.dtype.kind not in "fV" or column.dtype.names or not column.size:
        return np.zeros(len(column), np.bool_)
    numbers = column.astype(np.float32) if column.dtype.kind == "V" else column
    found = (
        np.isnan(numbers)
        if kind == "nan"
        else np.isinf(numbers)
        if kind == "infinity"
        else ~np.isfinite(numbers)
    )
    return np.asarray(found.any(axis=tuple(range(1, numbers.ndim))))


def holds_unusual(value: Any, kind: UnusualFloat | None) -> bool:
    """Return whether a value, or a tensor of a sequence, holds one; what is not a tensor of
    floats holds none.
    """
    if isinstance(value, tuple):
        return any(holds_unusual(item, kind) for item in value)
    return is_tensor(value) and bool(rows_with(np.asarray(value).reshape(1, -1), kind)[0])
