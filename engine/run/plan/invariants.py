"""What stays the same: slots whose value is one and the same in all rows of a run, and the shortest expression of an operation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.run.machine.execute import SMALL, check_broadcast
from engine.run.plan.plan import ABSENT, CallRegion, IfRegion, Instruction, LoopRegion, Plan, Program
from engine.run.returned import all_returned, check_tensors, returned

_FLOATS = "fd"
_MOST_DIMENSIONS = 64


def invariant_source(program: Program, slot: int, changed: frozenset[int] = frozenset()) -> int | None:
    """The slot of a Const, of an input of the model or of an operation of the outermost graph that always gives a slot its value.

    None when the value may differ from row to row, or passes through a ``changed`` slot.
    """
    while slot not in changed:
        if slot in program.producer:
            return slot if program.parent is None else None
        if program.parent is None or slot not in program.parameter_slots:
            return None if slot == ABSENT else slot
        outer = _outer(program, slot)
        if outer is None:
            return None
        program, slot = program.parent, outer
    return None


def constant_of(plan: Plan, program: Program, slot: int) -> Any | None:
    """The value of a slot that always equals a Const; None for any other."""
    while (number := program.producer.get(slot)) is not None and program.instructions[number].symbol == "{0}":
        if slot in plan.changed:
            return None
        slot = program.instructions[number].inputs[0]
    source = invariant_source(program, slot, plan.changed)
    return None if source is None else plan.constant.get(source)


def _outer(program: Program, parameter: int) -> int | None:
    """The slot of the surrounding graph that a Parameter always equals."""
    assert program.parent is not None
    match program.parent.instructions[program.owner].region:
        case LoopRegion() as region:
            pairs = () if region.declared else region.invariants
        case IfRegion() as region:
            pairs = (region.then if program is region.then.program else region.otherwise).bindings
        case CallRegion() as region:
            pairs = region.branch.bindings
        case None:
            pairs = ()
    return next((source for slot, source in pairs if slot == parameter), None)


def expression(instruction: Instruction, values: list[Any]) -> str:
    """The Python expression of an operation for the types that its inputs have in these slots; empty when it has none."""
    if instruction.symbol or not instruction.float_symbol:
        return instruction.symbol
    same = {getattr(values[slot], "dtype", None) for slot in instruction.inputs}
    dtype = next(iter(same))
    return instruction.float_symbol if len(same) == 1 and isinstance(dtype, np.dtype) and dtype.char in _FLOATS else ""


def grows(region: LoopRegion, values: list[Any]) -> bool:
    """Whether what a nest of loops computes elementwise may become larger than small: not when it does nothing else, on small values."""
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
    ranked = [number for number, slot in enumerate(instruction.inputs) if getattr(values[slot], "ndim", 0)]
    if not instruction.broadcasts or len(ranked) < 2:
        return symbol
    names = [f"{{{number}}}" for number in ranked]
    return f"{symbol} if {'*'.join(f'{name}.size' for name in names)} <= {SMALL} or fits({', '.join(names)}) else None"


def fits(*arguments: Any) -> bool:
    """True; ``ValueError`` when the arguments broadcast to more elements than allowed."""
    check_broadcast(arguments)
    return True


def bounded(instruction: Instruction) -> Callable[..., Any] | None:
    """The kernel of an instruction, with a look at the size of its result where that may exceed its inputs, and at what else is asked of
    an instruction that is ``checked``."""
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
