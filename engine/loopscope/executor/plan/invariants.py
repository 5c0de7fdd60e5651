"""Invariant slots, whose value is the same in all rows of a run."""

from __future__ import annotations

from typing import Any

from loopscope.executor.plan.body_ports import Invariant
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Plan, Program


def invariant_source(
    program: Program, slot: Slot, changed: frozenset[Slot] = frozenset()
) -> Slot | None:
    """Return the slot of the Const, model input or outermost operation that always supplies a
    slot's value.

    Return None if the value may differ from row to row, or passes through a ``changed`` slot.
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
    """Return the value of a slot that always equals a Const.

    Return None for any other slot, and if the value passes through a ``changed`` slot.
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
    """Return the slot of the enclosing graph that a Parameter always equals."""
    if program.branch is not None:
        return dict(program.branch.bindings).get(parameter)
    if program.loop is None or program.loop.declared:
        return None
    binding = program.loop.binding.get(parameter)
    return binding.source if isinstance(binding, Invariant) else None
