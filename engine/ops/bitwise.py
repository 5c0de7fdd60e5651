"""Category bitwise of the OpenVINO operation specs: the bits of integers, and booleans as single bits."""

from __future__ import annotations

import numpy as np

from engine.ir.element_type import ElementType
from engine.ops.broadcast import AUTO_BROADCAST, fitted
from engine.ops.declare import Array, Operation
from engine.ops.elements import COMPUTED_INTEGERS, own_type
from engine.ops.infer import elementwise, same


def bitwise_and(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Bits that are set in both. Page bitwise/bitwise-and-13."""
    right = fitted(left, right, auto_broadcast)
    return own_type(left & right, left.dtype)


def bitwise_or(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Bits that are set in at least one. Page bitwise/bitwise-or-13."""
    right = fitted(left, right, auto_broadcast)
    return own_type(left | right, left.dtype)


def bitwise_xor(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Bits that are set in exactly one. Page bitwise/bitwise-xor-13."""
    right = fitted(left, right, auto_broadcast)
    return own_type(left ^ right, left.dtype)


def bitwise_not(data: Array, /) -> Array:
    """All bits the other way. Page bitwise/bitwise-not-13."""
    return own_type(~data, data.dtype)


def left_shift(data: Array, shifts: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Bits moved up by so many places; what leaves the type is lost. Page bitwise/bitwise-left-shift-15."""
    shifts = fitted(data, shifts, auto_broadcast)
    return own_type(np.left_shift(data, shifts), data.dtype)


def right_shift(data: Array, shifts: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Bits moved down by so many places; the sign of signed integers stays. Page bitwise/bitwise-right-shift-15."""
    shifts = fitted(data, shifts, auto_broadcast)
    return own_type(np.right_shift(data, shifts), data.dtype)


_BITS = COMPUTED_INTEGERS | {ElementType.BOOLEAN}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="BitwiseAnd",
        version=13,
        opsets=(13, 16),
        page="bitwise/bitwise-and-13",
        kernel=bitwise_and,
        infer=elementwise,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_BITS,),
    ),
    Operation(
        name="BitwiseLeftShift",
        version=15,
        opsets=(15, 16),
        page="bitwise/bitwise-left-shift-15",
        kernel=left_shift,
        infer=elementwise,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(COMPUTED_INTEGERS,),
    ),
    Operation(
        name="BitwiseNot",
        version=13,
        opsets=(13, 16),
        page="bitwise/bitwise-not-13",
        kernel=bitwise_not,
        infer=same,
        types=(_BITS,),
    ),
    Operation(
        name="BitwiseOr",
        version=13,
        opsets=(13, 16),
        page="bitwise/bitwise-or-13",
        kernel=bitwise_or,
        infer=elementwise,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_BITS,),
    ),
    Operation(
        name="BitwiseRightShift",
        version=15,
        opsets=(15, 16),
        page="bitwise/bitwise-right-shift-15",
        kernel=right_shift,
        infer=elementwise,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(COMPUTED_INTEGERS,),
    ),
    Operation(
        name="BitwiseXor",
        version=13,
        opsets=(13, 16),
        page="bitwise/bitwise-xor-13",
        kernel=bitwise_xor,
        infer=elementwise,
        inputs=(2, 2),
        attributes=(AUTO_BROADCAST,),
        types=(_BITS,),
    ),
)
