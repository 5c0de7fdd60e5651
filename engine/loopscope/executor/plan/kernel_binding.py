"""Functions of an operation with the attributes of a node bound, for the node's instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node
from loopscope.ops.declare import Known, Operation, Role, typed
from loopscope.ops.family import comparison, elementwise


def bound_kernel(operation: Operation, keywords: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the kernel of an operation with its attributes bound."""
    assert operation.kernel is not None
    return partial(operation.kernel, **keywords) if keywords else operation.kernel


def bound_shape_function(
    operation: Operation, attributes: Mapping[str, Any]
) -> Callable[[Sequence[Known]], tuple[Known, ...]] | None:
    """Return the shape function of an operation with its attributes bound; None if none exists."""
    infer = operation.infer
    return None if infer is None else lambda inputs: infer(inputs, attributes)


def print_fields(operation: Operation, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an instruction about the lines that its executions print."""
    if operation.shows is None:
        return {}
    return {
        "shows": partial(operation.shows, **keywords),
        "shows_first": keywords.get("first_n", -1),
    }


def broadcasts_inputs(operation: Operation) -> bool:
    """Return True if the operation broadcasts its inputs against each other."""
    return operation.broadcasts or operation.infer in (elementwise, comparison)


def initial_value(operation: Operation, node: Node) -> Callable[[], np.ndarray] | None:
    """Return the initial value of a variable without one: zeros of its declared type and shape,
    with length 0 for dynamic dimensions.
    """
    if operation.role != Role.READ_VALUE or node.inputs or operation.infer is None:
        return None
    (declared,) = operation.infer((), typed(operation, node.attributes))
    return partial(
        np.zeros,
        declared.shape.lengths_or_zeros(),
        (declared.element_type or ElementType.F32).dtype,
    )
