"""Sizes in generated code: where results can never be large, and what looks at those that can."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from loopscope.executor.machine.execute import SMALL, check_broadcast
from loopscope.executor.machine.regions import iteration_bound
from loopscope.executor.machine.returned import all_returned, check_tensors, returned
from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import Instruction, LoopRegion
from loopscope.ir.model import LOOP

_MOST_DIMENSIONS = 64


def grows(region: LoopRegion, values: list[Any]) -> bool:
    """Whether what a nest of loops computes elementwise may become larger than small: not when
    it does nothing else, on small values.
    """
    waiting, lengths = list(region.programs), [1] * _MOST_DIMENSIONS
    while waiting:
        for instruction in waiting.pop().instructions:
            if instruction.region is not None:
                waiting.extend(instruction.region.programs)
            elif not expression(instruction, values):
                return True
            for slot in instruction.inputs:
                for axis, length in enumerate(reversed(getattr(values[slot], "shape", ()))):
                    lengths[axis] = max(lengths[axis], length)
    return math.prod(lengths) > SMALL


def guarded(instruction: Instruction, values: list[Any], symbol: str) -> str:
    """The expression, computed only when its result is small or may be as large as it gets.

    Not asked where all inputs but one were scalars in the first iterations.
    """
    ranked = [
        number for number, slot in enumerate(instruction.inputs) if getattr(values[slot], "ndim", 0)
    ]
    if not instruction.broadcasts or len(ranked) < 2:
        return symbol
    names = [f"{{{number}}}" for number in ranked]
    return f"{symbol} if {'*'.join(f'{name}.size' for name in names)} <= {SMALL} or fits({', '.join(names)}) else None"


def constant_bound(overrides: Overrides, region: LoopRegion) -> int | None:
    """The trip count of a Loop where a constant gives it, and no slice may run out before."""
    program = region.program
    if region.kind != LOOP or region.sliced or region.trip_count is None or program.parent is None:
        return None
    trips = overrides.constant_of(program.parent, region.trip_count)
    bound, ending = (0, "") if trips is None else iteration_bound(region, trips, ())
    return bound if ending == "trip_count" else None


def fits(*arguments: Any) -> bool:
    """True; ``ValueError`` when the arguments broadcast to more elements than allowed."""
    check_broadcast(arguments)
    return True


def bounded(instruction: Instruction) -> Callable[..., Any] | None:
    """The kernel of an instruction, with a look at the size of its result where that may exceed its
    inputs, and at what else is asked of an instruction that is ``checked``.
    """
    call = instruction.call
    if call is None or not (instruction.broadcasts or instruction.checked):
        return call

    def checked(*arguments: Any) -> Any:
        check_broadcast(arguments)
        return call(*arguments)

    def looked_at(*arguments: Any, **state: Any) -> Any:
        check_tensors(instruction, arguments)
        if instruction.broadcasts:
            check_broadcast(arguments)
        made = call(*arguments, **state)
        look = all_returned if instruction.several else returned
        return (look(instruction, made[0]), made[1]) if state else look(instruction, made)

    return looked_at if instruction.checked else checked
