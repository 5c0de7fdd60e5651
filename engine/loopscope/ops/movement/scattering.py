"""Replacement or reduction of elements and slices at given indices, in a copy of a tensor."""

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
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_arithmetic import accumulator
from loopscope.ops.kernel_checks import axis_within, positions, positions_within, whole_number

_REDUCE: Mapping[str, np.ufunc] = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": np.add,
}


def scatter_update(data: Array, indices: Array, updates: Array, axis: Array, /) -> Array:
    """Replace the slices of ``data`` along ``axis`` at ``indices``.

    Updates have shape ``data[:axis] + indices + data[axis + 1:]``.
    """
    along = axis_within(whole_number(axis), data.ndim)
    expected = (*data.shape[:along], *indices.shape, *data.shape[along + 1 :])
    if updates.shape != expected and updates.size != math.prod(expected):
        raise ValueError(f"updates of shape {list(updates.shape)}, expected {list(expected)}")
    result = data.copy()
    before: tuple[Any, ...] = (slice(None),) * along
    result[(*before, positions_within(indices, data.shape[along], "index"))] = updates.reshape(
        expected
    )
    return result


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
    """Put, or reduce, each element of ``updates`` into ``data``.

    The target is the index in ``indices`` along ``axis``, and the element's own position along all
    other axes.
    """
    along = axis_within(whole_number(axis), data.ndim)
    if indices.shape != updates.shape or indices.ndim != data.ndim:
        raise ValueError(
            f"indices of shape {list(indices.shape)}, updates of shape "
            f"{list(updates.shape)}, data {list(data.shape)}"
        )
    for position, (length, whole) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if length > whole and position != along:
            raise ValueError(
                f"updates of shape {list(updates.shape)} are longer than data "
                f"{list(data.shape)} in axis {position}"
            )
    target: list[np.ndarray] = list(np.ix_(*(np.arange(length) for length in indices.shape)))
    target[along] = positions_within(indices, data.shape[along], "index")
    return _scatter(data, tuple(target), updates, reduction, use_init_val)


def scatter_nd(data: Array, indices: Array, updates: Array, /, *, reduction: str = "none") -> Array:
    """Put, or reduce, slices into ``data`` at the tuples in the last axis of ``indices``.

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
    target = tuple(
        positions_within(picked[..., axis], data.shape[axis], "index") for axis in range(depth)
    )
    if depth == 0:
        data, target, whole = data[None], (np.zeros(indices.shape[:-1], np.int64),), data.shape
        return _scatter(data, target, updates.reshape(expected), reduction, True).reshape(whole)
    return _scatter(data, target, updates.reshape(expected), reduction, True)


def _scatter(
    data: Array, target: tuple[np.ndarray, ...], updates: Array, reduction: str, use_init_val: bool
) -> Array:
    if reduction == "none":
        result = data.copy()
        result[target] = updates
        return result
    if data.dtype == np.bool_ and reduction in ("sub", "mean"):
        return _scatter_boolean(data, target, updates, reduction)
    # Reduced in a wider type, for types that numpy cannot reduce in place, or only with a rounding
    # at each step.
    wide = accumulator(data.dtype)
    result = data.astype(wide, order="C")
    if not use_init_val:
        result[target] = _neutral(reduction, wide)
    if len(target) == data.ndim:
        # One flat index for each element is several times faster than one for each axis.
        flat = _flat_index(target, data.shape)
        _REDUCE[reduction].at(
            result.reshape(-1),
            flat.reshape(-1),
            np.broadcast_to(updates.astype(wide), flat.shape).reshape(-1),
        )
    else:
        _REDUCE[reduction].at(result, target, updates.astype(wide))
    if reduction == "mean":
        count = np.zeros(data.shape, np.int64)
        np.add.at(count, target, 1)
        touched = count > 0
        divisor = count[touched] + use_init_val
        result[touched] = (
            result[touched] / divisor
            if result.dtype.kind == "f"
            else result[touched] // divisor.astype(wide)
        )
    return result.astype(data.dtype)


def _flat_index(indices: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> np.ndarray:
    flat = np.zeros((), np.int64)
    for index, length in zip(indices, shape, strict=True):
        flat = flat * length + np.where(index < 0, index + length, index)
    return flat


def _scatter_boolean(
    data: Array, target: tuple[np.ndarray, ...], updates: Array, reduction: str
) -> Array:
    if reduction == "mean":
        raise ValueError("reduction 'mean' is not defined for boolean data")
    result = data.copy()
    np.logical_xor.at(result, target, updates)
    return result


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
