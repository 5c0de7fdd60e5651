"""Slots of a plan: the number types of slots, programs and tables, and values of slots.

The number types are distinct, so that they are not confused. The values are those of Consts, in the
machine's representation.
"""

from __future__ import annotations

from typing import Any, NewType

import numpy as np

from loopscope.ir import memory
from loopscope.ir.model import Node
from loopscope.ops.values import NOT_KEPT

Slot = NewType("Slot", int)
"""Place of one value of one graph in a run."""
ProgramIndex = NewType("ProgramIndex", int)
"""Number of a graph of the plan; 0 is the outermost."""
TableIndex = NewType("TableIndex", int)
"""Number of a Loop, If or function of the plan, and of its table in a recording."""


_MIN_ALIGNED_BYTES, _MAX_ALIGNED_BYTES = 1 << 12, 1 << 25


def settle(value: Any) -> Any:
    """Return a rank-0 number as a numpy scalar, which computes ten times faster than a 0-d
    array.
    """
    if (
        isinstance(value, np.ndarray)
        and value.ndim == 0
        and value.dtype.names is None
        and value.dtype != object
    ):
        return value[()]
    return value


def constant_value(node: Node, *, in_loop: bool) -> Any:
    """Return the decoded value of a Const. ``in_loop`` is True for a Const that may be read in
    every iteration.
    """
    value = _decoded(node)
    return settle(_aligned_for_loops(value) if in_loop else value)


def _decoded(node: Node) -> Any:
    if node.constant is None:
        raise ValueError(f"Const {node.name!r} has no data")
    return node.constant.array() if node.constant.is_kept else NOT_KEPT


def _aligned_for_loops(array: Any) -> Any:
    """Return weights of a loop in aligned memory if multiplying them in each iteration repays the
    copy.
    """
    if array is NOT_KEPT:
        return array
    is_worthwhile = (
        _MIN_ALIGNED_BYTES <= array.nbytes <= _MAX_ALIGNED_BYTES
        and array.dtype.kind == "f"
        and array.flags.c_contiguous
    )
    if not is_worthwhile or memory.is_aligned(array):
        return array
    copy = memory.empty(array.shape, array.dtype)
    copy[...] = array
    copy.flags.writeable = False
    return copy


def own_bytes(value: Any) -> int:
    """Return the bytes of an array, or 0 for a view into a file of weights."""
    if not isinstance(value, np.ndarray):
        return 0
    while isinstance(value.base, np.ndarray):
        value = value.base
    return value.nbytes if value.base is None else 0
