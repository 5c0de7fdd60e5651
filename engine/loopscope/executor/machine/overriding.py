"""Application of overrides to the slots of a run, each only in its own row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from loopscope.executor.machine.regions import bind_invariants
from loopscope.executor.plan.defaults import Defaults
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.overrides import Overrides
from loopscope.executor.plan.plan import Program


def begin(
    overrides: Overrides,
    defaults: Defaults,
    program: Program,
    iterations: tuple[int, ...],
    values: list[Any],
) -> None:
    """Apply the overrides of Parameters and Consts at the beginning of a row, after undoing those
    of other rows.
    """
    slots = [
        override.slot
        for override in overrides.by_program.get(program.index, ())
        if override.slot not in program.producer
    ]
    if not slots:
        return
    plan = overrides.plan
    for slot in plan.constant_numbers.intersection(slots):
        values[slot] = plan.constant[slot]
    if program.loop is not None:
        bind_invariants(program.loop, values, defaults)
    put(overrides, program, iterations, slots, values)


def put(
    overrides: Overrides,
    program: Program,
    iterations: tuple[int, ...],
    slots: Collection[Slot],
    values: list[Any],
) -> None:
    """Apply the overrides of these slots in one row."""
    for override in overrides.by_program.get(program.index, ()):
        if override.slot in slots and override.iterations == iterations:
            override.put(values)


def undo_constants(overrides: Overrides, program: Program, values: list[Any]) -> None:
    """Restore the model's values of overridden Consts in a graph and its inner graphs."""
    for owner, slot in overrides.constants:
        if program in owner.around():
            values[slot] = overrides.plan.constant[slot]
