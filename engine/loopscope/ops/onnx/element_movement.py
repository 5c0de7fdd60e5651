"""ONNX operations that take elements from one place to another, directly in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.index import axis_within, positions_within, whole_numbers
from loopscope.ops.movement.joining import concat
from loopscope.ops.movement.slicing import slice_
from loopscope.ops.onnx.output_sizes import check_size
from loopscope.ops.onnx.row import Direct
from loopscope.ops.shape import reshape, unsqueeze
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


PLACES: Mapping[str, Direct] = {
    "Concat": Direct(kernel=concat, first=4),
    "ConstantOfShape": Direct(kernel=constant_of_shape, first=9),
    "Expand": Direct(kernel=expanded, first=8),
    "Flatten": Direct(kernel=flattened, first=1),
    "Gather": Direct(kernel=gathered, first=1),
    "Range": Direct(kernel=numbers_between, first=11, last=11),
    "Reshape": Direct(kernel=reshaped, first=5),
    "Shape": Direct(kernel=shape_of, first=1),
    "Size": Direct(kernel=size_of, first=1),
    "Slice": Direct(kernel=sliced, first=10),
    "Split": Direct(kernel=split, first=2, counts_outputs=True),
    "Squeeze": Direct(kernel=squeezed, first=13),
    "TopK": Direct(kernel=best_elements, first=10),
    "Transpose": Direct(kernel=transposed, first=1),
    "Unsqueeze": Direct(kernel=unsqueeze, first=13),
}
