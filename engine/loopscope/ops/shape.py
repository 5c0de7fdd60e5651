"""Category shape of the OpenVINO operation specs: the same elements in another shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INDEX_CHOICES, INTEGERS, ElementType
from loopscope.ir.shape import (
    DYNAMIC,
    UNKNOWN,
    Dimension,
    Interval,
    PartialShape,
    PartialValue,
    length_within,
    static,
)
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import spelled
from loopscope.ops.kernel_checks import axes_within, axis_within, whole_numbers


def reshape(data: Array, shape: Array, /, *, special_zero: bool) -> Array:
    """Return the elements of ``data`` in the shape in ``shape`` [n].

    -1 is the remaining length; 0 copies the input's length with ``special_zero``.
    """
    target = whole_numbers(shape)
    if special_zero and 0 in target:
        return data.reshape(_copy_lengths(data.shape, target))
    if target and min(target) < -1:
        raise ValueError(f"shape {target} has a negative length")
    if data.size == 0 and -1 in target:
        return data.reshape(_fill_length(data.shape, target, frozenset()))
    return data.reshape(target)


def _copy_lengths(lengths: tuple[int, ...], target: list[int]) -> list[int]:
    copied = frozenset(axis for axis, length in enumerate(target) if length == 0)
    if max(copied) >= len(lengths):
        raise ValueError(
            f"shape {target} copies dimension {max(copied)} of a tensor of shape {list(lengths)}"
        )
    return _fill_length(
        lengths,
        [lengths[axis] if axis in copied else length for axis, length in enumerate(target)],
        copied,
    )


def _fill_length(lengths: tuple[int, ...], target: list[int], copied: frozenset[int]) -> list[int]:
    """Replace -1 by the remaining length.

    Copied dimensions are omitted on both sides, so that an empty one leaves the quotient defined.
    """
    if target.count(-1) != 1:
        return target
    available = math.prod(length for axis, length in enumerate(lengths) if axis not in copied)
    required = math.prod(
        length for axis, length in enumerate(target) if axis not in copied and length != -1
    )
    remainder = available // required if required else 0
    return [remainder if length == -1 else length for length in target]


def _infer_reshape(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, shape = inputs
    if shape.value is not None:
        return (
            Known(
                data.element_type,
                _reshape_static(data.shape, whole_numbers(shape.value), attributes["special_zero"]),
            ),
        )
    if shape.partial is not None:
        return (
            Known(
                data.element_type,
                _reshape_intervals(data.shape, shape.partial.intervals, attributes["special_zero"]),
            ),
        )
    return (Known(data.element_type, spelled(shape)),)


def _reshape_intervals(
    source: PartialShape, target: list[Interval], special_zero: bool
) -> PartialShape:
    """Infer the shape from intervals of the target.

    An interval without -1 is a length, or copies one. A certain -1 is the remaining length if no
    other entry may be -1.
    """
    lengths = []
    for axis, (lower, upper) in enumerate(target):
        length = length_within((lower, upper))
        if special_zero and lower == 0:
            copy = (
                UNKNOWN
                if source.dimensions is None or axis >= len(source.dimensions)
                else source.dimensions[axis]
            )
            length = copy if upper == 0 else copy.unite(length_within((1, upper)))
        lengths.append(length)
    if (
        (-1, -1) in target
        and sum(lower < 0 for lower, _ in target) == 1
        and source.dimensions is not None
    ):
        index = target.index((-1, -1))
        others = math.prod(lengths[:index] + lengths[index + 1 :], start=static(1))
        lengths[index] = _quotient(math.prod(source.dimensions, start=static(1)), others)
    return PartialShape(tuple(lengths))


def _quotient(whole: Dimension, part: Dimension) -> Dimension:
    lower = 0 if not part.most else -(-whole.least // part.most)
    return Dimension(
        lower, None if whole.most is None or part.least == 0 else whole.most // part.least
    )


def _reshape_static(source: PartialShape, target: list[int], special_zero: bool) -> PartialShape:
    if any(length < -1 for length in target) or target.count(-1) > 1:
        raise ValueError(f"shape {target} is not a shape: lengths and at most one -1 are expected")
    copied = (
        frozenset(axis for axis, length in enumerate(target) if length == 0)
        if special_zero
        else frozenset()
    )
    if source.dimensions is None:
        return PartialShape(
            tuple(
                UNKNOWN if axis in copied or length == -1 else static(length)
                for axis, length in enumerate(target)
            )
        )
    if copied and max(copied) >= len(source.dimensions):
        raise ValueError(
            f"shape {target} copies dimension {max(copied)} of a tensor of shape {source}"
        )
    if source.is_static:
        return _reshape_lengths(source, target, copied)
    remainder = _remaining_length(source.dimensions, target, copied)
    return PartialShape(
        tuple(
            source.dimensions[axis]
            if axis in copied
            else remainder
            if length == -1
            else static(length)
            for axis, length in enumerate(target)
        )
    )


def _reshape_lengths(
    source: PartialShape, target: list[int], copied: frozenset[int]
) -> PartialShape:
    """Return the shape of a source whose lengths are all known."""
    lengths = source.lengths
    result = _fill_length(
        lengths,
        [lengths[axis] if axis in copied else length for axis, length in enumerate(target)],
        copied,
    )
    if math.prod(result) != math.prod(lengths):
        raise ValueError(
            f"{math.prod(lengths)} elements of shape {source} do not fit into shape {target}"
        )
    return PartialShape.of(result)


def _remaining_length(
    dimensions: Sequence[Dimension], target: list[int], copied: frozenset[int]
) -> Dimension:
    """Return the length at -1: what the lengths that are not copied leave of the source."""
    rest = math.prod(
        (d for axis, d in enumerate(dimensions) if axis not in copied), start=static(1)
    )
    required = math.prod(
        length for axis, length in enumerate(target) if axis not in copied and length != -1
    )
    if not required:
        return UNKNOWN
    lower = -(-rest.least // required)
    return Dimension(lower, None if rest.most is None else max(rest.most // required, lower))


def squeeze(data: Array, axes: Array | None = None, /, *, allow_axis_skip: bool = False) -> Array:
    """Return ``data`` without those of ``axes`` that have length 1.

    Without ``axes``, every axis of length 1 is dropped.
    """
    shape = data.shape
    chosen = () if axes is None else whole_numbers(axes)
    if not chosen:
        return data.reshape([length for length in shape if length != 1])
    dropped = {axis_within(axis, len(shape)) for axis in chosen}
    return data.reshape(
        [length for axis, length in enumerate(shape) if length != 1 or axis not in dropped]
    )


def _infer_squeeze(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data = inputs[0]
    dimensions = data.shape.dimensions
    if dimensions is None:
        return (Known(data.element_type),)
    axes = inputs[1].value if len(inputs) > 1 else np.empty(0, np.int64)
    if axes is None:
        return (Known(data.element_type),)
    chosen = {axis_within(axis, len(dimensions)) for axis in whole_numbers(axes)} or set(
        range(len(dimensions))
    )
    if any(dimensions[axis].contains(1) and not dimensions[axis].is_static for axis in chosen):
        return (Known(data.element_type),)
    remaining = tuple(
        dimension
        for axis, dimension in enumerate(dimensions)
        if axis not in chosen or dimension != static(1)
    )
    return (Known(data.element_type, PartialShape(remaining)),)


def unsqueeze(data: Array, axes: Array, /) -> Array:
    """Return ``data`` with new axes of length 1.

    ``axes`` (scalar or [n]) are the positions of the new axes in the result.
    """
    new_axes = whole_numbers(axes)
    shape = data.shape
    if len(new_axes) == 1:
        axis = axis_within(new_axes[0], len(shape) + 1)
        return data.reshape((*shape[:axis], 1, *shape[axis:]))
    lengths = iter(shape)
    rank = len(shape) + len(new_axes)
    added = set(axes_within(new_axes, rank))
    return data.reshape([1 if axis in added else next(lengths) for axis in range(rank)])


def _infer_unsqueeze(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    data, axes = inputs
    dimensions = data.shape.dimensions
    if dimensions is None:
        return (Known(data.element_type),)
    if axes.value is None:
        count = (
            1 if axes.shape.rank == 0 else axes.shape.at(0).least if axes.shape.is_static else None
        )
        known = count is not None and count <= 64
        return (
            Known(
                data.element_type,
                PartialShape.unknown(len(dimensions) + (count or 0)) if known else DYNAMIC,
            ),
        )
    rank = len(dimensions) + axes.value.size
    added = set(axes_within(whole_numbers(axes.value), rank))
    lengths = iter(dimensions)
    return (
        Known(
            data.element_type,
            PartialShape(
                tuple(static(1) if axis in added else next(lengths) for axis in range(rank))
            ),
        ),
    )


def shape_of(data: Array, /, *, output_type: ElementType = ElementType.I64) -> Array:
    """Return the shape of ``data``, [rank]."""
    return np.array(data.shape, output_type.dtype)


def _infer_shape_of(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    element_type = attributes.get("output_type", ElementType.I64)
    shape = inputs[0].shape
    if shape.is_static:
        value = np.array(shape.lengths, element_type.dtype)
        return (Known(element_type, PartialShape.of(value.shape), value),)
    return (
        Known(element_type, PartialShape.of([shape.rank]), partial=PartialValue.of_shape(shape)),
    )


row = family("shape")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Reshape",
        reshape,
        infer=_infer_reshape,
        inputs=(2, 2),
        types=(ANY_TYPE, INTEGERS),
        attributes=(Attribute("special_zero", "bool"),),
        gradient=gradients.same_elements,
    ),
    row("ShapeOf", shape_of, opsets=(1, 2), infer=_infer_shape_of),
    row(
        "ShapeOf",
        shape_of,
        version=3,
        opsets=(3, 17),
        infer=_infer_shape_of,
        attributes=(Attribute("output_type", "type", ElementType.I64, INDEX_CHOICES),),
    ),
    row(
        "Squeeze",
        squeeze,
        opsets=(1, 14),
        infer=_infer_squeeze,
        inputs=(1, 2),
        types=(ANY_TYPE, INTEGERS),
        gradient=gradients.same_elements,
    ),
    row(
        "Squeeze",
        squeeze,
        version=15,
        infer=_infer_squeeze,
        inputs=(1, 2),
        types=(ANY_TYPE, INTEGERS),
        attributes=(Attribute("allow_axis_skip", "bool", False),),
        gradient=gradients.same_elements,
    ),
    row(
        "Unsqueeze",
        unsqueeze,
        infer=_infer_unsqueeze,
        inputs=(2, 2),
        types=(ANY_TYPE, INTEGERS),
        gradient=gradients.same_elements,
    ),
)
