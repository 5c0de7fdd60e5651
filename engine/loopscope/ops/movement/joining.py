"""Concatenation of tensors along an axis, and splitting of a tensor along one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INTEGERS
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import common_type
from loopscope.ops.kernel_checks import axis_within, check_elements, whole_number, whole_numbers


def concat(*tensors: Array, axis: int) -> Array:
    """Join the tensors along ``axis``; all other lengths are equal."""
    if len(tensors) > 1:
        check_elements(sum(tensor.size for tensor in tensors), "the joined tensor")
    try:
        return np.concatenate(tensors, axis)
    except ValueError:
        ranks = [tensor.ndim for tensor in tensors]
        if min(ranks) == max(ranks) > 0:
            raise
        raise ValueError(
            f"the inputs have ranks {', '.join(map(str, ranks[:8]))}, expected equal "
            "ones of at least 1"
        ) from None


def infer_concat(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the sum of the lengths along the axis; all other lengths are equal."""
    element_type = common_type(inputs)
    joined: PartialShape | None = None
    for known in inputs:
        if known.shape.dimensions is None:
            return (Known(element_type),)
        if not known.shape.dimensions:
            raise ValueError("scalars cannot be joined")
        joined = (
            known.shape if joined is None else _join_shapes(joined, known.shape, attributes["axis"])
        )
    return (Known(element_type, joined or DYNAMIC),)


def _join_shapes(left: PartialShape, right: PartialShape, axis: int) -> PartialShape:
    left_lengths, right_lengths = left.dimensions or (), right.dimensions or ()
    if len(left_lengths) != len(right_lengths):
        raise ValueError(f"shapes {left} and {right} have different ranks and cannot be joined")
    axis = axis_within(axis, len(left_lengths))
    lengths = []
    for position, (left_length, right_length) in enumerate(
        zip(left_lengths, right_lengths, strict=True)
    ):
        length = (
            left_length + right_length if position == axis else left_length.intersect(right_length)
        )
        if length is None:
            raise ValueError(
                f"shapes {left} and {right} differ along axis {position} and cannot be "
                f"joined along axis {axis}"
            )
        lengths.append(length)
    return PartialShape(tuple(lengths))


def split(data: Array, axis: Array, /, *, num_splits: int) -> tuple[Array, ...]:
    """Split ``data`` into ``num_splits`` equal parts along ``axis`` (scalar)."""
    return _cutter(data.shape, whole_number(axis), num_splits)(data)


@lru_cache(maxsize=256)
def _cutter(shape: tuple[int, ...], axis: int, count: int) -> Callable[[Array], tuple[Array, ...]]:
    """Return a function that splits tensors of one shape into equal parts along an axis.

    It is cached, because loops split the same shape in every iteration.
    """
    along = axis_within(axis, len(shape))
    size, rest = divmod(shape[along], count)
    if rest:
        raise ValueError(
            f"{shape[along]} elements along axis {along} cannot be split into {count} equal parts"
        )
    before = (slice(None),) * along
    cuts = [(*before, slice(part * size, part * size + size)) for part in range(count)]
    return itemgetter(*cuts) if count > 1 else lambda data: (data[cuts[0]],)


def _parts(data: Array, axis: int, lengths: Sequence[int]) -> tuple[Array, ...]:
    before = (slice(None),) * axis
    ends = accumulate(lengths)
    return tuple(
        data[(*before, slice(end - length, end))] for end, length in zip(ends, lengths, strict=True)
    )


def _infer_split(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, axis = inputs
    count: int = attributes["num_splits"]
    if data.shape.dimensions is None:
        return (Known(data.element_type),) * count
    if axis.value is None:
        return (Known(data.element_type, PartialShape.unknown(len(data.shape.dimensions))),) * count
    along = axis_within(whole_number(axis.value), len(data.shape.dimensions))
    whole = data.shape.dimensions[along]
    if whole.is_static and whole.length % count:
        raise ValueError(
            f"{whole} elements along axis {along} cannot be split into {count} equal parts"
        )
    lower = -(-whole.least // count)
    part = Dimension(lower, None if whole.most is None else max(whole.most // count, lower))
    return (Known(data.element_type, _with_length(data.shape, along, part)),) * count


def variadic_split(data: Array, axis: Array, split_lengths: Array, /) -> tuple[Array, ...]:
    """Split ``data`` along ``axis`` into parts of ``split_lengths`` [n]; one -1 takes the rest."""
    along = axis_within(whole_number(axis), data.ndim)
    return _parts(data, along, _part_lengths(data.shape[along], whole_numbers(split_lengths)))


def _part_lengths(whole: int, lengths: list[int]) -> list[int]:
    if lengths.count(-1) == 1 and min(lengths) == -1:
        rest = whole - sum(lengths) - 1
        lengths = [rest if length == -1 else length for length in lengths]
    if (lengths and min(lengths) < 0) or sum(lengths) != whole:
        raise ValueError(f"parts of lengths {lengths} do not make up an axis of length {whole}")
    return lengths


def _infer_variadic_split(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, axis, lengths = inputs
    if lengths.value is None:
        count = lengths.shape.at(0) if lengths.shape.rank == 1 else UNKNOWN
        return (Known(data.element_type, _unknown_of_rank(data.shape)),) * (
            count.length if count.is_static and count.least <= 4096 else 0
        )
    parts = whole_numbers(lengths.value)
    if axis.value is None or data.shape.dimensions is None:
        return (Known(data.element_type, _unknown_of_rank(data.shape)),) * len(parts)
    along = axis_within(whole_number(axis.value), len(data.shape.dimensions))
    whole = data.shape.dimensions[along]
    if whole.is_static:
        parts = _part_lengths(whole.length, parts)
    return tuple(
        Known(
            data.element_type,
            _with_length(data.shape, along, UNKNOWN if length == -1 else static(length)),
        )
        for length in parts
    )


def _unknown_of_rank(shape: PartialShape) -> PartialShape:
    return DYNAMIC if shape.dimensions is None else PartialShape.unknown(len(shape.dimensions))


def _with_length(shape: PartialShape, axis: int, length: Dimension) -> PartialShape:
    dimensions = shape.dimensions or ()
    return PartialShape((*dimensions[:axis], length, *dimensions[axis + 1 :]))


row = family("movement")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Concat",
        concat,
        infer=infer_concat,
        inputs=(1, None),
        attributes=(Attribute("axis", "int"),),
        gradient=gradients.concat,
    ),
    row(
        "Split",
        split,
        infer=_infer_split,
        inputs=(2, 2),
        outputs=None,
        types=(ANY_TYPE, INTEGERS),
        attributes=(Attribute("num_splits", "int", least=1),),
        gradient=gradients.split,
    ),
    row(
        "VariadicSplit",
        variadic_split,
        infer=_infer_variadic_split,
        inputs=(3, 3),
        outputs=None,
        types=(ANY_TYPE, INTEGERS, INTEGERS),
        gradient=gradients.split,
    ),
)
