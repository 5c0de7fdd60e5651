"""Loops drawn as copies of their body: the window of visible iterations, and their state.

The window follows the cursor. The state of a copy is the execution that it shows, with the statuses
of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from loopscope.debug.position import OpenGraph, Scene, Status
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.ir.address import is_within
from loopscope.ir.model import Model
from loopscope.view.folding import COPIES, FEWEST_COPIES, MOST_COPIES, Folding, Unrolled, toggle
from loopscope.view.graph import GraphView, ViewCluster, without_iterations
from loopscope.view.overlay_data import FrameStatus


def unroll(
    model: Model, folding: Folding, address: str, run: Run | None = None, count: int = COPIES
) -> Folding:
    """Return the folding with a loop unrolled around the cursor's iteration; or with it rolled up
    again.
    """
    address = without_iterations(address)
    if folding.window(address) is not None:
        return replace(
            folding,
            unrolled=tuple(
                unrolled for unrolled in folding.unrolled if unrolled.address != address
            ),
        )
    if address in folding.folded:
        folding = toggle(model, folding, address)
    iteration, total = (None, None) if run is None else run_of(run, address)
    window = Unrolled(
        address, 0, max(FEWEST_COPIES, min(count, count if total is None else total)), total
    )
    return replace(folding, unrolled=(*folding.unrolled, _around_iteration(window, iteration)))


def shift(folding: Folding, address: str, windows: int) -> Folding:
    """Move the window of an unrolled loop by a number of windows, within the loop's iterations."""
    return _changed(
        folding,
        address,
        lambda window: _clamped(replace(window, first=window.first + windows * window.count)),
    )


def resize(folding: Folding, address: str, more: int) -> Folding:
    """Change the number of copies by ``more``."""
    return _changed(
        folding,
        address,
        lambda window: _clamped(
            replace(window, count=min(MOST_COPIES, max(FEWEST_COPIES, window.count + more)))
        ),
    )


def place(folding: Folding, address: str, first: int, count: int) -> Folding:
    """Set the window of an unrolled loop: first iteration and number of copies, within the
    limits.
    """
    count = min(MOST_COPIES, max(FEWEST_COPIES, count))
    return _changed(
        folding, address, lambda window: _clamped(replace(window, first=first, count=count))
    )


def followed(folding: Folding, run: Run) -> Folding:
    """Return the folding after the cursor has moved: windows follow it, and iteration counts are
    updated.
    """
    if not folding.unrolled:
        return folding
    windows = []
    for window in folding.unrolled:
        iteration, total = run_of(run, window.address)
        windows.append(_around_iteration(replace(window, total=total), iteration))
    return replace(folding, unrolled=tuple(windows))


def run_of(run: Run, address: str) -> tuple[int | None, int | None]:
    """Return the cursor's iteration of a loop, and the iteration count once the loop has ended.

    The execution is the one at the cursor. Unknown numbers are None.
    """
    for frame in run.frames():
        if frame.iteration is not None and frame.static.rpartition("/")[0] == address:
            place: str | None = frame.address.rpartition("/")[0].rpartition("[")[0]
            iteration: int | None = frame.iteration
            break
    else:
        place, iteration = run.resolve(address), None
    record = run.record(place) if place else None
    return (
        iteration,
        record.iterations if record is not None and record.ended_by is not None else None,
    )


def _changed(folding: Folding, address: str, change: Callable[[Unrolled], Unrolled]) -> Folding:
    address = without_iterations(address)
    return replace(
        folding,
        unrolled=tuple(
            change(window) if window.address == address else window for window in folding.unrolled
        ),
    )


def _around_iteration(window: Unrolled, iteration: int | None) -> Unrolled:
    if iteration is None or window.first <= iteration < window.first + window.count:
        return window
    return _clamped(replace(window, first=iteration // window.count * window.count))


def _clamped(window: Unrolled) -> Unrolled:
    last_first = window.first if window.total is None else max(0, window.total - window.count)
    return replace(window, first=max(0, min(window.first, last_first)))


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
