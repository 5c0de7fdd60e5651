"""Position in the time of a run: a moment, its open graphs, and the visible row of each graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from loopscope.debug.cursor import Levels, frontier, levels_of
from loopscope.debug.visible_rows import Scene
from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.plan import Plan
from loopscope.timeline.timeline import Level, Moment, Timeline


@dataclass(frozen=True, eq=False)
class Position:
    """A moment of a run."""

    timeline: Timeline
    step: int | None
    """Number of the step that runs next; None at the end of the computed steps."""

    @property
    def machine(self) -> Machine:
        return self.timeline.machine

    @property
    def plan(self) -> Plan:
        return self.machine.plan

    @property
    def levels(self) -> Levels:
        """Open graphs, outermost first, without their rows."""
        return frontier(self.machine) if self.step is None else levels_of(self.moment)

    @cached_property
    def moment(self) -> Moment:
        """Open graphs, outermost first."""
        if self.step is not None:
            return self.timeline.moment(self.step)
        rows = self.timeline.executions.rows
        return tuple(
            Level(
                program=frame.program,
                row=rows[frame.program.index] - 1,
                iteration=frame.iteration if frame.region else None,
                position=frame.position,
            )
            for frame in self.machine.frames
        )

    @cached_property
    def scene(self) -> Scene:
        """The visible execution of each graph."""
        return Scene(self.plan, self.timeline, self.moment)
