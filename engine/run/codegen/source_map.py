"""The way from a line and a local variable of generated code back to the plan."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType

import numpy as np

from engine.run.machine.state import Frame, RunState
from engine.run.plan.plan import Branch, LoopRegion, Program
from engine.run.record.recording import ENDINGS


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """One open graph at a line of the generated code, and where it stands in the graph around it."""

    program: Program
    region: LoopRegion | None
    branch: Branch | None
    outer: Context | None
    owner: int


@dataclass(frozen=True, slots=True)
class Place:
    """What a line of generated code does: instruction ``position`` of a context, or what lies between the instructions."""

    context: Context
    position: int
    kind: str
    """``operation``, ``begin`` (of an iteration), ``boundary`` (between two) or ``join`` (of outputs after the last)."""


@dataclass(frozen=True, slots=True)
class LoggedBranch:
    """An If of which generated code writes down only one branch."""

    program: int
    """The number of the body that it lies in, which is that of a loop."""
    position: int
    """Its instruction there."""
    table: int
    branch: int


@dataclass(eq=False)
class Loop:
    """The function of one loop nest, and the map from its lines and locals back to the plan."""

    function: FunctionType
    text: str
    places: list[Place | None]
    names: dict[int, str]
    asked: set[int]
    """Slots that have no local variable."""
    scalars: tuple[tuple[int, int, np.dtype], ...] = ()
    """Recorded slots, with the numbers of their programs, that hold numbers of one type in every row."""
    noted: tuple[LoggedBranch, ...] = ()

    def __call__(self, machine: RunState, frame: Frame) -> tuple[int, str, int]:
        """How many iterations ran, why it ended, and how many executions of bodies may still begin."""
        count, ending, left = self.function(machine, frame)
        return count, ENDINGS[ending], left
