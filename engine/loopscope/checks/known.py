"""How what is known of a tensor is joined, widened and computed before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.checks import partial
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node
from loopscope.ir.partial_value import PartialValue
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, Known, Operation, Role

MOST_ELEMENTS = 1024
MOST_FLOATS = 64
"""Floats matter to shapes only in small tensors (scales, bounds of a range)."""

_KERNEL_FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)


def same(one: Known, other: Known) -> bool:
    """Whether the same is known of both."""
    return one is other or (
        one.element_type is other.element_type
        and one.shape == other.shape
        and same_value(one.value, other.value)
        and one.partial == other.partial
    )


def same_value(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Whether two known values are the same, bit for bit; two unknown ones are."""
    if one is other:
        return True
    if one is None or other is None or one.dtype != other.dtype or one.shape != other.shape:
        return False
    return (
        one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()
    )


def unite(one: Known, other: Known) -> Known:
    """What is known of a tensor that is either."""
    return (
        one
        if one is other
        else _joined(one, other, one.shape.unite(other.shape), PartialValue.unite)
    )


def widen(one: Known, other: Known) -> Known:
    """As ``unite``, but a length that differs becomes unknown at once, so that a growing state
    needs no count of rounds.
    """
    return (
        one
        if same(one, other)
        else _joined(one, other, _widen_shape(one.shape, other.shape), PartialValue.widen)
    )


def _joined(
    one: Known,
    other: Known,
    shape: PartialShape,
    join: Callable[[PartialValue, PartialValue], PartialValue | None],
) -> Known:
    element_type = one.element_type if one.element_type is other.element_type else None
    if same_value(one.value, other.value) and one.value is not None:
        return Known(element_type, shape, one.value)
    mine, theirs = one.elements, other.elements
    both = None if mine is None or theirs is None or element_type is None else join(mine, theirs)
    return Known(element_type, shape, partial=None if both is None or both.is_idle else both)


def _widen_shape(one: PartialShape, other: PartialShape) -> PartialShape:
    if (
        one.dimensions is None
        or other.dimensions is None
        or len(one.dimensions) != len(other.dimensions)
    ):
        return DYNAMIC
    return PartialShape(
        tuple(
            _widen_dimension(mine, theirs)
            for mine, theirs in zip(one.dimensions, other.dimensions, strict=True)
        )
    )


def _widen_dimension(one: Dimension, other: Dimension) -> Dimension:
    """Each end that is passed is given up, so that each is given up once."""
    grows = one.most is not None and (other.most is None or other.most > one.most)
    return Dimension(one.least if other.least >= one.least else 0, None if grows else one.most)


def may_be_empty(known: Known) -> Known:
    """What is known when no iteration may have computed it: every length that is not fixed may
    also be 0.
    """
    if known.shape.dimensions is None or known.shape.is_static:
        return known
    lengths = tuple(
        length if length.is_static else Dimension(0, length.most)
        for length in known.shape.dimensions
    )
    return Known(known.element_type, PartialShape(lengths))


def scalar_value(known: Known) -> int | bool | None:
    """The one number of a known trip count or condition; None when it is not known or not one
    number.
    """
    if known.value is None or known.value.size != 1 or known.value.dtype.kind not in "biu":
        return None
    value: int | bool = known.value.reshape(-1)[0].item()
    return value


def of_constant(node: Node) -> Known:
    """What is known of a Const: everything when it is small."""
    constant = node.constant
    if constant is None:
        return declared(node)
    value = None
    if constant.elements <= MOST_ELEMENTS:
        try:
            value = constant.array()
        except ValueError:
            value = None
    return Known(constant.element_type, PartialShape.of(constant.shape), value)


def declared(node: Node) -> Known:
    """What the file declares of a node's first output."""
    return (
        Known(node.outputs[0].element_type, node.outputs[0].shape)
        if node.outputs
        else NOTHING_KNOWN
    )


def computed(
    operation: Operation,
    inputs: Sequence[Known],
    attributes: Mapping[str, Any],
    inferred: Sequence[Known],
) -> Sequence[Known]:
    """``inferred`` with values, or parts of them, as far as the inputs' values are known and
    everything is small; otherwise as it was.
    """
    if not _is_foldable(operation, inputs, inferred):
        return _partly_computed(operation, inputs, attributes, inferred)
    kernel = operation.kernel
    counted = {"outputs": len(inferred)} if operation.counts_outputs else {}
    arrays = [
        known.value[()] if known.value is not None and known.value.ndim == 0 else known.value
        for known in inputs
    ]
    try:
        given = kernel(*arrays, **attributes, **counted) if kernel else None
        arrays_given = [
            np.asarray(one) for one in (given if isinstance(given, tuple) else (given,))
        ]
        return [
            _with_value(known, array) for known, array in zip(inferred, arrays_given, strict=True)
        ]
    except _KERNEL_FAULTS:
        return inferred


def _partly_computed(
    operation: Operation,
    inputs: Sequence[Known],
    attributes: Mapping[str, Any],
    inferred: Sequence[Known],
) -> Sequence[Known]:
    try:
        return partial.followed(operation, inputs, attributes, inferred)
    except _KERNEL_FAULTS:
        return inferred


def _with_value(known: Known, array: np.ndarray) -> Known:
    if array.size > MOST_ELEMENTS:
        return known
    array = array.view()
    array.flags.writeable = False
    return Known.of(array)


def _is_foldable(operation: Operation, inputs: Sequence[Known], inferred: Sequence[Known]) -> bool:
    if operation.kernel is None or operation.role is not Role.COMPUTE or operation.stateful:
        return False
    for known in inputs:
        if known.value is None:
            return False
    if any(known.value is not None for known in inferred) or not inputs:
        return False
    return all(_is_small(known) for known in inputs) and all(_is_small(known) for known in inferred)


def _is_small(known: Known) -> bool:
    if not known.shape.is_static:
        return False
    elements = math.prod(known.shape.lengths)
    whole = known.element_type is not None and (
        known.element_type.is_integer or known.element_type is ElementType.BOOLEAN
    )
    return elements <= (MOST_ELEMENTS if whole else MOST_FLOATS)
