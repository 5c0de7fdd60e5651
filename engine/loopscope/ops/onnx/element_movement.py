"""ONNX operations that move, join and cut elements, or that pass on any value or an optional."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import Array
from loopscope.ops.kernel_checks import axis_within, check_elements, positions_within, whole_numbers
from loopscope.ops.movement import gathering
from loopscope.ops.movement.joining import concat
from loopscope.ops.movement.ordering import unique
from loopscope.ops.movement.slicing import slice_
from loopscope.ops.onnx.conditions import check_inputs
from loopscope.ops.onnx.output_sizes import check_size
from loopscope.ops.shape import reshape
from loopscope.ops.sort.largest import top_k
from loopscope.ops.values import NO_VALUE


def reshaped(data: Array, shape: Array, /, *, allowzero: int = 0) -> Array:
    """Return the elements in another shape. -1 is computed from the rest, and 0 copies a length
    unless ``allowzero`` is set.
    """
    return reshape(data, shape, special_zero=not allowzero)


def flattened(data: Array, /, *, axis: int) -> Array:
    """Return a matrix whose rows are the axes before ``axis``."""
    if not -data.ndim <= axis <= data.ndim:
        raise ValueError(f"axis {axis} is out of range for rank {data.ndim}")
    axis += data.ndim if axis < 0 else 0
    return data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))


def squeezed(data: Array, axes: Array | None = None, /) -> Array:
    """Return the data without the named axes of length 1, or without all axes of length 1."""
    return np.asarray(data).squeeze(None if axes is None else tuple(whole_numbers(axes)))


def transposed(data: Array, /, *, perm: Sequence[int] | None) -> Array:
    """Return the data with its axes in another order: reversed without ``perm``."""
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
    """Return parts along ``axis``. Their lengths are an input or (before opset 13) an attribute;
    otherwise they are equal, and the last may be shorter.
    """
    attribute = tuple(split) if split else None
    cut = _make_cutter(
        data.shape,
        axis,
        attribute if lengths is None else tuple(whole_numbers(lengths)),
        num_outputs or outputs,
        outputs,
    )
    return cut(data)


@lru_cache(maxsize=256)
def _make_cutter(
    shape: tuple[int, ...], axis: int, lengths: tuple[int, ...] | None, count: int, outputs: int
) -> Callable[[Array], tuple[Array, ...]]:
    """Return a function that cuts tensors of one shape; cached, because loops cut the same shape in
    each iteration.
    """
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
    """Return the elements from ``starts`` to before ``ends`` by ``steps`` along ``axes`` (default:
    the first axes).
    """
    return slice_(data, starts, ends, _ones(starts.size) if steps is None else steps, axes)


@lru_cache(maxsize=16)
def _ones(count: int) -> np.ndarray:
    return np.ones(count, np.int64)


def gathered(data: Array, indices: Array, /, *, axis: int) -> Array:
    """Return slices along ``axis`` at indices; negative indices count from the end."""
    along = axis_within(axis, data.ndim)
    if indices.ndim:
        check_elements(
            indices.size * (data.size // max(data.shape[along], 1)), "the gathered tensor"
        )
    try:
        result = data.take(indices, along)
    except IndexError:
        positions_within(indices, data.shape[along], "index")
        raise
    return result if isinstance(result, (np.ndarray, np.generic)) else np.array(result, object)


def shape_of(data: Array, /, *, start: int = 0, end: int | None = None) -> Array:
    """Return the lengths from ``start`` to before ``end``. Negative positions count from the end,
    and positions are cut to the rank.
    """
    return np.array(data.shape[start:end], np.int64)


def size_of(data: Array, /) -> np.int64:
    """Return the number of elements."""
    return np.int64(data.size)


def expanded(data: Array, shape: Array, /) -> Array:
    """Return the data broadcast together with a shape."""
    lengths = np.broadcast_shapes(data.shape, tuple(whole_numbers(shape)))
    check_elements(math.prod(lengths), "the output of Expand")
    return np.array(np.broadcast_to(data, lengths))


def constant_of_shape(shape: Array, /, *, value: Array | None) -> Array:
    """Return a tensor filled with the element of ``value``, or with 0 in f32 without it."""
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
    """Return the numbers from ``start`` to before ``limit`` in steps of ``delta``, each a
    scalar.
    """
    check_size("Range", (start, limit, delta), {})
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype, copy=False)


def best_elements(
    data: Array, count: Array, /, *, axis: int, largest: int = 1, sorted: int = 1
) -> tuple[Array, Array]:
    """Return the ``count`` greatest or least elements along an axis and their positions in i64, the
    best first for both values of ``sorted``.
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
    """Return a new axis of length ``depth`` with the second value at the index and the first value
    at all other positions.
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
    """Return the distinct elements, or the distinct parts along an axis, with their positions and
    counts.
    """
    return unique(data, None if axis is None else np.array(axis), sorted=bool(sorted))


def gather_elements(data: Array, indices: Array, /, *, axis: int = 0) -> Array:
    """Return elements along an axis. The indices may be shorter than the data along all other
    axes.
    """
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
    """Return elements or parts at the positions that the last axis of the indices holds."""
    check_inputs("GatherND", (data, indices), attributes)
    return gathering.gather_nd(data, indices, batch_dims=int(attributes.get("batch_dims") or 0))


def old_reshape(data: Array, /, *, shape: Sequence[int], **_: object) -> Array:
    """Return the data in another shape, for Reshape before opset 5. 0 copies the length of the
    axis.
    """
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
    """Return parts of the given lengths, or of equal lengths, for Split of opset 1."""
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
    """Join tensors, for Concat before opset 4, whose axis has a default."""
    return concat(*tensors, axis=axis)


def old_tile(data: Array, tiles: Array, axis: Array, /) -> Array:
    """Repeat the data along one axis, for Tile before opset 6."""
    count, along = int(np.ravel(tiles)[0]), int(np.ravel(axis)[0])
    check_elements(data.size * max(count, 0), "the output of Tile")
    return np.concatenate([data] * count, along) if count > 0 else np.take(data, [], along)


def old_squeeze(data: Array, /, *, axes: Sequence[int] = ()) -> Array:
    """Return the data without the axes, for Squeeze before opset 13. Without axes, all axes of
    length 1 are removed.
    """
    return np.squeeze(data, tuple(axes) if axes else None)


def old_unsqueeze(data: Array, /, *, axes: Sequence[int]) -> Array:
    """Return the data with new axes, for Unsqueeze before opset 13."""
    return np.expand_dims(data, tuple(axes))


def identity(value: Any, /) -> Any:
    """Return the same value: a tensor, a sequence or an optional."""
    return value


def optional(value: Any = None, /, **types: object) -> Any:
    """Return an optional with the value, or without a value."""
    return NO_VALUE if value is None else value


def optional_has_element(value: Any = None, /) -> Any:
    """Return True if there is a value."""
    return np.bool_(value is not None and value is not NO_VALUE)


def optional_get_element(value: Any = None, /) -> Any:
    """Return the value. Raise ``ValueError`` if there is none."""
    if value is None or value is NO_VALUE:
        raise ValueError("the optional holds no value")
    return value
