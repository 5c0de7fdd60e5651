"""Python expression of an operation, for the types that have one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction

_FLOATS = "fd"


def expression(instruction: Instruction, values: list[Any]) -> str:
    """Return the Python expression of an operation for the types of its inputs in ``values``; empty
    if none exists.
    """
    if instruction.symbol or not instruction.float_symbol:
        return instruction.symbol
    same = {getattr(values[slot], "dtype", None) for slot in instruction.inputs}
    dtype = next(iter(same))
    return (
        instruction.float_symbol
        if len(same) == 1 and isinstance(dtype, np.dtype) and dtype.char in _FLOATS
        else ""
    )


def of_integers(
    instruction: Instruction, numbers: Mapping[Slot, np.dtype], constant_of: Callable[[Slot], Any]
) -> str:
    """Return the Python expression of an operation on ``numbers`` of one integer type; empty if
    none exists.
    """
    text, (first, *others) = (
        instruction.integer_symbol,
        [numbers[slot] for slot in instruction.inputs],
    )
    if (
        not text
        or first.kind not in "iu"
        or first.isbuiltin != 1
        or any(other != first for other in others)
    ):
        return ""
    divides = "/" in text or "%" in text
    return text if not divides or constant_of(instruction.inputs[1]) else ""
