"""Joining, widening and folding of propagated types, shapes and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.checks import partial
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape, PartialValue
from loopscope.ops.declare import NOTHING_KNOWN, Known, Operation, Role

MOST_ELEMENTS = 1024
MOST_FLOATS = 64
"""Maximum number of elements of float tensors to fold. Floats affect shapes only in small tensors
such as scales and range bounds.
"""

_KERNEL_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    MemoryError,
    RuntimeError,
)


def same(left: Known, right: Known) -> bool:
    """Return True if the knowledge about two tensors is equal."""
    return left is right or (
        left.element_type is right.element_type
        and left.shape == right.shape
        and same_value(left.value, right.value)
        and left.partial == right.partial
    )


def same_value(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Return True if two known values are equal bit for bit, or both are unknown."""
    if left is right:
        return True
    if left is None or right is None or left.dtype != right.dtype or left.shape != right.shape:
        return False
    return (
        left.tolist() == right.tolist()
        if left.dtype == object
        else left.tobytes() == right.tobytes()
    )


def unite(left: Known, right: Known) -> Known:
    """Return the knowledge that is true of both tensors."""
    return (
        left
        if left is right
        else _join(left, right, left.shape.unite(right.shape), PartialValue.unite)
    )


def widen(left: Known, right: Known) -> Known:
    """Return the knowledge that is true of both tensors; lengths that differ become unknown at
    once.

    Unlike ``unite``, this bounds the number of rounds for a carried value that grows.
    """
    return (
        left
        if same(left, right)
        else _join(left, right, _widen_shape(left.shape, right.shape), PartialValue.widen)
    )


def _join(
    left: Known,
    right: Known,
    shape: PartialShape,
    join: Callable[[PartialValue, PartialValue], PartialValue | None],
) -> Known:
    element_type = left.element_type if left.element_type is right.element_type else None
    if same_value(left.value, right.value) and left.value is not None:
        return Known(element_type, shape, left.value)
    left_elements, right_elements = left.elements, right.elements
    both = (
        None
        if left_elements is None or right_elements is None or element_type is None
        else join(left_elements, right_elements)
    )
    return Known(element_type, shape, partial=None if both is None or both.is_idle else both)


def _widen_shape(left: PartialShape, right: PartialShape) -> PartialShape:
    if (
        left.dimensions is None
        or right.dimensions is None
        or len(left.dimensions) != len(right.dimensions)
    ):
        return DYNAMIC
    return PartialShape(
        tuple(
            _widen_dimension(first, second)
            for first, second in zip(left.dimensions, right.dimensions, strict=True)
        )
    )


def _widen_dimension(left: Dimension, right: Dimension) -> Dimension:
    """Drop each bound that the right dimension exceeds; each bound is dropped at most once."""
    grows = left.most is not None and (right.most is None or right.most > left.most)
    return Dimension(left.least if right.least >= left.least else 0, None if grows else left.most)


def may_be_empty(known: Known) -> Known:
    """Return the knowledge about a result that perhaps no iteration computes.

    Its elements may be zeros, and each length that is not fixed may be 0.
    """
    if known.shape.dimensions is None or known.shape.is_static:
        return Known(known.element_type, known.shape)
    lengths = tuple(
        length if length.is_static else Dimension(0, length.most)
        for length in known.shape.dimensions
    )
    return Known(known.element_type, PartialShape(lengths))


def scalar_value(known: Known) -> int | bool | None:
    """Return the value of a trip count or condition with one element, or None if it is unknown or
    has several elements.
    """
    if known.value is None or known.value.size != 1 or known.value.dtype.kind not in "biu":
        return None
    value: int | bool = known.value.reshape(-1)[0].item()
    return value


def of_constant(node: Node) -> Known:
    """Return type and shape of a Const, and its value if it is small."""
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
    """Return the type and shape that the file declares for a node's first output."""
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
    """Return ``inferred`` with values or element intervals added.

    Values are added if all inputs' values are known and all tensors are small. Intervals are added
    if some input elements are known. Otherwise ``inferred`` is returned unchanged.
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
        results = kernel(*arrays, **attributes, **counted) if kernel else None
        arrays_given = [
            np.asarray(result) for result in (results if isinstance(results, tuple) else (results,))
        ]
        return [
            _with_value(known, array) for known, array in zip(inferred, arrays_given, strict=True)
        ]
    except _KERNEL_ERRORS:
        return inferred


def _partly_computed(
    operation: Operation,
    inputs: Sequence[Known],
    attributes: Mapping[str, Any],
    inferred: Sequence[Known],
) -> Sequence[Known]:
    try:
        return partial.followed(operation, inputs, attributes, inferred)
    except _KERNEL_ERRORS:
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
