"""Detection of NaNs and infinities in values, together or separately."""

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
    """Return True for each entry along the first axis that contains an unusual float; None means
    both kinds.
    """
    if column.dtype.kind not in "fV" or column.dtype.names or not column.size:
        return np.zeros(len(column), np.bool_)
    numbers = column.astype(np.float32) if column.dtype.kind == "V" else column
    matches = (
        np.isnan(numbers)
        if kind == "nan"
        else np.isinf(numbers)
        if kind == "infinity"
        else ~np.isfinite(numbers)
    )
    return np.asarray(matches.any(axis=tuple(range(1, numbers.ndim))))


def holds_unusual(value: Any, kind: UnusualFloat | None) -> bool:
    """Return True if a value, or a tensor of a sequence, contains an unusual float; False for other
    than float tensors.
    """
    if isinstance(value, tuple):
        return any(holds_unusual(item, kind) for item in value)
    return is_tensor(value) and bool(rows_with(np.asarray(value).reshape(1, -1), kind)[0])
