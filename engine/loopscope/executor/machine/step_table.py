"""A graph's operations as the machine runs them one after the other: what each takes, calls and
fills, looked up once for all runs.
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
    """One operation."""

    instruction: Instruction
    call: Callable[..., Any] | None
    """Its kernel, if there is nothing to it but to put what that gives into ``output``; None
    where ``execute`` does more.
    """
    gives_a_tuple: bool
    """What it gives is a tuple, whose first value is the output."""
    takes: Callable[[list[Any]], Sequence[Any]]
    """Its arguments, of the values by slot; ``ValueError`` where they would broadcast to too
    much.
    """
    output: Slot
    done: tuple[Slot, ...]
    """In the outermost graph, the slots that nothing reads after it."""


_STEPS: WeakKeyDictionary[Program, tuple[PlannedStep | None, ...]] = WeakKeyDictionary()


def steps(program: Program) -> tuple[PlannedStep | None, ...]:
    """A step for each instruction, None for regions."""
    found = _STEPS.get(program)
    if found is None:
        done = program.done_with if program.parent is None else ((),) * len(program.instructions)
        pairs = zip(program.instructions, done, strict=True)
        found = _STEPS[program] = tuple(
            None if one.region is not None else _step(one, slots) for one, slots in pairs
        )
    return found


def _step(one: Instruction, done: tuple[Slot, ...]) -> PlannedStep:
    call = one.call if _is_a_call(one) else None
    takes = _checked(one) if one.broadcasts else _taking(one.inputs)
    return PlannedStep(
        one, call, one.several, takes, one.outputs[0] if one.outputs else ABSENT, done
    )


def _is_a_call(one: Instruction) -> bool:
    return (
        len(one.outputs) == 1
        and one.state is None
        and one.variable is None
        and not one.same_as
        and not one.checked
    )


def _taking(slots: Sequence[Slot]) -> Callable[[list[Any]], Sequence[Any]]:
    if len(slots) > 1:
        return itemgetter(*slots)  # of several gives a tuple
    return lambda values: [values[slot] for slot in slots]


def _checked(instruction: Instruction) -> Callable[[list[Any]], Sequence[Any]]:
    taking = _taking(instruction.inputs)

    def taken(values: list[Any]) -> Sequence[Any]:
        arguments = taking(values)
        check_broadcast(arguments)
        return arguments

    return taken
