"""Average pooling: separable sums divided by the number of elements in each window."""

from __future__ import annotations

from functools import lru_cache, reduce
from math import prod

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.pooling.pooling_windows import WindowFrame, combined, frame_of
from loopscope.ops.precision import computable
from loopscope.ops.window import Lengths


def average_pool(
    data: Array,
    /,
    *,
    kernel: Lengths,
    strides: Lengths,
    pads_begin: Lengths,
    pads_end: Lengths,
    exclude_pad: bool,
    rounding_type: str,
    auto_pad: str,
    dilations: Lengths = (),
) -> Array:
    """Average each window; with ``exclude-pad`` only over the elements that are not padding.

    ``[N, C, lengths...] -> [N, C, places...]``. The average of a window of padding only is 0.
    Integers are rounded half to even, as in the runtime. Without any padding, elements beyond the
    data that rounding ``ceil`` adds to a window never count. Spec: pooling/avg-pool-1, -14, -16.
    """
    frame = frame_of(
        data.shape, kernel, strides, dilations, pads_begin, pads_end, auto_pad, rounding_type
    )
    integer = data.dtype.kind in "iub" or data.dtype.name.startswith(("int", "uint"))
    values = combined(data.astype(np.float64) if integer else computable(data), frame, 0, np.add)
    if exclude_pad or not frame.is_padded:
        values /= _divisor(frame, values.dtype)
    else:
        values /= values.dtype.type(prod(kernel))
    return (np.rint(values) if integer else values).astype(data.dtype, copy=False)


@lru_cache(maxsize=256)
def _divisor(frame: WindowFrame, dtype: np.dtype) -> Array:
    """Return the number of data elements in each window, at least 1, cached by frame.

    The result is a single number if all windows have the same number.
    """
    counts = reduce(
        np.multiply.outer, [_count_along(frame, axis) for axis in range(len(frame.kernel))]
    )
    smallest = counts.min(initial=1)
    divisor: Array = np.maximum(
        counts if smallest != counts.max(initial=1) else smallest, 1
    ).astype(dtype)
    return divisor


def _count_along(frame: WindowFrame, axis: int) -> Array:
    """Return the number of data elements in each window along an axis."""
    first = np.arange(frame.counts[axis]) * frame.strides[axis] - frame.begin[axis]
    reached = first[:, None] + np.arange(frame.kernel[axis]) * frame.dilations[axis]
    return np.count_nonzero((reached >= 0) & (reached < frame.lengths[axis]), axis=1)
