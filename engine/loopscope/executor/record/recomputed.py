"""Values that are not recorded, because small elementwise results are recomputed when requested."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, Instruction, Program

_CHEAP_BYTES = 1 << 14
"""Maximum bytes of an elementwise result that is recomputed; a user does not notice a thousand of
them.
"""


def cheap_slots(program: Program, values: list[Any], scalars: Container[Slot]) -> set[Slot]:
    """Return the slots of a graph that are cheaper to recompute than to record.

    ``values`` are the slot values of one row, ``scalars`` the slots that hold numbers. A wrong
    guess only costs time: the same kernels recompute the value from the same inputs. A graph with
    random states or variables is recorded, because recomputing would repeat all preceding
    operations.
    """
    if program.hidden:
        return set()
    return {
        slot
        for instruction in program.instructions
        if _is_cheap(instruction, values, scalars)
        for slot in instruction.outputs
    }


def _is_cheap(instruction: Instruction, values: list[Any], scalars: Container[Slot]) -> bool:
    if isinstance(instruction.region, IfRegion):
        return all(
            _is_cheap(inner, values, scalars)
            for program in instruction.region.programs
            for inner in program.instructions
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
