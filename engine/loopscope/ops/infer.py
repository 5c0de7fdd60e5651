"""Shape functions that many operations share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Infer, Known, Operation
from loopscope.ops.kernel_checks import axis_within, whole_numbers


def same(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the element type and shape of the first input."""
    return (Known(inputs[0].element_type, inputs[0].shape),)


def _same_with_shared_type(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer like ``same`` for inputs with one element type; raise ``ValueError`` if two differ."""
    common_type(inputs)
    return same(inputs, attributes)


def with_shared_type(operation: Operation) -> Operation:
    """Return the operation with a stricter ``same`` if all its inputs have the same allowed types.

    Such inputs are meant to share one type, so the stricter shape function does not accept two.
    """
    shares = operation.inputs[1] != 1 and len(set(operation.types)) == 1
    return (
        replace(operation, infer=_same_with_shared_type)
        if shares and operation.infer is same
        else operation
    )


def elementwise(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the element type that all inputs share, and shapes broadcast by ``auto_broadcast``."""
    return (Known(common_type(inputs), _broadcast(inputs, attributes)),)


def comparison(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer boolean, and shapes broadcast by ``auto_broadcast``."""
    common_type(inputs)
    return (Known(ElementType.BOOLEAN, _broadcast(inputs, attributes)),)


def predicate(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer boolean, and the shape of the first input."""
    return (Known(ElementType.BOOLEAN, inputs[0].shape),)


def type_from_attribute(keyword: str) -> Infer:
    """Return a shape function with the shape of the first input and the element type of an
    attribute.
    """

    def rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
        return (Known(attributes[keyword], inputs[0].shape),)

    return rule


def common_type(inputs: Sequence[Known]) -> ElementType | None:
    """Return the element type that inputs share, if it is known; raise ``ValueError`` if two
    differ.
    """
    shared = None
    for position, known in enumerate(inputs):
        if (
            shared is not None
            and known.element_type is not None
            and known.element_type is not shared
        ):
            raise ValueError(
                f"input {position} is {known.element_type}, the inputs before it are "
                f"{shared}: element types must be equal"
            )
        shared = shared or known.element_type
    return shared


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
    """Broadcast partial shapes as numpy does; raise ``ValueError`` if they cannot be broadcast.

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
                    f"shapes {' and '.join(str(item) for item in shapes)} cannot be "
                    "broadcast together"
                )
            result[index] = joined
    return PartialShape(tuple(result))


def _broadcast_dimension(left: Dimension, right: Dimension) -> Dimension | None:
    if left == static(1):
        return right
    if right == static(1):
        return left
    left_may_stretch, right_may_stretch = left.contains(1), right.contains(1)
    if not left_may_stretch and not right_may_stretch:
        return left.intersect(right)
    if left_may_stretch and right_may_stretch:
        return left.unite(right)
    return right if left_may_stretch else left


MOST_DIMENSIONS = 64
"""Maximum rank of a shape that is written out although its lengths are unknown."""


def spelled(lengths: Known) -> PartialShape:
    """Return the shape in a tensor of lengths, as far as the lengths are known; a possibly negative
    length is unknown.

    >>> import numpy as np
    >>> str(spelled(Known.of(np.array([2, -1])))), str(spelled(Known(shape=PartialShape.of([3]))))
    ('[2,?]', '[?,?,?]')
    >>> str(spelled(Known()))
    '...'
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
    """Return the length in a scalar or a tensor of one element, as far as it is known."""
    dimensions = spelled(length).dimensions
    return dimensions[0] if dimensions is not None and len(dimensions) == 1 else UNKNOWN


def axes_of(known: Known, rank: int) -> tuple[int, ...] | None:
    """Return normalised axes from an integer input; None if its value is unknown. Raise
    ``ValueError`` for an axis out of range.
    """
    if known.value is None:
        return None
    return tuple(axis_within(int(axis), rank) for axis in known.value.reshape(-1))
