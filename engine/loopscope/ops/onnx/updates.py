"""ONNX operations that write updates into a copy of a tensor, or reduce it with them, in the order
of the updates.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.index import axis_within, positions_within
from loopscope.ops.onnx.conditions import check_inputs

_REDUCE: Mapping[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def scatter_elements(
    data: Array, indices: Array, updates: Array, /, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """Return ``data`` with each update at its own position, except along ``axis``, where
    ``indices`` holds the position. Negative indices count from the end.
    """
    check_inputs("ScatterElements", (data, indices, updates), {})
    if not data.ndim:
        raise ValueError("the data is a scalar, expected at least one dimension")
    along = axis_within(axis, data.ndim)
    for number, (length, whole) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if length > whole and number != along:
            raise ValueError(
                f"updates of shape {list(updates.shape)} are longer than "
                f"data {list(data.shape)} in axis {number}"
            )
    strides = [prod(data.shape[number + 1 :]) for number in range(data.ndim)]
    places = _nonnegative(indices, data.shape[along], "index") * strides[along]
    for number, length in enumerate(indices.shape):
        if number != along:
            places += (np.arange(length) * strides[number]).reshape(
                -1, *[1] * (data.ndim - number - 1)
            )
    return _update(data.reshape(-1), places.reshape(-1), updates.reshape(-1), reduction).reshape(
        data.shape
    )


def scatter_nd(data: Array, indices: Array, updates: Array, /, *, reduction: str = "none") -> Array:
    """Return ``data`` with the slices of ``updates`` at the coordinates in the last axis of
    ``indices``.

    ``updates`` have shape ``indices.shape[:-1] + data.shape[indices.shape[-1]:]``.
    """
    check_inputs("ScatterND", (data, indices, updates), {})
    depth = indices.shape[-1]
    places = np.zeros(indices.shape[:-1], np.int64)
    for number, length in enumerate(data.shape[:depth]):
        places = places * length + _nonnegative(indices[..., number], length, "index")
    slices = data.reshape(prod(data.shape[:depth]), *data.shape[depth:])
    return _update(
        slices, places.reshape(-1), updates.reshape(-1, *slices.shape[1:]), reduction
    ).reshape(data.shape)


def _nonnegative(indices: Array, length: int, what: str) -> Array:
    """Return indices counted from 0 as a new int64 array."""
    result = positions_within(indices, length, what).copy()
    if result.size and result.min() < 0:
        result[result < 0] += length
    return result


def _update(data: Array, places: Array, updates: Array, reduction: str) -> Array:
    """Return a copy in which the rows at ``places`` are replaced or reduced one after the other,
    each result rounded to the type.
    """
    result = data.copy()
    if reduction == "none":
        result[places] = updates
        return result
    if reduction not in _REDUCE:
        raise ValueError(
            f"reduction is {str(reduction)[:40]!r}, expected none, {', '.join(_REDUCE)}"
        )
    if data.dtype == object:
        raise ValueError("elements of type string have no arithmetic")
    _REDUCE[reduction].at(result, places, updates)
    return result
