"""Selection of elements and slices of a tensor by their indices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INTEGERS, NUMERIC
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import element_places as gradients
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_checks import (
    axis_within,
    check_elements,
    positions,
    positions_within,
    whole_number,
)


def gather(data: Array, indices: Array, axis: Array, /, *, batch_dims: int = 0) -> Array:
    """Select slices of ``data`` along ``axis`` (scalar) at ``indices``.

    The result has shape ``data[:axis] + indices[batch_dims:] + data[axis + 1:]``. Negative indices
    count from the end; those outside give zeros (gather-8, example 7).
    """
    along = axis_within(whole_number(axis), data.ndim)
    if batch_dims:
        return _gather_in_batches(
            data,
            positions(indices),
            along,
            batch_dims + indices.ndim if batch_dims < 0 else batch_dims,
        )
    if indices.ndim:
        check_elements(
            indices.size * (data.size // max(data.shape[along], 1)), "the gathered tensor"
        )
    try:
        result = data.take(
            positions(indices)
            if indices.dtype.kind not in "iu" or indices.dtype == np.uint64
            else indices,
            along,
        )
    except IndexError:
        result = _gather_or_zero(data, np.asarray(positions(indices)), along)
    return result if isinstance(result, (np.ndarray, np.generic)) else _as_string_tensor(result)


def _as_string_tensor(text: object) -> Array:
    """Return the only element of an object array, which numpy unwraps, as an array again."""
    array = np.empty((), object)
    array[()] = text
    return array


def _blank(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    return np.full(shape, "", object) if dtype.kind == "O" else np.zeros(shape, dtype)


def _gather_or_zero(data: Array, indices: np.ndarray, axis: int) -> Array:
    length = data.shape[axis]
    inside = (indices >= -length) & (indices < length)
    result = _blank((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.dtype)
    before = (slice(None),) * axis
    result[(*before, inside)] = data.take(indices[inside], axis)
    return result


def _gather_in_batches(data: Array, indices: np.ndarray, axis: int, batch_dims: int) -> Array:
    batch = indices.shape[:batch_dims]
    if not 0 <= batch_dims <= axis or data.shape[:batch_dims] != batch:
        raise ValueError(
            f"data of shape {list(data.shape)} and indices of shape "
            f"{list(indices.shape)} share no {batch_dims} batch axes"
        )
    length = data.shape[axis]
    between, after = data.shape[batch_dims:axis], data.shape[axis + 1 :]
    batches = math.prod(batch)
    each = indices.size // batches if batches else 0
    shape = (*batch, *between, *indices.shape[batch_dims:], *after)
    check_elements(math.prod(shape), "the gathered tensor")
    rows = data.reshape((batches, math.prod(between), length, math.prod(after)))
    flat = indices.reshape(batches, each)
    inside = (flat >= -length) & (flat < length)
    if length == 0:
        return _blank(shape, data.dtype)
    result = rows[np.arange(batches)[:, None], :, np.where(inside, flat, 0), :]
    if not inside.all():
        result[~inside] = "" if data.dtype.kind == "O" else np.zeros((), data.dtype)
    return np.moveaxis(result, 1, 2).reshape(shape)


def _infer_gather(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, indices, axis = inputs
    dimensions, picked = data.shape.dimensions, indices.shape.dimensions
    if dimensions is None or picked is None:
        return (Known(data.element_type),)
    batch_dims = attributes.get("batch_dims", 0)
    batch_dims += len(picked) if batch_dims < 0 else 0
    if not 0 <= batch_dims <= min(len(picked), len(dimensions)):
        raise ValueError(
            f"batch_dims {batch_dims} does not fit data {data.shape} and indices {indices.shape}"
        )
    if axis.value is None:
        return (
            Known(
                data.element_type,
                PartialShape.unknown(len(dimensions) + len(picked) - batch_dims - 1),
            ),
        )
    along = axis_within(whole_number(axis.value), len(dimensions))
    if along < batch_dims:
        raise ValueError(f"axis {along} is one of the {batch_dims} batch axes")
    batch = []
    for position in range(batch_dims):
        joined = dimensions[position].intersect(picked[position])
        if joined is None:
            raise ValueError(
                f"data {data.shape} and indices {indices.shape} differ in batch axis {position}"
            )
        batch.append(joined)
    return (
        Known(
            data.element_type,
            PartialShape(
                (
                    *batch,
                    *dimensions[batch_dims:along],
                    *picked[batch_dims:],
                    *dimensions[along + 1 :],
                )
            ),
        ),
    )


def gather_elements(data: Array, indices: Array, /, *, axis: int) -> Array:
    """Select for each element of ``indices`` an element of ``data``.

    The element is at that index along ``axis``, and at the element's own position along all other
    axes.
    """
    along = axis_within(axis, data.ndim)
    if (
        indices.ndim != data.ndim
        or data.shape[:along] + data.shape[along + 1 :]
        != indices.shape[:along] + indices.shape[along + 1 :]
    ):
        raise ValueError(
            f"indices of shape {list(indices.shape)} and data of shape "
            f"{list(data.shape)} differ outside axis {along}"
        )
    return np.take_along_axis(data, positions_within(indices, data.shape[along], "index"), along)


def _infer_gather_elements(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, indices = inputs
    dimensions, picked = data.shape.dimensions, indices.shape.dimensions
    if dimensions is None or picked is None:
        return (Known(data.element_type, indices.shape),)
    if len(dimensions) != len(picked):
        raise ValueError(f"data {data.shape} and indices {indices.shape} have different ranks")
    along = axis_within(attributes["axis"], len(dimensions))
    lengths = []
    for axis, (length, index_length) in enumerate(zip(dimensions, picked, strict=True)):
        joined = index_length if axis == along else length.intersect(index_length)
        if joined is None:
            raise ValueError(f"data {data.shape} and indices {indices.shape} differ in axis {axis}")
        lengths.append(joined)
    return (Known(data.element_type, PartialShape(tuple(lengths))),)


def gather_nd(data: Array, indices: Array, /, *, batch_dims: int = 0) -> Array:
    """Select the slices of ``data`` at the tuples in the last axis of ``indices``.

    The result has shape ``indices[:-1] + data[batch_dims + indices[-1]:]``.
    """
    depth = _tuple_depth(data.shape, indices.shape, batch_dims)
    batch = np.broadcast_shapes(data.shape[:batch_dims], indices.shape[:batch_dims])
    check_elements(
        math.prod((*batch, *indices.shape[batch_dims:-1], *data.shape[batch_dims + depth :])),
        "the gathered tensor",
    )
    picked = positions(indices)
    index: list[Any] = [
        positions_within(picked[..., axis], data.shape[batch_dims + axis], "index")
        for axis in range(depth)
    ]
    if not batch_dims:
        return data[(*index, ...)] if depth else _repeat(data, indices.shape[:-1])
    data = np.broadcast_to(data, (*batch, *data.shape[batch_dims:]))
    rest = indices.ndim - 1 - batch_dims
    places = [
        np.arange(length).reshape([-1] + [1] * (len(batch) - axis - 1 + rest))
        for axis, length in enumerate(batch)
    ]
    index = [np.broadcast_to(values, (*batch, *values.shape[batch_dims:])) for values in index]
    return (
        data[(*places, *index)]
        if depth
        else _repeat(data, indices.shape[batch_dims:-1], batch_dims)
    )


def _repeat(data: Array, lengths: tuple[int, ...], after: int = 0) -> Array:
    """Repeat all of ``data``, which a tuple without elements selects."""
    shape = (*data.shape[:after], *(1,) * len(lengths), *data.shape[after:])
    return np.broadcast_to(
        data.reshape(shape), (*data.shape[:after], *lengths, *data.shape[after:])
    )


def _tuple_depth(data: tuple[int, ...], indices: tuple[int, ...], batch_dims: int) -> int:
    if not 0 <= batch_dims < min(len(data), len(indices)) or indices[-1] > len(data) - batch_dims:
        raise ValueError(
            f"indices of shape {list(indices)} do not index data of shape "
            f"{list(data)} with {batch_dims} batch axes"
        )
    return indices[-1]


def gather_nd_flat(data: Array, indices: Array, /, *, batch_dims: int = 0) -> Array:
    """Select slices as GatherND-8, but join all batch axes into one axis of the result."""
    result = gather_nd(data, indices, batch_dims=batch_dims)
    return (
        result.reshape((math.prod(result.shape[:batch_dims]), *result.shape[batch_dims:]))
        if batch_dims > 1
        else result
    )


def _infer_gather_nd(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, indices = inputs
    dimensions, picked = data.shape.dimensions, indices.shape.dimensions
    if dimensions is None or picked is None or not picked or not picked[-1].is_static:
        return (Known(data.element_type),)
    batch_dims = attributes["batch_dims"]
    depth = _tuple_depth(
        (0,) * len(dimensions), (*(0,) * (len(picked) - 1), picked[-1].length), batch_dims
    )
    batch = [
        length.intersect(index_length) or UNKNOWN
        for length, index_length in zip(dimensions[:batch_dims], picked[:batch_dims], strict=True)
    ]
    return (
        Known(
            data.element_type,
            PartialShape((*batch, *picked[batch_dims:-1], *dimensions[batch_dims + depth :])),
        ),
    )


def _infer_gather_nd_flat(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    (known,) = _infer_gather_nd(inputs, attributes)
    batch_dims = attributes["batch_dims"]
    if batch_dims < 2 or known.shape.dimensions is None:
        return (known,)
    batch = known.shape.dimensions[:batch_dims]
    joined = math.prod(batch[1:], start=batch[0])
    return (
        Known(known.element_type, PartialShape((joined, *known.shape.dimensions[batch_dims:]))),
    )


def gather_tree(
    step_ids: Array, parent_ids: Array, max_seq_len: Array, end_token: Array, /
) -> Array:
    """Reconstruct the beams of a beam search from the last step backwards along ``parent_ids``.

    The result is [steps, batch, beam].
    """
    if (
        step_ids.ndim != 3
        or parent_ids.shape != step_ids.shape
        or max_seq_len.shape != step_ids.shape[1:2]
        or end_token.size != 1
    ):
        raise ValueError(
            f"step ids {list(step_ids.shape)}, parent ids {list(parent_ids.shape)}, "
            f"lengths {list(max_seq_len.shape)} do not fit"
        )
    steps, batch, beam = step_ids.shape
    end = end_token.reshape(())
    result = np.full_like(step_ids, end)
    last: np.ndarray = np.minimum(positions(max_seq_len).astype(np.int64), steps)
    rows = np.arange(batch)[:, None]
    parent = np.broadcast_to(np.arange(beam), (batch, beam))
    for step in range(steps - 1, -1, -1):
        active = np.less(step, last)
        if not active.any():
            continue
        parent = np.where(np.equal(step, last - 1)[:, None], np.arange(beam), parent)
        result[step, active] = step_ids[step][rows, parent][active]
        parent = np.where(active[:, None], _parents(parent_ids[step][rows, parent], beam), parent)
    ended = np.logical_or.accumulate(np.asarray(result == end), axis=0)
    result[ended] = end
    return result


def _parents(ids: np.ndarray, beam: int) -> np.ndarray:
    parents = positions(ids)
    if parents.size and (parents.min() < 0 or parents.max() >= beam):
        raise ValueError(f"a parent id lies outside the {beam} beams")
    return parents


def _infer_gather_tree(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    joined = inputs[0].shape.intersect(inputs[1].shape)
    if joined is None:
        raise ValueError(
            f"step ids {inputs[0].shape} and parent ids {inputs[1].shape} have different shapes"
        )
    return (Known(common_type(inputs), joined if joined.rank == 3 else DYNAMIC),)


_TYPES = (ANY_TYPE, INTEGERS)
_BATCH_DIMS = (Attribute("batch_dims", "int", 0),)
_LEADING = (Attribute("batch_dims", "int", 0, least=0),)
"""Batch dimensions of GatherND, which are not counted from the end."""

row = family("movement", inputs=(2, 2), types=_TYPES)
gathers = family("movement", infer=_infer_gather, inputs=(3, 3), types=_TYPES)

OPERATIONS: tuple[Operation, ...] = (
    gathers("Gather", gather, opsets=(1, 6), gradient=gradients.gather),
    gathers(
        "Gather",
        gather,
        version=7,
        opsets=(7, 7),
        attributes=_BATCH_DIMS,
        gradient=gradients.gather,
    ),
    gathers("Gather", gather, version=8, attributes=_BATCH_DIMS, gradient=gradients.gather_or_zero),
    row(
        "GatherElements",
        gather_elements,
        version=6,
        infer=_infer_gather_elements,
        attributes=(Attribute("axis", "int"),),
        gradient=gradients.gather_elements,
    ),
    row(
        "GatherND",
        gather_nd_flat,
        version=5,
        opsets=(5, 7),
        infer=_infer_gather_nd_flat,
        attributes=_LEADING,
        gradient=gradients.gather_nd,
    ),
    row(
        "GatherND",
        gather_nd,
        version=8,
        infer=_infer_gather_nd,
        attributes=_LEADING,
        gradient=gradients.gather_nd,
    ),
    row("GatherTree", gather_tree, infer=_infer_gather_tree, inputs=(4, 4), types=(NUMERIC,)),
)
