"""What needs no recording: small results of elementwise operations are computed again when they
are asked for.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, Instruction, Program

_CHEAP_BYTES = 1 << 14
"""So much is computed elementwise in the time in which a person does not notice a thousand of
them.
"""


def cheap_slots(program: Program, values: list[Any], scalars: Container[Slot]) -> set[Slot]:
    """The slots of a graph that are not worth a column; ``values`` are those of one of its rows,
    ``scalars`` the slots that hold numbers.

    A wrong guess costs time and no more: a value is computed again from the same inputs by the same
    kernels. In a graph with random states or variables that would take all that ran before.
    """
    if program.hidden:
        return set()
    return {
        slot
        for one in program.instructions
        if _is_cheap(one, values, scalars)
        for slot in one.outputs
    }


def _is_cheap(instruction: Instruction, values: list[Any], scalars: Container[Slot]) -> bool:
    if isinstance(instruction.region, IfRegion):
        return all(
            _is_cheap(one, values, scalars)
            for program in instruction.region.programs
            for one in program.instructions
        )
    return (
        instruction.region is None
        and bool(expression(instruction, values))
        and _is_small(instruction.outputs[0], values, scalars)
    )


def _is_small(slot: Slot, values: list[Any], scalars: Container[Slot]) -> bool:
    value = values[slot]
    return slot in scalars or (
        isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= _CHEAP_BYTES
    )
