"""State of the copies of unrolled loops: statuses of their nodes, and the executions they show."""

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
    """State of all copies of a view at one moment, by addresses of the view."""

    statuses: Statuses = field(default_factory=dict[str, Status])
    graphs: dict[str, str] = field(default_factory=dict[str, str])
    """Address of the displayed execution of each graph."""
    running: dict[str, OpenGraph] = field(default_factory=dict[str, OpenGraph])
    """Open graphs inside copies."""
    state: dict[str, FrameStatus] = field(default_factory=dict[str, FrameStatus])
    """Status of each frame."""
    total: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """Iteration count by graph; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class _CopyExecution:
    """The execution that one copy shows. ``scene`` is None before the copy runs."""

    scene: Scene | None
    statuses: Statuses
    """Statuses by static address."""
    present: bool
    """True if the cursor's own iteration is shown, in all enclosing loops too."""


def instances_at(run: Run, view: GraphView, statuses: Statuses) -> Instances:
    """Return the state of the copies of a view. ``statuses`` are those at the cursor, by static
    address.
    """
    instances = Instances()
    executions = {"": _CopyExecution(run.scene(), statuses, True)}
    frames = {frame.id: frame for frame in view.clusters}
    for frame in view.clusters:
        if frame.kind == "copy":
            outer_copy = _copy_round(frame, frames)
            executions[frame.id] = _show_copy(run, frame, executions[outer_copy], instances)
    return instances


def _copy_round(frame: ViewCluster, frames: dict[str, ViewCluster]) -> str:
    outer = frame.parent
    while outer and frames[outer].kind != "copy":
        outer = frames[outer].parent
    return outer


def _show_copy(
    run: Run, frame: ViewCluster, outer: _CopyExecution, instances: Instances
) -> _CopyExecution:
    program = run.plan.program_by_address[without_iterations(frame.body)]
    scene = outer.scene
    visible_row = scene.shown.get(program.index) if scene is not None else None
    assert program.parent is not None
    if scene is None or visible_row is None:
        skipped = scene is not None and (
            program.index in scene.skipped or program.parent.index in scene.skipped
        )
        return _without_execution(run, frame, program, instances, skipped=skipped)
    region = program.region
    assert isinstance(region, LoopRegion)
    executions = run.timeline.executions
    first, end = executions.rows_of(region, scene.shown[program.parent.index].row)
    ended = program.index not in executions.open or end < executions.rows[program.index]
    instances.total[frame.body] = end - first if ended else None
    row = first + int(frame.address.rpartition("[")[2].rstrip("]"))
    if row > visible_row.row:
        return _without_execution(run, frame, program, instances, skipped=ended and row >= end)
    execution = outer if row == visible_row.row else _past_execution(scene, program, row)
    instances.state[frame.id] = "active" if row == visible_row.row and visible_row.open else "done"
    _store(run, frame, program, execution, instances)
    return execution


def _past_execution(scene: Scene, program: Program, row: int) -> _CopyExecution:
    past_scene = scene.with_row(program, row)
    return _CopyExecution(past_scene, past_scene.statuses_inside(program), present=False)


def _without_execution(
    run: Run, frame: ViewCluster, program: Program, instances: Instances, *, skipped: bool
) -> _CopyExecution:
    instances.state[frame.id] = "skipped" if skipped else "waiting"
    if skipped:
        for inner, place in _graphs_below(run, frame, program):
            instances.statuses.update(
                (f"{place}/{label}", "skipped") for label in inner.layer_of_label
            )
    return _CopyExecution(None, {}, present=False)


def _store(
    run: Run, frame: ViewCluster, program: Program, shown: _CopyExecution, instances: Instances
) -> None:
    """Store statuses and executions of all graphs inside a copy that has run, by the copy's
    addresses.
    """
    assert shown.scene is not None
    for inner, place in _graphs_below(run, frame, program):
        for label in inner.layer_of_label:
            status = shown.statuses.get(f"{inner.address}/{label}")
            if status is not None:
                instances.statuses[f"{place}/{label}"] = status
        visible_row = shown.scene.shown.get(inner.index)
        if visible_row is not None:
            instances.graphs[place] = run.timeline.address(inner, visible_row.row)
    if shown.present:
        for opened in run.frames():
            if is_within(opened.static, program.address):
                instances.running[frame.body + opened.static[len(program.address) :]] = opened


def _graphs_below(run: Run, frame: ViewCluster, program: Program) -> Iterator[tuple[Program, str]]:
    """Yield a body and the graphs inside it, with their addresses in a copy."""
    for inner in run.plan.programs:
        if is_within(inner.address, program.address):
            yield inner, frame.body + inner.address[len(program.address) :]
