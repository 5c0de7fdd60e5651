"""Category bitwise of the OpenVINO operation specs: the bits of integers, and booleans as single
bits.
"""

from __future__ import annotations

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ops.broadcast import AUTO_BROADCAST, fit_operand
from loopscope.ops.declare import Array, Operation
from loopscope.ops.elements import COMPUTED_INTEGERS, own_type
from loopscope.ops.family import family
from loopscope.ops.infer import elementwise, same


def bitwise_and(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Set the bits that are set in both inputs.

    Page bitwise/bitwise-and-13.
    """
    right = fit_operand(left, right, auto_broadcast)
    return own_type(left & right, left.dtype)


def bitwise_or(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Set the bits that are set in at least one input.

    Page bitwise/bitwise-or-13.
    """
    right = fit_operand(left, right, auto_broadcast)
    return own_type(left | right, left.dtype)


def bitwise_xor(left: Array, right: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Set the bits that are set in exactly one input.

    Page bitwise/bitwise-xor-13.
    """
    right = fit_operand(left, right, auto_broadcast)
    return own_type(left ^ right, left.dtype)


def bitwise_not(data: Array, /) -> Array:
    """Invert all bits.

    Page bitwise/bitwise-not-13.
    """
    return own_type(~data, data.dtype)


def left_shift(data: Array, shifts: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Shift the bits up by ``shifts`` positions; bits that leave the type are lost.

    Page bitwise/bitwise-left-shift-15.
    """
    shifts = fit_operand(data, shifts, auto_broadcast)
    return own_type(np.left_shift(data, shifts), data.dtype)


def right_shift(data: Array, shifts: Array, /, *, auto_broadcast: str = "numpy") -> Array:
    """Shift the bits down by ``shifts`` positions, with the sign for signed integers.

    Page bitwise/bitwise-right-shift-15.
    """
    shifts = fit_operand(data, shifts, auto_broadcast)
    return own_type(np.right_shift(data, shifts), data.dtype)


_BITS = COMPUTED_INTEGERS | {ElementType.BOOLEAN}

row = family(
    "bitwise", infer=elementwise, inputs=(2, 2), attributes=(AUTO_BROADCAST,), types=(_BITS,)
)
unary_row = family("bitwise", infer=same, types=(_BITS,))

OPERATIONS: tuple[Operation, ...] = (
    row("BitwiseAnd", bitwise_and, version=13),
    row("BitwiseLeftShift", left_shift, version=15, types=(COMPUTED_INTEGERS,)),
    unary_row("BitwiseNot", bitwise_not, version=13),
    row("BitwiseOr", bitwise_or, version=13),
    row("BitwiseRightShift", right_shift, version=15, types=(COMPUTED_INTEGERS,)),
    row("BitwiseXor", bitwise_xor, version=13),
)
