"""Synchronisation of the run with the canvas: its step, and steps that the canvas prefetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import loopscope
from loopscope.view import GraphView, Overlay, playback_batch, tracks
from loopscope_app import canvas
from loopscope_app.actions import moves
from loopscope_app.actions.runs import new_run
from loopscope_app.describe.controls import BY_NAME
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.run_in_view import Standing
from loopscope_app.state.user_session import UserSession, current

SECONDS = 0.05
"""Time limit for describing prefetched steps; a key press may have to wait for it."""
FURTHER = 64
"""Number of uncomputed steps that keys may request before Python receives their moves."""
LONGEST_SCOUT = 20_000
"""Last step to which a scout runs, because it starts at the first step of the run. For later steps
the debugger itself runs ahead and seeks back.
"""


def canvas_run(session: UserSession, view: GraphView) -> canvas.CanvasRun | None:
    """Return what the canvas plays. During a long run, the last known state is returned."""
    debugger = session.run.at_rest
    if debugger is not None:
        # Prefetched steps contain the pauses of breakpoints, so the name changes with breakpoints.
        pausing = " ".join(str(breakpoint.id) for breakpoint in debugger.breakpoints.on)
        name = f"{session.run.generation} {id(debugger)} {id(session.model.node_data)} {pausing}"
        loop = loop_in_focus(session)
        shown = tracks(debugger, loop.address if loop and loop.record else "")
        session.run.standing = Standing(
            name, debugger.cursor.step, debugger.steps, debugger.state != "paused", shown
        )
    standing = session.run.standing
    if standing is None:
        return None
    return canvas.CanvasRun(
        standing.run,
        step=standing.step,
        steps=standing.steps,
        over=standing.over,
        tracks=standing.tracks,
        prefetch=lambda: _prefetched_steps(session, view),
        on_ask=request_steps,
        on_step=seek_reached,
        on_moves=make_moves,
        reported=session.canvas.reported,
        moved=session.canvas.moved,
        plays=session.canvas.plays,
    )


def _prefetched_steps(session: UserSession, view: GraphView) -> Mapping[str, object] | None:
    """Return the steps that the canvas requested last."""
    debugger = session.run.at_rest
    if session.canvas.prefetch_from is not None and debugger is not None:
        start, session.canvas.prefetch_from = session.canvas.prefetch_from, None
        session.canvas.prefetched = _playback_steps(session, debugger, view, start)
    return session.canvas.prefetched


def store_picture(session: UserSession, view: GraphView, overlay: Overlay) -> None:
    """Store the picture of this moment, which is shown during a long run."""
    session.canvas.pictured = view, overlay


def request_steps(step: int) -> None:
    """Request the steps from a number on; the next rerun sends them."""
    current().canvas.prefetch_from = step


def seek_reached(report: canvas.StepReport) -> None:
    """Seek to the step that the canvas reached while playing; the selection does not change."""
    session = current()
    session.canvas.reported, session.canvas.playing = report.number, report.playing
    if report.number > session.canvas.moved:
        _seek(session, report.step)


def make_moves(requests: Sequence[canvas.Move]) -> None:
    """Make the moves that the canvas requests. A long run drops the moves after it."""
    session = current()
    for move in requests:
        control = BY_NAME.get(move.name)
        if move.number <= session.canvas.moved or control is None:
            continue
        session.canvas.moved = move.number
        if move.start is not None:
            _seek(session, move.start)
        moves.go(control.move)


def _seek(session: UserSession, step: int) -> None:
    """Seek to a step that the browser shows; it may be ahead of the steps that Python computed."""
    debugger = session.run.at_rest
    if debugger is not None:
        known = max(debugger.steps, session.run.scout.steps if session.run.scout else 0)
        reached = min(step, known + FURTHER)
        moves.go(lambda debugger: debugger.seek(reached))


def _playback_steps(
    session: UserSession, debugger: loopscope.Debugger, view: GraphView, start: int
) -> dict[str, object] | None:
    """Return steps from a number on.

    Steps that ran come from the debugger. Later steps come from a scout, a second debugger that
    runs ahead.
    """
    batch = partial(
        playback_batch,
        seconds=SECONDS,
        previews=session.canvas.previews,
        runtime_badges=session.model.badges,
        node_data=session.model.node_data,
    )
    if start <= debugger.steps:
        return batch(debugger, view, start)
    if debugger.state != "paused" or session.model.opened is None or debugger.plan.lacks_weights:
        return None
    scout, step = debugger, debugger.cursor.step
    if start <= LONGEST_SCOUT:
        if session.run.scout is None or session.run.scout.steps > start:
            opened = session.model.opened
            session.run.scout = new_run(
                opened,
                bindings(opened.model, session.model.inputs),
                changes=session.run.changes,
            )
        scout = session.run.scout
        scout.seek(debugger.steps)
    steps = batch(scout, view, start, further=True, breakpoints=debugger.breakpoints.on)
    if scout is debugger:
        debugger.seek(step)
    return steps | ({"end": scout.steps} if scout.state != "paused" else {})
