"""What is where at one moment: which row of each graph is to be shown, and what each node's
status is.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Literal

from loopscope.executor.plan.plan import IfRegion, LoopRegion, Plan, Program
from loopscope.ir.address import is_within
from loopscope.ir.model import LayerId
from loopscope.ir.walk import nodes
from loopscope.timeline.timeline import Moment, Timeline

Status = Literal["current", "running", "done", "waiting", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class VisibleRow:
    """One row of a graph at a moment."""

    row: int
    position: int
    """Instructions before this one have run."""
    open: bool
    """Whether it is being run at this moment."""


class Scene:
    """The shown row of every graph at a moment: the open one, else the last one that ran inside
    what is shown around it.
    """

    def __init__(self, plan: Plan, timeline: Timeline, moment: Moment) -> None:
        self.plan = plan
        self.timeline = timeline
        self.shown: dict[int, VisibleRow] = {}
        self.skipped: set[int] = set()
        self._waiting: dict[int, frozenset[str]] = {}
        innermost = moment[-1].program.index if moment else -1
        # The open ones first: a branch that comes before the open one in the plan is the one not
        # taken.
        for level in moment:
            self.shown[level.program.index] = VisibleRow(level.row, level.position, True)
        for program in plan.programs:
            if program.index not in self.shown and program.parent is not None:
                self._show_inside(program, program.parent)
        self.innermost = innermost

    def _show_inside(self, program: Program, parent: Program) -> None:
        around = self.shown.get(parent.index)
        if around is None:
            if parent.index in self.skipped:
                self.skipped.add(program.index)
            return
        begun = around.position > program.owner or (
            around.open and around.position == program.owner and self._inside_is_open(program)
        )
        if not begun:
            return
        row = self._last_row(program, parent, around.row)
        if row is None:
            self.skipped.add(program.index)
        else:
            self.shown[program.index] = VisibleRow(row, len(program.instructions), False)

    def _inside_is_open(self, program: Program) -> bool:
        """Another body of the same node is open: this one is the branch not taken."""
        assert program.parent is not None
        region = program.region
        return region is not None and any(one.index in self.shown for one in region.programs)

    def _last_row(self, program: Program, parent: Program, row: int) -> int | None:
        executions = self.timeline.executions
        match program.region:
            case LoopRegion() as region:
                first, end = executions.rows_of(region, row)
                return end - 1 if end > first else None
            case IfRegion() as region:
                taken, rows = executions.branch_rows(region)
                branch = region.then.program if taken[row] else region.otherwise.program
                return int(rows[row]) if branch is program else None
            case _:
                return row

    def with_row(self, program: Program, row: int) -> Scene:
        """The scene with another row of a program shown, as it was when it had ended."""
        made = copy(self)
        inside = {
            one.index for one in self.plan.programs if is_within(one.address, program.address)
        }
        made.shown = {index: shown for index, shown in self.shown.items() if index not in inside}
        made.skipped = self.skipped - inside
        made.shown[program.index] = VisibleRow(row, len(program.instructions), False)
        made._waiting = {}
        made.innermost = -1
        for one in self.plan.programs:
            if one.index in inside and one is not program and one.parent is not None:
                made._show_inside(one, one.parent)
        return made

    def waits(self, program: Program, label: str) -> bool:
        """Whether a node of a graph that is shown has still to run there."""
        found = self._waiting.get(program.index)
        if found is None:
            left = program.instructions[self.shown[program.index].position :]
            found = self._waiting[program.index] = frozenset(one.label for one in left)
        return label in found

    def statuses_inside(self, program: Program) -> dict[str, Status]:
        """Status of every node of a program and the programs inside it, by static address."""
        found: dict[str, Status] = {}
        for one in self.plan.programs:
            if is_within(one.address, program.address):
                self._program_statuses(one, False, found)
        return found

    def statuses(self, failed: bool) -> dict[str, Status]:
        """Status of every node by static address."""
        found: dict[str, Status] = {}
        for program in self.plan.programs:
            self._program_statuses(program, failed, found)
        if self.plan.live is not None:
            for address, _ in nodes(self.plan.model):
                found.setdefault(address, "skipped")
        return found

    def _program_statuses(self, program: Program, failed: bool, found: dict[str, Status]) -> None:
        shown = self.shown.get(program.index)
        prefix = program.address
        if shown is None:
            status: Status = "skipped" if program.index in self.skipped else "waiting"
            for label in program.layer_of_label:
                found[f"{prefix}/{label}"] = status
            return
        live = self.plan.live
        needed = {
            layer for (layer, _), slot in program.slots.items() if live is None or slot in live
        }
        for label, layer in program.layer_of_label.items():
            found[f"{prefix}/{label}"] = "done" if live is None or layer in needed else "skipped"
        for number in range(shown.position, len(program.instructions)):
            found[f"{prefix}/{program.instructions[number].label}"] = "waiting"
        self._result_statuses(program, shown, found)
        if shown.open and shown.position < len(program.instructions):
            inner: Status = "failed" if failed else "current"
            found[f"{prefix}/{program.instructions[shown.position].label}"] = (
                inner if program.index == self.innermost else "running"
            )

    def _result_statuses(
        self, program: Program, shown: VisibleRow, found: dict[str, Status]
    ) -> None:
        label_of: dict[LayerId, str] = {
            layer: label for label, layer in program.layer_of_label.items()
        }
        for layer, slot in program.results.items():
            if program.producer.get(slot, -1) >= shown.position:
                found[f"{program.address}/{label_of[layer]}"] = "waiting"
