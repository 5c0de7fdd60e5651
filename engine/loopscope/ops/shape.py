"""Category shape of the OpenVINO operation specs: the same elements, seen in another shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, INDEX_CHOICES, INTEGERS, ElementType
from loopscope.ir.partial_value import Interval, PartialValue, length_within
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import shape as gradients
from loopscope.ops.index import axes_within, axis_within, whole_numbers
from loopscope.ops.infer import spelled


def reshape(data: Array, shape: Array, /, *, special_zero: bool) -> Array:
    """The elements of ``data`` in the shape that ``shape`` [n] spells; -1 fills up, 0 copies
    with ``special_zero``.
    """
    target = whole_numbers(shape)
    if special_zero and 0 in target:
        return data.reshape(_copied(data.shape, target))
    if target and min(target) < -1:
        raise ValueError(f"shape {target} has a negative length")
    if data.size == 0 and -1 in target:
        return data.reshape(_filled(data.shape, target, frozenset()))
    return data.reshape(target)


def _copied(lengths: tuple[int, ...], target: list[int]) -> list[int]:
    copied = frozenset(axis for axis, length in enumerate(target) if length == 0)
    if max(copied) >= len(lengths):
        raise ValueError(
            f"shape {target} copies dimension {max(copied)} of a tensor of shape {list(lengths)}"
        )
    return _filled(
        lengths,
        [lengths[axis] if axis in copied else length for axis, length in enumerate(target)],
        copied,
    )


def _filled(lengths: tuple[int, ...], target: list[int], copied: frozenset[int]) -> list[int]:
    """-1 resolved; copied dimensions are left out on both sides, so that an empty one leaves the
    quotient defined.
    """
    if target.count(-1) != 1:
        return target
    given = math.prod(length for axis, length in enumerate(lengths) if axis not in copied)
    asked = math.prod(
        length for axis, length in enumerate(target) if axis not in copied and length != -1
    )
    filled = given // asked if asked else 0
    return [filled if length == -1 else length for length in target]


def _infer_reshape(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data, shape = inputs
    if shape.value is not None:
        return (
            Known(
                data.element_type,
                _reshaped(data.shape, whole_numbers(shape.value), attributes["special_zero"]),
            ),
        )
    if shape.partial is not None:
        return (
            Known(
                data.element_type,
                _partly_reshaped(data.shape, shape.partial.intervals, attributes["special_zero"]),
            ),
        )
    return (Known(data.element_type, spelled(shape)),)


def _partly_reshaped(
    given: PartialShape, target: list[Interval], special_zero: bool
) -> PartialShape:
    """What is not -1 is a length or copies one; what surely is -1 is the rest, when it is the
    only one that may be.
    """
    lengths = []
    for axis, (least, most) in enumerate(target):
        length = length_within((least, most))
        if special_zero and least == 0:
            copied = (
                UNKNOWN
                if given.dimensions is None or axis >= len(given.dimensions)
                else given.dimensions[axis]
            )
            length = copied if most == 0 else copied.unite(length_within((1, most)))
        lengths.append(length)
    if (
        (-1, -1) in target
        and sum(least < 0 for least, _ in target) == 1
        and given.dimensions is not None
    ):
        filled = target.index((-1, -1))
        others = math.prod(lengths[:filled] + lengths[filled + 1 :], start=static(1))
        lengths[filled] = _quotient(math.prod(given.dimensions, start=static(1)), others)
    return PartialShape(tuple(lengths))


def _quotient(whole: Dimension, part: Dimension) -> Dimension:
    least = 0 if not part.most else -(-whole.least // part.most)
    return Dimension(
        least, None if whole.most is None or part.least == 0 else whole.most // part.least
    )


def _reshaped(given: PartialShape, target: list[int], special_zero: bool) -> PartialShape:
    if any(length < -1 for length in target) or target.count(-1) > 1:
        raise ValueError(f"shape {target} is not a shape: lengths and at most one -1 are expected")
    copied = (
        frozenset(axis for axis, length in enumerate(target) if length == 0)
        if special_zero
        else frozenset()
    )
    if given.dimensions is None:
        return PartialShape(
            tuple(
                UNKNOWN if axis in copied or length == -1 else static(length)
                for axis, length in enumerate(target)
            )
        )
    if copied and max(copied) >= len(given.dimensions):
        raise ValueError(
            f"shape {target} copies dimension {max(copied)} of a tensor of shape {given}"
        )
    if given.is_static:
        lengths = given.lengths
        found = _filled(
            lengths,
            [lengths[axis] if axis in copied else length for axis, length in enumerate(target)],
            copied,
        )
        if math.prod(found) != math.prod(lengths):
            raise ValueError(
                f"{math.prod(lengths)} elements of shape {given} do not fit into shape {target}"
            )
        return PartialShape.of(found)
    rest = math.prod(
        (d for axis, d in enumerate(given.dimensions) if axis not in copied), start=static(1)
    )
    asked = math.prod(
        length for axis, length in enumerate(target) if axis not in copied and length != -1
    )
    fill = (
        Dimension(
            -(-rest.least // asked),
            None if rest.most is None else max(rest.most // asked, -(-rest.least // asked)),
        )
        if asked
        else UNKNOWN
    )
    return PartialShape(
        tuple(
            given.dimensions[axis] if axis in copied else fill if length == -1 else static(length)
            for axis, length in enumerate(target)
        )
    )


def squeeze(data: Array, axes: Array | None = None, /, *, allow_axis_skip: bool = False) -> Array:
    """``data`` without the axes of length 1 that ``axes`` names (all of them when it names
    none); others stay.
    """
    shape = data.shape
    named = () if axes is None else whole_numbers(axes)
    if not named:
        return data.reshape([length for length in shape if length != 1])
    dropped = {axis_within(axis, len(shape)) for axis in named}
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
    named = {axis_within(axis, len(dimensions)) for axis in whole_numbers(axes)} or set(
        range(len(dimensions))
    )
    if any(dimensions[axis].contains(1) and not dimensions[axis].is_static for axis in named):
        return (Known(data.element_type),)
    kept = tuple(
        dimension
        for axis, dimension in enumerate(dimensions)
        if axis not in named or dimension != static(1)
    )
    return (Known(data.element_type, PartialShape(kept)),)


def unsqueeze(data: Array, axes: Array, /) -> Array:
    """``data`` with new axes of length 1, so that ``axes`` (scalar or [n]) are where they lie in
    the result.
    """
    named = whole_numbers(axes)
    shape = data.shape
    if len(named) == 1:
        axis = axis_within(named[0], len(shape) + 1)
        return data.reshape((*shape[:axis], 1, *shape[axis:]))
    lengths = iter(shape)
    rank = len(shape) + len(named)
    added = set(axes_within(named, rank))
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
    """The shape of ``data``, [rank]."""
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
