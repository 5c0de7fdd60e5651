"""ONNX operations that take elements from one place to another, directly in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.index import axis_within, positions_within, whole_numbers
from loopscope.ops.movement import gathering
from loopscope.ops.movement.distinct import unique
from loopscope.ops.movement.joining import concat
from loopscope.ops.movement.slicing import slice_
from loopscope.ops.onnx.conditions import check_inputs
from loopscope.ops.onnx.output_sizes import check_size
from loopscope.ops.shape import reshape
from loopscope.ops.sort.largest import top_k


def reshaped(data: Array, shape: Array, /, *, allowzero: int = 0) -> Array:
    """The elements in another shape: -1 fills up, and 0 keeps a length unless ``allowzero`` is
    set.
    """
    return reshape(data, shape, special_zero=not allowzero)


def flattened(data: Array, /, *, axis: int) -> Array:
    """A matrix: the axes before ``axis`` are its rows."""
    if not -data.ndim <= axis <= data.ndim:
        raise ValueError(f"axis {axis} is out of range for rank {data.ndim}")
    axis += data.ndim if axis < 0 else 0
    return data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))


def squeezed(data: Array, axes: Array | None = None, /) -> Array:
    """Without the axes of length 1 that are named, or without all of them where none are given."""
    return np.asarray(data).squeeze(None if axes is None else tuple(whole_numbers(axes)))


def transposed(data: Array, /, *, perm: Sequence[int] | None) -> Array:
    """The axes in another order: backwards where there is no ``perm``."""
    if not perm:
        return data.transpose()
    if len(perm) != data.ndim:
        raise ValueError(
            f"perm is {list(perm)}, expected the {data.ndim} axes of shape {list(data.shape)}"
        )
    return data.transpose(perm)


def split(
    data: Array,
    lengths: Array | None = None,
    /,
    *,
    axis: int,
    outputs: int,
    split: Sequence[int] | None = None,
    num_outputs: int | None = None,
) -> tuple[Array, ...]:
    """Parts along ``axis`` of lengths that are an input or (before opset 13) an attribute, else
    equal ones, of which the last may be shorter.
    """
    named = tuple(split) if split else None
    cut = _cutter(
        data.shape,
        axis,
        named if lengths is None else tuple(whole_numbers(lengths)),
        num_outputs or outputs,
        outputs,
    )
    return cut(data)


@lru_cache(maxsize=256)
def _cutter(
    shape: tuple[int, ...], axis: int, lengths: tuple[int, ...] | None, count: int, outputs: int
) -> Callable[[Array], tuple[Array, ...]]:
    """What cuts tensors of one shape; loops ask for the same one again and again."""
    along = axis_within(axis, len(shape))
    whole = shape[along]
    if lengths is None:
        lengths = (-(-whole // count),) * count
    elif sum(lengths) != whole or min(lengths) < 0:
        raise ValueError(
            f"the parts of lengths {list(lengths)[:8]} do not make up the {whole} of axis {along}"
        )
    if len(lengths) != outputs:
        raise ValueError(f"there are {len(lengths)} parts, expected as many as outputs, {outputs}")
    before = (slice(None),) * along
    cuts = [
        (*before, slice(end - length, end))
        for end, length in zip(accumulate(lengths), lengths, strict=True)
    ]
    return itemgetter(*cuts) if outputs > 1 else lambda data: (data[cuts[0]],)


def sliced(
    data: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
    /,
) -> Array:
    """The elements from ``starts`` to before ``ends`` by ``steps`` along ``axes``, which are the
    first ones where none are given.
    """
    return slice_(data, starts, ends, _ones(starts.size) if steps is None else steps, axes)


@lru_cache(maxsize=16)
def _ones(count: int) -> np.ndarray:
    return np.ones(count, np.int64)


def gathered(data: Array, indices: Array, /, *, axis: int) -> Array:
    """Slices along ``axis`` at indices; negative ones count from the end."""
    along = axis_within(axis, data.ndim)
    if indices.ndim:
        check_elements(
            indices.size * (data.size // max(data.shape[along], 1)), "the gathered tensor"
        )
    try:
        found = data.take(indices, along)
    except IndexError:
        positions_within(indices, data.shape[along], "index")
        raise
    return found if isinstance(found, (np.ndarray, np.generic)) else np.array(found, object)


def shape_of(data: Array, /, *, start: int = 0, end: int | None = None) -> Array:
    """Lengths from ``start`` to before ``end``, which count from the end when negative and are
    cut to the rank.
    """
    return np.array(data.shape[start:end], np.int64)


def size_of(data: Array, /) -> np.int64:
    """The number of elements."""
    return np.int64(data.size)


def expanded(data: Array, shape: Array, /) -> Array:
    """Broadcast together with a shape."""
    lengths = np.broadcast_shapes(data.shape, tuple(whole_numbers(shape)))
    check_elements(math.prod(lengths), "the output of Expand")
    return np.array(np.broadcast_to(data, lengths))


def constant_of_shape(shape: Array, /, *, value: Array | None) -> Array:
    """A tensor all of whose elements are the one of ``value``, 0 in f32 where it is left out."""
    lengths = whole_numbers(shape)
    if value is not None and value.size != 1:
        raise ValueError(f"the value has shape {list(value.shape)}, expected one element")
    if any(length < 0 for length in lengths):
        raise ValueError(f"the shape is {lengths}, expected no negative length")
    check_elements(math.prod(lengths), "the output of ConstantOfShape")
    return np.full(
        lengths,
        np.float32(0) if value is None else value.reshape(-1)[0],
        np.float32 if value is None else value.dtype,
    )


def numbers_between(start: Array, limit: Array, delta: Array, /) -> Array:
    """From ``start`` to before ``limit`` in steps of ``delta``, each a scalar."""
    check_size("Range", (start, limit, delta), {})
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype, copy=False)


def best_elements(
    data: Array, count: Array, /, *, axis: int, largest: int = 1, sorted: int = 1
) -> tuple[Array, Array]:
    """The ``count`` greatest or least elements along an axis and their positions in i64, the
    best first, ``sorted`` or not.
    """
    if count.size != 1:
        raise ValueError(f"K has shape {list(count.shape)}, expected one number")
    mode = "max" if largest else "min"
    return top_k(
        data,
        count.reshape(-1)[0],
        axis=axis,
        mode=mode,
        sort="value",
        index_element_type=ElementType.I64,
    )


def one_hot(indices: Array, depth: Array, values: Array, /, *, axis: int = -1) -> Array:
    """A new axis of length ``depth`` with the second value at the index and the first value at all
    other positions.
    """
    length = int(depth.reshape(-1)[0])
    axis = axis_within(axis, indices.ndim + 1)
    if length < 0 or values.shape != (2,):
        raise ValueError(
            f"the depth is {length} and the values have shape {list(values.shape)}, "
            "expected at least 0 and 2 values"
        )
    check_elements(indices.size * length, "the output of OneHot")
    whole = indices.astype(np.int64)
    positions = np.expand_dims(np.where(whole < 0, whole + length, whole), axis)
    numbers = np.arange(length).reshape(-1, *[1] * (indices.ndim - axis))
    return np.where(positions == numbers, values[1], values[0])


def distinct(data: Array, /, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, ...]:
    """The distinct elements, or the distinct parts along an axis, with their positions and
    counts.
    """
    return unique(data, None if axis is None else np.array(axis), sorted=bool(sorted))


def gather_elements(data: Array, indices: Array, /, *, axis: int = 0) -> Array:
    """Elements along an axis. The indices may be shorter than the data along all other axes."""
    along = axis_within(axis, data.ndim)
    if indices.ndim == data.ndim:
        data = data[
            tuple(
                slice(None if number == along else length)
                for number, length in enumerate(indices.shape)
            )
        ]
    return gathering.gather_elements(data, indices, axis=along)


def gather_nd(data: Array, indices: Array, /, **attributes: Any) -> Array:
    """Elements or parts at positions that the last axis of the indices holds."""
    check_inputs("GatherND", (data, indices), attributes)
    return gathering.gather_nd(data, indices, batch_dims=int(attributes.get("batch_dims") or 0))


def old_reshape(data: Array, /, *, shape: Sequence[int], **_: object) -> Array:
    """Reshape before opset 5. A length of 0 copies the length of the axis."""
    lengths = (
        data.shape[number] if length == 0 and number < data.ndim else length
        for number, length in enumerate(shape)
    )
    return data.reshape(tuple(lengths))


def old_split(
    data: Array,
    lengths: Array | None = None,
    /,
    *,
    outputs: int,
    axis: int = 0,
    split: Sequence[int] | None = None,
) -> tuple[Array, ...]:
    """Split of opset 1: parts of the given lengths, or of equal lengths."""
    chosen = split if lengths is None else lengths.tolist()
    if chosen is None:
        return tuple(np.split(data, outputs, axis))
    if sum(chosen) != data.shape[axis]:
        raise ValueError(
            f"the parts of lengths {list(chosen)[:8]} do not make up "
            f"the {data.shape[axis]} of axis {axis}"
        )
    return tuple(np.split(data, np.cumsum(chosen)[:-1], axis))


def old_concat(*tensors: Array, axis: int = 1) -> Array:
    """Concat before opset 4, whose axis has a default."""
    return concat(*tensors, axis=axis)


def old_tile(data: Array, tiles: Array, axis: Array, /) -> Array:
    """Tile before opset 6: repetition along one axis."""
    count, along = int(np.ravel(tiles)[0]), int(np.ravel(axis)[0])
    check_elements(data.size * max(count, 0), "the output of Tile")
    return np.concatenate([data] * count, along) if count > 0 else np.take(data, [], along)


def old_squeeze(data: Array, /, *, axes: Sequence[int] = ()) -> Array:
    """Squeeze before opset 13. Without axes, all axes of length 1 are removed."""
    return np.squeeze(data, tuple(axes) if axes else None)


def old_unsqueeze(data: Array, /, *, axes: Sequence[int]) -> Array:
    """Unsqueeze before opset 13."""
    return np.expand_dims(data, tuple(axes))
