"""A moment of a run as people name it: the address of what runs next, and the graphs that are
open.
"""

from __future__ import annotations

import itertools
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
    """Steps done before this moment."""
    address: str
    """What runs next: an operation, a node with bodies, or a body whose execution ends; empty
    when the run is finished.
    """
    kind: CursorKind
    previous: str
    """What ran last; empty at the start."""


@dataclass(frozen=True, slots=True)
class OpenGraph:
    """A graph that is being run at the cursor."""

    address: str
    """Such as ``main/while_3[2]/body``."""
    static: str
    iteration: int | None
    """0-based; None outside loops' bodies."""
    bound: int | None
    """Iterations at most, as far as it is known; None for no limit."""


Levels = list[tuple[Program, int | None, int]]
"""Open graphs, outermost first: program, iteration, position."""


def frontier(machine: Machine) -> Levels:
    """The graphs that a machine has open."""
    return [
        (frame.program, frame.iteration if frame.region else None, frame.position)
        for frame in machine.frames
    ]


def levels_of(moment: Moment) -> Levels:
    """Those of a moment that may be past."""
    return [(level.program, level.iteration, level.position) for level in moment]


def next_of(levels: Levels) -> tuple[str, CursorKind]:
    program, _, position = levels[-1]
    address = address_of(levels)
    if position == len(program.instructions):
        return address, "end"
    instruction = program.instructions[position]
    return f"{address}/{instruction.label}", "operation" if instruction.region is None else "enter"


def address_of(levels: Levels) -> str:
    parts = ["main"]
    for (outer, _, position), (program, iteration, _) in itertools.pairwise(levels):
        label = outer.instructions[position].label
        parts += [label if iteration is None else f"{label}[{iteration}]", program.branch_name]
    return "/".join(parts)
