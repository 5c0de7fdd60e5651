"""Precompiled steps: the arguments, kernel and output of each operation of a graph, resolved once
for all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from loopscope.executor.machine.execute import check_broadcast
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Instruction, Program


class PlannedStep(NamedTuple):
    """One operation with its resolved kernel, arguments and output."""

    instruction: Instruction
    call: Callable[..., Any] | None
    """Kernel, if the step only stores its result in ``output``; None if ``execute`` must run the
    operation.
    """
    gives_a_tuple: bool
    """True if the kernel returns a tuple whose first value is the output."""
    takes: Callable[[list[Any]], Sequence[Any]]
    """Function from the slot values to the arguments; ``ValueError`` if the arguments broadcast to
    too many elements.
    """
    output: Slot
    done: tuple[Slot, ...]
    """Slots of the outermost graph that nothing reads after this step."""


_STEPS: WeakKeyDictionary[Program, tuple[PlannedStep | None, ...]] = WeakKeyDictionary()


def steps(program: Program) -> tuple[PlannedStep | None, ...]:
    """Return a step for each instruction, and None for regions."""
    table = _STEPS.get(program)
    if table is None:
        done = program.done_with if program.parent is None else ((),) * len(program.instructions)
        pairs = zip(program.instructions, done, strict=True)
        table = _STEPS[program] = tuple(
            None if instruction.region is not None else _step(instruction, slots)
            for instruction, slots in pairs
        )
    return table


def _step(instruction: Instruction, done: tuple[Slot, ...]) -> PlannedStep:
    call = instruction.call if _is_plain_call(instruction) else None
    takes = (
        _checked_getter(instruction)
        if instruction.broadcasts
        else _argument_getter(instruction.inputs)
    )
    return PlannedStep(
        instruction,
        call,
        instruction.several,
        takes,
        instruction.outputs[0] if instruction.outputs else ABSENT,
        done,
    )


def _is_plain_call(instruction: Instruction) -> bool:
    return (
        len(instruction.outputs) == 1
        and instruction.state is None
        and instruction.variable is None
        and not instruction.same_as
        and not instruction.checked
    )


def _argument_getter(slots: Sequence[Slot]) -> Callable[[list[Any]], Sequence[Any]]:
    if len(slots) > 1:
        return itemgetter(*slots)  # with several slots itemgetter returns a tuple
    return lambda values: [values[slot] for slot in slots]


def _checked_getter(instruction: Instruction) -> Callable[[list[Any]], Sequence[Any]]:
    get_arguments = _argument_getter(instruction.inputs)

    def get_checked(values: list[Any]) -> Sequence[Any]:
        arguments = get_arguments(values)
        check_broadcast(arguments)
        return arguments

    return get_checked
