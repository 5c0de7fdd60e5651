"""Conversion of the engine's values to read-only numpy arrays of types that numpy users can compute
with.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from loopscope.ops.casting import NF4_VALUES
from loopscope.ops.values import NO_VALUE, is_tensor


def as_public(value: Any) -> np.ndarray:
    """Return a value of the machine as a read-only array; u1, u3 and u6 as uint8 codes, nf4 as
    float32.

    Despite the declared type, an ONNX sequence is a tuple of such arrays, an optional without a
    value is None, and a map is itself.
    """
    if not is_tensor(value):
        return cast(
            np.ndarray,
            tuple(as_public(item) for item in value)
            if isinstance(value, tuple)
            else None
            if value is NO_VALUE
            else value,
        )
    array = np.asarray(value)
    if array.dtype.names:
        name = array.dtype.names[0]
        codes = array[name]
        array = np.asarray(NF4_VALUES[codes & 15]) if name == "nf4" else codes
    view = array.view()
    view.flags.writeable = False
    return view


def copy_public(value: Any) -> np.ndarray:
    """Return a writeable copy, for results that outlive the run."""
    if not is_tensor(value):
        return (
            cast(np.ndarray, tuple(copy_public(item) for item in value))
            if isinstance(value, tuple)
            else as_public(value)
        )
    return np.array(as_public(value))
