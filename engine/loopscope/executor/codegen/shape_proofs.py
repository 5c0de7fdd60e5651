"""Result sizes in generated code: proofs that results stay small, and checks for results that may
be large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from loopscope.executor.machine.execute import SMALL, check_broadcast
from loopscope.executor.machine.regions import iteration_bound
from loopscope.executor.machine.returned import all_returned, check_tensors, returned
from loopscope.executor.plan.expressions import expression
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import Instruction, LoopRegion, Plan
from loopscope.ir.model import LOOP

_MAX_DIMENSIONS = 64


def grows(region: LoopRegion, values: list[Any]) -> bool:
    """Return True if elementwise results of a loop nest may exceed ``SMALL`` elements.

    They cannot if the nest only computes elementwise expressions on small values.
    """
    waiting, slots = list(region.programs), set[Slot]()
    while waiting:
        for instruction in waiting.pop().instructions:
            if instruction.region is not None:
                waiting.extend(instruction.region.programs)
            elif not expression(instruction, values):
                return True
            slots.update(instruction.inputs)
    return _broadcasts_large(slots, values)


def begins_small(region: LoopRegion, plan: Plan, values: list[Any]) -> bool:
    """Return True if elementwise operations on the values that enter a loop, and on Consts, have at
    most ``SMALL`` elements.
    """
    slots = [*region.program.parameters.values(), *plan.constant_numbers]
    return not _broadcasts_large(slots, values)


def _broadcasts_large(slots: Iterable[Slot], values: list[Any]) -> bool:
    """Return True if values may broadcast to more than ``SMALL`` elements."""
    lengths = [1] * _MAX_DIMENSIONS
    for slot in slots:
        for axis, length in enumerate(reversed(getattr(values[slot], "shape", ()))):
            lengths[axis] = max(lengths[axis], length)
    return math.prod(lengths) > SMALL


def guarded(instruction: Instruction, values: list[Any], symbol: str) -> str:
    """Return the expression with a check that its result does not exceed the allowed size.

    The check is omitted if at most one input had a rank in the first iterations.
    """
    ranked = [
        number for number, slot in enumerate(instruction.inputs) if getattr(values[slot], "ndim", 0)
    ]
    if not instruction.broadcasts or len(ranked) < 2:
        return symbol
    names = [f"{{{number}}}" for number in ranked]
    sizes = "*".join(f"{name}.size" for name in names)
    return f"{symbol} if {sizes} <= {SMALL} or fits({', '.join(names)}) else None"


def constant_bound(overrides: Overrides, region: LoopRegion) -> int | None:
    """Return the constant trip count of a Loop without sliced inputs; None if it varies."""
    program = region.program
    if region.kind != LOOP or region.sliced or region.trip_count is None or program.parent is None:
        return None
    trips = overrides.constant_of(program.parent, region.trip_count)
    bound, ending = (0, "") if trips is None else iteration_bound(region, trips, ())
    return bound if ending == "trip_count" else None


def fits(*arguments: Any) -> bool:
    """Return True, or raise ``ValueError`` if the arguments broadcast to more elements than
    allowed.
    """
    check_broadcast(arguments)
    return True


def bounded(instruction: Instruction) -> Callable[..., Any] | None:
    """Return the kernel of an instruction with the checks that the instruction requires.

    The result size is checked if broadcasting may enlarge it; tensors are checked if the
    instruction is ``checked``.
    """
    call = instruction.call
    if call is None or not (instruction.broadcasts or instruction.checked):
        return call

    def call_within_limit(*arguments: Any) -> Any:
        check_broadcast(arguments)
        return call(*arguments)

    def call_with_checks(*arguments: Any, **state: Any) -> Any:
        check_tensors(instruction, arguments)
        if instruction.broadcasts:
            check_broadcast(arguments)
        result = call(*arguments, **state)
        check = all_returned if instruction.several else returned
        return (check(instruction, result[0]), result[1]) if state else check(instruction, result)

    return call_with_checks if instruction.checked else call_within_limit
