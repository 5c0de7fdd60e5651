"""The type in which sums of many elements are made, so that low precision is rounded once, at the end."""

from __future__ import annotations

import numpy as np

from engine.ir.element_type import ElementType


def accumulator(dtype: np.dtype) -> np.dtype:
    """float32 for smaller floats, int32 for integers of less than 8 bits, else the type itself; ``ValueError`` for types without sums."""
    element_type = ElementType.of_dtype(dtype)
    if element_type is ElementType.STRING or dtype.names:
        raise ValueError(f"elements of type {element_type} have no arithmetic")
    if element_type.is_float:
        return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return np.dtype(np.int32) if element_type.is_integer and element_type.bits < 8 else dtype
