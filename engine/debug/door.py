"""How values leave the engine: as read-only numpy arrays of types that numpy users can compute with."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from engine.ops.values import NO_VALUE, is_tensor

# The 16 levels of the QLoRA paper's NormalFloat type (arXiv 2305.14314, appendix E).
NF4_LEVELS = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    np.float32,
)


def outward(value: Any) -> np.ndarray:
    """A value of the machine as a read-only array; u1, u3 and u6 as uint8 codes, nf4 as float32.

    Whatever the type says: of an ONNX model a sequence is a tuple of such arrays, an optional without a value None, a map itself.
    """
    if not is_tensor(value):
        return cast(np.ndarray, tuple(outward(one) for one in value) if isinstance(value, tuple) else None if value is NO_VALUE else value)
    array = np.asarray(value)
    if array.dtype.names:
        name = array.dtype.names[0]
        codes = array[name]
        array = NF4_LEVELS[codes & 15] if name == "nf4" else codes
    view = array.view()
    view.flags.writeable = False
    return view


def owned(value: Any) -> np.ndarray:
    """The same as a writeable array of its own, for results that outlive the run."""
    if not is_tensor(value):
        return cast(np.ndarray, tuple(owned(one) for one in value)) if isinstance(value, tuple) else outward(value)
    return np.array(outward(value))
