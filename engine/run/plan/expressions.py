"""The Python expression of an operation, where there is one for the types that it meets."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.run.plan.plan import Instruction

_FLOATS = "fd"


def expression(instruction: Instruction, values: list[Any]) -> str:
    """The Python expression of an operation for the types that its inputs have in these slots; empty when it has none."""
    if instruction.symbol or not instruction.float_symbol:
        return instruction.symbol
    same = {getattr(values[slot], "dtype", None) for slot in instruction.inputs}
    dtype = next(iter(same))
    return instruction.float_symbol if len(same) == 1 and isinstance(dtype, np.dtype) and dtype.char in _FLOATS else ""
