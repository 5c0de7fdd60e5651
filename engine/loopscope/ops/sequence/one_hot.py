"""The operation OneHot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Known
from loopscope.ops.infer import common_type, spelled_length
from loopscope.ops.kernel_checks import axis_within, check_elements


def one_hot(
    indices: Array,
    depth: Array,
    on_value: Array,
    off_value: Array,
    /,
    *,
    axis: int,
    negative_indices_mode: str = "ignore_negative",
) -> Array:
    """Set ``on_value`` where the position along the new axis is the index, ``off_value`` elsewhere.

    An index out of range sets nothing. ``[...] -> [..., depth, ...]``, the new axis at ``axis``.
    Spec: sequence/one-hot-1, one-hot-16.
    """
    size = int(np.asarray(depth).reshape(-1)[0])
    if size < 0:
        raise ValueError(f"depth is {size}, expected at least 0")
    places = np.asarray(indices)
    axis = axis_within(axis, places.ndim + 1)
    check_elements(places.size * size, "the result of OneHot")
    if negative_indices_mode == "normalize":
        places = np.where(places < 0, places + size, places)
    classes = np.arange(size).reshape(size, *(1,) * (places.ndim - axis))
    hot = np.expand_dims(places, axis) == classes
    on, off = np.asarray(on_value).reshape(()), np.asarray(off_value).reshape(())
    result = np.full(hot.shape, off, off.dtype)
    result[hot] = on
    return result


def infer_one_hot(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the indices with the depth, if it is known, at the new axis."""
    element_type = common_type(inputs[2:4])
    dimensions = inputs[0].shape.dimensions
    if dimensions is None:
        return (Known(element_type),)
    axis = axis_within(attributes["axis"], len(dimensions) + 1)
    return (
        Known(
            element_type,
            PartialShape((*dimensions[:axis], spelled_length(inputs[1]), *dimensions[axis:])),
        ),
    )
