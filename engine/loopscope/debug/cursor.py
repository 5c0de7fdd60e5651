"""Cursor of a run: the address of the operation that runs next, and the open graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.plan import Program
from loopscope.timeline.timeline import Moment

DebuggerState = Literal["paused", "finished", "failed", "limit"]
CursorKind = Literal["operation", "enter", "end", "finished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A moment of a run."""

    step: int
    """Number of steps before this moment."""
    address: str
    """Address that runs next: an operation, a node with bodies, or a body whose execution ends.
    Empty at the end of the run.
    """
    kind: CursorKind
    previous: str
    """Address that ran last; empty at the start."""


@dataclass(frozen=True, slots=True)
class OpenGraph:
    """A graph that is being run at the cursor."""

    address: str
    """Address with iterations, such as ``main/while_3[2]/body``."""
    static: str
    iteration: int | None
    """Iteration, counted from 0; None outside loop bodies."""
    bound: int | None
    """Maximum iteration count, as far as it is known; None for no limit."""


Levels = list[tuple[Program, int | None, int]]
"""Open graphs, outermost first: program, iteration, position."""


def frontier(machine: Machine) -> Levels:
    """Return the open graphs of a machine."""
    return [
        (frame.program, frame.iteration if frame.region else None, frame.position)
        for frame in machine.frames
    ]


def levels_of(moment: Moment) -> Levels:
    """Return the open graphs of a moment, which may be in the past."""
    return [(level.program, level.iteration, level.position) for level in moment]


def next_of(levels: Levels) -> tuple[str, CursorKind]:
    program, _, position = levels[-1]
    address = address_of(levels)
    if position == len(program.instructions):
        return address, "end"
    instruction = program.instructions[position]
    return f"{address}/{instruction.label}", "operation" if instruction.region is None else "enter"


def address_of(levels: Levels) -> str:
    text, (outer, _, position) = "main", levels[0]
    for program, iteration, inner_position in levels[1:]:
        number = "" if iteration is None else f"[{iteration}]"
        text += f"/{outer.instructions[position].label}{number}/{program.branch_name}"
        outer, position = program, inner_position
    return text
