"""Position in the time of a run: the cursor, open graphs, visible rows, status of each node."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program
from loopscope.ir.address import is_within, nodes
from loopscope.ir.model import LayerId
from loopscope.timeline.timeline import Level, Moment, Timeline

Status = Literal["current", "running", "done", "waiting", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class VisibleRow:
    """One row of a graph at a moment."""

    row: int
    position: int
    """Number of the next instruction; the instructions before it have run."""
    open: bool
    """True if the row is being run at this moment."""


class Scene:
    """Visible row of every graph at a moment: the open row, else the last row inside the visible
    row around it.
    """

    def __init__(self, plan: Plan, timeline: Timeline, moment: Moment) -> None:
        self.plan = plan
        self.timeline = timeline
        self.shown: dict[int, VisibleRow] = {}
        self.skipped: set[int] = set()
        self._waiting: dict[int, frozenset[str]] = {}
        innermost = moment[-1].program.index if moment else -1
        # Set the open rows first: a branch before the open one in the plan is the branch not taken.
        for level in moment:
            self.shown[level.program.index] = VisibleRow(level.row, level.position, True)
        for program in plan.programs:
            if program.index not in self.shown and program.parent is not None:
                self._show_inside(program, program.parent)
        self.innermost = innermost

    def _show_inside(self, program: Program, parent: Program) -> None:
        outer = self.shown.get(parent.index)
        if outer is None:
            if parent.index in self.skipped:
                self.skipped.add(program.index)
            return
        has_begun = outer.position > program.owner or (
            outer.open and outer.position == program.owner and self._inside_is_open(program)
        )
        if not has_begun:
            return
        row = self._last_row(program, parent, outer.row)
        if row is None:
            self.skipped.add(program.index)
        else:
            self.shown[program.index] = VisibleRow(row, len(program.instructions), False)

    def _inside_is_open(self, program: Program) -> bool:
        """Return True if another body of the same node is open, so that this one is the branch not
        taken.
        """
        assert program.parent is not None
        region = program.region
        return region is not None and any(body.index in self.shown for body in region.programs)

    def _last_row(self, program: Program, parent: Program, row: int) -> int | None:
        executions = self.timeline.executions
        match program.region:
            case LoopRegion() as region:
                first, end = executions.rows_of(region, row)
                return end - 1 if end > first else None
            case IfRegion() as region:
                branches, rows = executions.branch_rows(region)
                branch = region.then.program if branches[row] else region.otherwise.program
                return int(rows[row]) if branch is program else None
            case _:
                return row

    def with_row(self, program: Program, row: int) -> Scene:
        """Return the scene with another row of a program, as it was at the end of that row."""
        scene = copy(self)
        inner_indices = {
            inner.index for inner in self.plan.programs if is_within(inner.address, program.address)
        }
        scene.shown = {
            index: shown for index, shown in self.shown.items() if index not in inner_indices
        }
        scene.skipped = self.skipped - inner_indices
        scene.shown[program.index] = VisibleRow(row, len(program.instructions), False)
        scene._waiting = {}
        scene.innermost = -1
        for inner in self.plan.programs:
            if inner.index in inner_indices and inner is not program and inner.parent is not None:
                scene._show_inside(inner, inner.parent)
        return scene

    def waits(self, program: Program, label: str) -> bool:
        """Return True if a node of a visible graph still has to run in the visible row."""
        labels = self._waiting.get(program.index)
        if labels is None:
            remaining = program.instructions[self.shown[program.index].position :]
            labels = self._waiting[program.index] = frozenset(
                instruction.label for instruction in remaining
            )
        return label in labels

    def statuses_inside(self, program: Program) -> dict[str, Status]:
        """Return the status of every node of a program and its inner programs, by static
        address.
        """
        statuses: dict[str, Status] = {}
        for inner in self.plan.programs:
            if is_within(inner.address, program.address):
                self._program_statuses(inner, False, statuses)
        return statuses

    def statuses(self, failed: bool) -> dict[str, Status]:
        """Return the status of every node by static address."""
        statuses: dict[str, Status] = {}
        for program in self.plan.programs:
            self._program_statuses(program, failed, statuses)
        if self.plan.live is not None:
            for address, _ in nodes(self.plan.model):
                statuses.setdefault(address, "skipped")
        return statuses

    def _program_statuses(
        self, program: Program, failed: bool, statuses: dict[str, Status]
    ) -> None:
        visible = self.shown.get(program.index)
        prefix = program.address
        if visible is None:
            status: Status = "skipped" if program.index in self.skipped else "waiting"
            for label in program.layer_of_label:
                statuses[f"{prefix}/{label}"] = status
            return
        live = self.plan.live
        needed = {
            layer for (layer, _), slot in program.slots.items() if live is None or slot in live
        }
        for label, layer in program.layer_of_label.items():
            statuses[f"{prefix}/{label}"] = "done" if live is None or layer in needed else "skipped"
        for number in range(visible.position, len(program.instructions)):
            statuses[f"{prefix}/{program.instructions[number].label}"] = "waiting"
        self._result_statuses(program, visible, statuses)
        if visible.open and visible.position < len(program.instructions):
            inner: Status = "failed" if failed else "current"
            statuses[f"{prefix}/{program.instructions[visible.position].label}"] = (
                inner if program.index == self.innermost else "running"
            )

    def _result_statuses(
        self, program: Program, visible: VisibleRow, statuses: dict[str, Status]
    ) -> None:
        label_of: dict[LayerId, str] = {
            layer: label for label, layer in program.layer_of_label.items()
        }
        for layer, slot in program.results.items():
            if program.producer.get(slot, -1) >= visible.position:
                statuses[f"{program.address}/{label_of[layer]}"] = "waiting"


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
