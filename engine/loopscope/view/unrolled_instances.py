"""What is where in the copies of unrolled loops: the status of every node in every copy, and the
executions that they show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from loopscope.debug.cursor import OpenGraph
from loopscope.debug.run import Run
from loopscope.debug.visible_rows import Scene, Status
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.ir.address import is_within
from loopscope.view.graph import GraphView, ViewCluster, without_iterations
from loopscope.view.status import FrameStatus

Statuses = dict[str, Status]


@dataclass(slots=True)
class Instances:
    """Of all copies of a view at one moment; addresses are those of the view."""

    statuses: Statuses = field(default_factory=dict[str, Status])
    graphs: dict[str, str] = field(default_factory=dict[str, str])
    """For each graph the address of the execution that is shown."""
    running: dict[str, OpenGraph] = field(default_factory=dict[str, OpenGraph])
    """Open graphs inside copies."""
    state: dict[str, FrameStatus] = field(default_factory=dict[str, FrameStatus])
    """By frame."""
    total: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """By graph: how many iterations there are, where that is known."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What one copy shows; ``scene`` is None where it has not run."""

    scene: Scene | None
    statuses: Statuses
    """By static address."""
    present: bool
    """Whether the cursor's own iteration is shown, all the way up."""


def instances_at(run: Run, view: GraphView, statuses: Statuses) -> Instances:
    """What the copies of a view show; ``statuses`` are those at the cursor, by static address."""
    found = Instances()
    shown = {"": _Shown(run.scene(), statuses, True)}
    frames = {frame.id: frame for frame in view.clusters}
    for frame in view.clusters:
        if frame.kind == "copy":
            around = _copy_round(frame, frames)
            shown[frame.id] = _show(run, frame, shown[around], found)
    return found


def _copy_round(frame: ViewCluster, frames: dict[str, ViewCluster]) -> str:
    outer = frame.parent
    while outer and frames[outer].kind != "copy":
        outer = frames[outer].parent
    return outer


def _show(run: Run, frame: ViewCluster, around: _Shown, found: Instances) -> _Shown:
    program = run.plan.program_by_address[without_iterations(frame.body)]
    scene = around.scene
    at = scene.shown.get(program.index) if scene is not None else None
    assert program.parent is not None
    if scene is None or at is None:
        skipped = scene is not None and (
            program.index in scene.skipped or program.parent.index in scene.skipped
        )
        return _nothing(run, frame, program, found, skipped=skipped)
    region = program.region
    assert isinstance(region, LoopRegion)
    executions = run.timeline.executions
    first, end = executions.rows_of(region, scene.shown[program.parent.index].row)
    ended = program.index not in executions.open or end < executions.rows[program.index]
    found.total[frame.body] = end - first if ended else None
    row = first + int(frame.address.rpartition("[")[2].rstrip("]"))
    if row > at.row:
        return _nothing(run, frame, program, found, skipped=ended and row >= end)
    here = around if row == at.row else _past(scene, program, row)
    found.state[frame.id] = "active" if row == at.row and at.open else "done"
    _tell(run, frame, program, here, found)
    return here


def _past(scene: Scene, program: Program, row: int) -> _Shown:
    made = scene.with_row(program, row)
    return _Shown(made, made.statuses_inside(program), present=False)


def _nothing(
    run: Run, frame: ViewCluster, program: Program, found: Instances, *, skipped: bool
) -> _Shown:
    found.state[frame.id] = "skipped" if skipped else "waiting"
    if skipped:
        for inner, place in _below(run, frame, program):
            found.statuses.update((f"{place}/{label}", "skipped") for label in inner.layer_of_label)
    return _Shown(None, {}, present=False)


def _tell(run: Run, frame: ViewCluster, program: Program, shown: _Shown, found: Instances) -> None:
    """Statuses and executions of all graphs inside a copy that has run, under the copy's
    addresses.
    """
    assert shown.scene is not None
    for inner, place in _below(run, frame, program):
        for label in inner.layer_of_label:
            status = shown.statuses.get(f"{inner.address}/{label}")
            if status is not None:
                found.statuses[f"{place}/{label}"] = status
        at = shown.scene.shown.get(inner.index)
        if at is not None:
            found.graphs[place] = run.timeline.address(inner, at.row)
    if shown.present:
        for opened in run.frames():
            if is_within(opened.static, program.address):
                found.running[frame.body + opened.static[len(program.address) :]] = opened


def _below(run: Run, frame: ViewCluster, program: Program) -> Iterator[tuple[Program, str]]:
    """A body and the graphs inside it, with their addresses in a copy."""
    for one in run.plan.programs:
        if is_within(one.address, program.address):
            yield one, frame.body + one.address[len(program.address) :]
