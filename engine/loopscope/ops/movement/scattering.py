"""Copies of a tensor with elements or slices replaced, or reduced with updates, at given
indices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INTEGERS
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import element_places as gradients
from loopscope.ops.index import axis_within, positions, positions_within, whole_number
from loopscope.ops.infer import common_type
from loopscope.ops.precision import accumulator

_REDUCE: Mapping[str, np.ufunc] = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": np.add,
}


def scatter_update(data: Array, indices: Array, updates: Array, axis: Array, /) -> Array:
    """``data`` with its slices along ``axis`` at ``indices`` replaced; updates: ``data[:axis] +
    indices + data[axis + 1:]``.
    """
    along = axis_within(whole_number(axis), data.ndim)
    expected = (*data.shape[:along], *indices.shape, *data.shape[along + 1 :])
    if updates.shape != expected and updates.size != math.prod(expected):
        raise ValueError(f"updates of shape {list(updates.shape)}, expected {list(expected)}")
    found = data.copy()
    before: tuple[Any, ...] = (slice(None),) * along
    found[(*before, positions_within(indices, data.shape[along], "index"))] = updates.reshape(
        expected
    )
    return found


def _infer_scatter(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(common_type([inputs[0], inputs[2]]), inputs[0].shape),)


def scatter_elements(
    data: Array,
    indices: Array,
    updates: Array,
    axis: Array,
    /,
    *,
    reduction: str = "none",
    use_init_val: bool = True,
) -> Array:
    """``data`` with each element of ``updates`` put, or reduced, at its own place but for
    ``axis``, where ``indices`` says.
    """
    along = axis_within(whole_number(axis), data.ndim)
    if indices.shape != updates.shape or indices.ndim != data.ndim:
        raise ValueError(
            f"indices of shape {list(indices.shape)}, updates of shape {list(updates.shape)}, data {list(data.shape)}"
        )
    for position, (length, whole) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if length > whole and position != along:
            raise ValueError(
                f"updates of shape {list(updates.shape)} are longer than data {list(data.shape)} in axis {position}"
            )
    place: list[np.ndarray] = list(np.ix_(*(np.arange(length) for length in indices.shape)))
    place[along] = positions_within(indices, data.shape[along], "index")
    return _scattered(data, tuple(place), updates, reduction, use_init_val)


def scatter_nd(data: Array, indices: Array, updates: Array, /, *, reduction: str = "none") -> Array:
    """``data`` with slices put, or reduced, at the tuples in the last axis of ``indices``.

    Updates have shape ``indices[:-1] + data[indices[-1]:]``; spec pages scatter-nd-update-3 and
    -15.
    """
    if indices.ndim == 0 or indices.shape[-1] > data.ndim:
        raise ValueError(
            f"indices of shape {list(indices.shape)} do not index data of shape {list(data.shape)}"
        )
    depth = indices.shape[-1]
    expected = (*indices.shape[:-1], *data.shape[depth:])
    if updates.shape != expected and updates.size != math.prod(expected):
        raise ValueError(f"updates of shape {list(updates.shape)}, expected {list(expected)}")
    picked = positions(indices)
    place = tuple(
        positions_within(picked[..., axis], data.shape[axis], "index") for axis in range(depth)
    )
    if depth == 0:
        data, place, whole = data[None], (np.zeros(indices.shape[:-1], np.int64),), data.shape
        return _scattered(data, place, updates.reshape(expected), reduction, True).reshape(whole)
    return _scattered(data, place, updates.reshape(expected), reduction, True)


def _scattered(
    data: Array, place: tuple[np.ndarray, ...], updates: Array, reduction: str, use_init_val: bool
) -> Array:
    if reduction == "none":
        found = data.copy()
        found[place] = updates
        return found
    if data.dtype == np.bool_ and reduction in ("sub", "mean"):
        return _scattered_boolean(data, place, updates, reduction)
    # Types that numpy cannot reduce in place, or only with a rounding at each step, are reduced in
    # a wider type.
    wide = accumulator(data.dtype)
    found = data.astype(wide, order="C")
    if not use_init_val:
        found[place] = _neutral(reduction, wide)
    if len(place) == data.ndim:
        # One flat index for each element is several times faster than one for each axis.
        flat = _flat(place, data.shape)
        _REDUCE[reduction].at(
            found.reshape(-1),
            flat.reshape(-1),
            np.broadcast_to(updates.astype(wide), flat.shape).reshape(-1),
        )
    else:
        _REDUCE[reduction].at(found, place, updates.astype(wide))
    if reduction == "mean":
        count = np.zeros(data.shape, np.int64)
        np.add.at(count, place, 1)
        touched = count > 0
        divisor = count[touched] + use_init_val
        found[touched] = (
            found[touched] / divisor
            if found.dtype.kind == "f"
            else found[touched] // divisor.astype(wide)
        )
    return found.astype(data.dtype)


def _flat(place: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> np.ndarray:
    flat = np.zeros((), np.int64)
    for index, length in zip(place, shape, strict=True):
        flat = flat * length + np.where(index < 0, index + length, index)
    return flat


def _scattered_boolean(
    data: Array, place: tuple[np.ndarray, ...], updates: Array, reduction: str
) -> Array:
    if reduction == "mean":
        raise ValueError("reduction 'mean' is not defined for boolean data")
    found = data.copy()
    np.logical_xor.at(found, place, updates)
    return found


def _neutral(reduction: str, dtype: np.dtype) -> Any:
    match reduction:
        case "prod":
            return 1
        case "min":
            return (
                True if dtype == np.bool_ else np.inf if dtype.kind == "f" else np.iinfo(dtype).max
            )
        case "max":
            return (
                False
                if dtype == np.bool_
                else -np.inf
                if dtype.kind == "f"
                else np.iinfo(dtype).min
            )
        case _:
            return 0


def _infer_scatter_elements(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, indices, updates = inputs[:3]
    if indices.shape.intersect(updates.shape) is None:
        raise ValueError(
            f"indices {indices.shape} and updates {updates.shape} have different shapes"
        )
    rank = (
        PartialShape.unknown(indices.shape.rank)
        if indices.shape.rank is not None
        else indices.shape
    )
    if data.shape.intersect(rank) is None:
        raise ValueError(f"data {data.shape} and indices {indices.shape} have different ranks")
    return (Known(common_type([data, updates]), data.shape),)


_TYPES = (ANY_TYPE, INTEGERS, ANY_TYPE, INTEGERS)

row = family("movement", types=_TYPES)

OPERATIONS: tuple[Operation, ...] = (
    row(
        "ScatterElementsUpdate",
        scatter_elements,
        version=3,
        opsets=(3, 11),
        infer=_infer_scatter_elements,
        inputs=(4, 4),
        gradient=gradients.scatter_elements,
    ),
    row(
        "ScatterElementsUpdate",
        scatter_elements,
        version=12,
        infer=_infer_scatter_elements,
        inputs=(4, 4),
        attributes=(
            Attribute("reduction", "str", "none", ("none", "sum", "prod", "min", "max", "mean")),
            Attribute("use_init_val", "bool", True),
        ),
        gradient=gradients.scatter_elements,
    ),
    row(
        "ScatterNDUpdate",
        scatter_nd,
        version=4,
        opsets=(4, 14),
        page="movement/scatter-nd-update-3",
        infer=_infer_scatter,
        inputs=(3, 3),
        gradient=gradients.scatter_nd,
    ),
    row(
        "ScatterNDUpdate",
        scatter_nd,
        version=15,
        infer=_infer_scatter,
        inputs=(3, 3),
        attributes=(
            Attribute("reduction", "str", "none", ("none", "sum", "sub", "prod", "min", "max")),
        ),
        gradient=gradients.scatter_nd,
    ),
    row(
        "ScatterUpdate",
        scatter_update,
        version=3,
        infer=_infer_scatter,
        inputs=(4, 4),
        gradient=gradients.scatter_update,
    ),
)
