"""Stock rules for shapes and types, shared by whole families of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Infer, Known, Operation
from loopscope.ops.index import axis_within, whole_numbers


def same(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Element type and shape of the first input."""
    return (Known(inputs[0].element_type, inputs[0].shape),)


def _same_of_one_type(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """As ``same``, of inputs that share one element type; ``ValueError`` when two differ."""
    common_type(inputs)
    return same(inputs, attributes)


def of_one_type(operation: Operation) -> Operation:
    """Where all inputs may have the same types they are meant to have one, so its shape function
    `same` refuses two.
    """
    shares = operation.inputs[1] != 1 and len(set(operation.types)) == 1
    return (
        replace(operation, infer=_same_of_one_type)
        if shares and operation.infer is same
        else operation
    )


def elementwise(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Element type that all inputs share, shapes broadcast by ``auto_broadcast``."""
    return (Known(common_type(inputs), _broadcast(inputs, attributes)),)


def comparison(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """boolean, shapes broadcast by ``auto_broadcast``."""
    common_type(inputs)
    return (Known(ElementType.BOOLEAN, _broadcast(inputs, attributes)),)


def predicate(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """boolean, shape of the first input."""
    return (Known(ElementType.BOOLEAN, inputs[0].shape),)


def typed_by(keyword: str) -> Infer:
    """Shape of the first input, element type from an attribute."""

    def rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
        return (Known(attributes[keyword], inputs[0].shape),)

    return rule


def common_type(inputs: Sequence[Known]) -> ElementType | None:
    """The element type that inputs share, where it is known; ``ValueError`` when two differ."""
    found = None
    for position, known in enumerate(inputs):
        if found is not None and known.element_type is not None and known.element_type is not found:
            raise ValueError(
                f"input {position} is {known.element_type}, the inputs before it are {found}: element types must be equal"
            )
        found = found or known.element_type
    return found


def _broadcast(inputs: Sequence[Known], attributes: Mapping[str, Any]) -> PartialShape:
    shapes = [known.shape for known in inputs]
    match attributes.get("auto_broadcast", "numpy"):
        case "none":
            shape = shapes[0]
            for other in shapes[1:]:
                both = shape.intersect(other)
                if both is None:
                    raise ValueError(
                        f"shapes {shape} and {other} differ, and auto_broadcast is 'none'"
                    )
                shape = both
            return shape
        case "pdpd":
            return shapes[0]
        case _:
            return broadcast_shapes(*shapes)


def broadcast_shapes(*shapes: PartialShape) -> PartialShape:
    """Numpy's broadcasting over partial shapes; ``ValueError`` when they cannot fit.

    >>> str(broadcast_shapes(PartialShape.of([2, 1, -1]), PartialShape.of([3, 4])))
    '[2,3,4]'
    """
    if any(shape.dimensions is None for shape in shapes):
        return DYNAMIC
    rank = max((len(shape.dimensions or ()) for shape in shapes), default=0)
    result = [static(1)] * rank
    for shape in shapes:
        dimensions = shape.dimensions or ()
        for index, dimension in enumerate(dimensions, start=rank - len(dimensions)):
            joined = _broadcast_dimension(result[index], dimension)
            if joined is None:
                raise ValueError(
                    f"shapes {' and '.join(str(one) for one in shapes)} cannot be broadcast together"
                )
            result[index] = joined
    return PartialShape(tuple(result))


def _broadcast_dimension(one: Dimension, other: Dimension) -> Dimension | None:
    if one == static(1):
        return other
    if other == static(1):
        return one
    one_may_stretch, other_may_stretch = one.contains(1), other.contains(1)
    if not one_may_stretch and not other_may_stretch:
        return one.intersect(other)
    if one_may_stretch and other_may_stretch:
        return one.unite(other)
    return other if one_may_stretch else one


MOST_DIMENSIONS = 64
"""Rank up to which a shape of unknown lengths is spelled out."""


def spelled(lengths: Known) -> PartialShape:
    """The shape that a tensor of lengths spells, as far as they are known; one that may be negative
    is unknown.

    >>> import numpy as np
    >>> str(spelled(Known.of(np.array([2, -1])))), str(spelled(Known(shape=PartialShape.of([3])))), str(spelled(Known()))
    ('[2,?]', '[?,?,?]', '...')
    """
    if lengths.value is not None:
        return PartialShape.of(whole_numbers(lengths.value))
    if lengths.partial is not None:
        return PartialShape(lengths.partial.lengths)
    rank = lengths.shape.at(0) if lengths.shape.rank == 1 else UNKNOWN
    return (
        PartialShape.unknown(rank.length)
        if rank.is_static and rank.least <= MOST_DIMENSIONS
        else DYNAMIC
    )


def spelled_length(length: Known) -> Dimension:
    """As ``spelled``, of a scalar or a tensor of one element."""
    dimensions = spelled(length).dimensions
    return dimensions[0] if dimensions is not None and len(dimensions) == 1 else UNKNOWN


def axes_of(known: Known, rank: int) -> tuple[int, ...] | None:
    """Normalised axes from a known integer input; None when its value is not known.
    ``ValueError`` when out of range.
    """
    if known.value is None:
        return None
    return tuple(axis_within(int(axis), rank) for axis in known.value.reshape(-1))
