"""Puts what a person sets into the slots of a run: in its row, and nowhere else."""

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
    """A row begins: what is set of its Parameters and Consts is put in place, what only another
    row set is as it was.
    """
    mine = [
        one.slot
        for one in overrides.by_program.get(program.index, ())
        if one.slot not in program.producer
    ]
    if not mine:
        return
    plan = overrides.plan
    for slot in plan.constant_numbers.intersection(mine):
        values[slot] = plan.constant[slot]
    if program.loop is not None:
        bind_invariants(program.loop, values, defaults)
    put(overrides, program, iterations, mine, values)


def put(
    overrides: Overrides,
    program: Program,
    iterations: tuple[int, ...],
    slots: Collection[Slot],
    values: list[Any],
) -> None:
    """Sets those of these slots, in one row."""
    for one in overrides.by_program.get(program.index, ()):
        if one.slot in slots and one.iterations == iterations:
            one.put(values)


def undo_constants(overrides: Overrides, program: Program, values: list[Any]) -> None:
    """The Consts that are set somewhere in a graph, and in what lies in it, as the model has
    them.
    """
    for owner, slot in overrides.constants:
        if program in owner.around():
            values[slot] = overrides.plan.constant[slot]
