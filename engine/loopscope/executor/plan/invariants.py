"""What stays the same: slots whose value is one and the same in all rows of a run."""

from __future__ import annotations

from typing import Any

from loopscope.executor.plan.body_ports import Invariant
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Plan, Program


def invariant_source(
    program: Program, slot: Slot, changed: frozenset[Slot] = frozenset()
) -> Slot | None:
    """The slot of a Const, of an input of the model or of an operation of the outermost graph that
    always gives a slot its value.

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


def constant_of(
    plan: Plan, program: Program, slot: Slot, changed: frozenset[Slot] = frozenset()
) -> Any | None:
    """The value of a slot that always equals a Const; None for any other, and where a
    ``changed`` slot lies between.
    """
    while (number := program.producer.get(slot)) is not None and program.instructions[
        number
    ].is_identity:
        if slot in changed:
            return None
        slot = program.instructions[number].inputs[0]
    source = invariant_source(program, slot, changed)
    return None if source is None else plan.constant.get(source)


def _outer(program: Program, parameter: Slot) -> Slot | None:
    """The slot of the surrounding graph that a Parameter always equals."""
    if program.branch is not None:
        return dict(program.branch.bindings).get(parameter)
    if program.loop is None or program.loop.declared:
        return None
    binding = program.loop.binding.get(parameter)
    return binding.source if isinstance(binding, Invariant) else None
