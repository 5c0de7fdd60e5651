"""The run as the canvas plays it: where it is, and stretches of it that are sent ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import loopscope
from loopscope.view import GraphView, Overlay, playback_batch, tracks
from loopscope_app import canvas
from loopscope_app.actions import moves
from loopscope_app.describe.controls import BY_NAME
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.launch import limits
from loopscope_app.state.run_in_view import Standing
from loopscope_app.state.user_session import UserSession, current

SECONDS = 0.05
"""Time to describe what is sent ahead: so long a key press may have to wait."""
FURTHER = 64
"""Steps that are not computed yet, and that keys may ask for before Python has received them."""
LONGEST_SCOUT = 20_000
"""A scout has to walk the way of the run from its beginning; beyond so many steps the debugger
goes ahead itself, and comes back.
"""


def run_of(session: UserSession, view: GraphView) -> canvas.CanvasRun | None:
    """What the canvas of a session plays; while a long run is under way, what was known before."""
    debugger = session.run.at_rest
    if debugger is not None:
        pausing = " ".join(
            str(one.id) for one in debugger.breakpoints.on
        )  # what was sent ahead says where they pause
        name = f"{session.run.generation} {id(debugger)} {id(session.model.node_data)} {pausing}"
        session.run.standing = Standing(
            name, debugger.cursor.step, debugger.steps, debugger.state != "paused", tracks(debugger)
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
        prefetch=lambda: _stretch(session, view),
        on_ask=ask,
        on_step=glide,
        on_moves=make,
        reported=session.canvas.reported,
        moved=session.canvas.moved,
        plays=session.canvas.plays,
    )


def _stretch(session: UserSession, view: GraphView) -> Mapping[str, object] | None:
    """What was asked for last."""
    debugger = session.run.at_rest
    if session.canvas.prefetch_from is not None and debugger is not None:
        wanted, session.canvas.prefetch_from = session.canvas.prefetch_from, None
        session.canvas.prefetched = _sent(session, debugger, view, wanted)
    return session.canvas.prefetched


def keep_picture(session: UserSession, view: GraphView, overlay: Overlay) -> None:
    """The picture of this moment stays while a long run is under way."""
    session.canvas.pictured = view, overlay


def ask(step: int) -> None:
    """The canvas wants to know what comes from this step on."""
    current().canvas.prefetch_from = step


def glide(report: canvas.StepReport) -> None:
    """Moves to the step that the canvas has reached while playing; the pinned value stays
    pinned.
    """
    session = current()
    session.canvas.reported, session.canvas.playing = report.number, report.playing
    if report.number > session.canvas.moved:
        _seek(session, report.step)


def make(asked: Sequence[canvas.Move]) -> None:
    """The moves that were asked for since; a long run swallows those that were asked for behind
    it.
    """
    session = current()
    for move in asked:
        control = BY_NAME.get(move.name)
        if move.number <= session.canvas.moved or control is None:
            continue
        session.canvas.moved = move.number
        if move.start is not None:
            _seek(session, move.start)
        moves.go(control.move)


def _seek(session: UserSession, step: int) -> None:
    """Goes to a step that the browser has, or may have before Python learns of it."""
    debugger = session.run.at_rest
    if debugger is not None:
        known = max(debugger.steps, session.run.scout.steps if session.run.scout else 0)
        reached = min(step, known + FURTHER)
        moves.go(lambda debugger: debugger.seek(reached))


def _sent(
    session: UserSession, debugger: loopscope.Debugger, view: GraphView, wanted: int
) -> dict[str, object] | None:
    """Steps that have run come from the debugger; later ones from a scout, a second debugger
    that runs ahead.
    """
    batch = partial(
        playback_batch,
        seconds=SECONDS,
        previews=session.canvas.previews,
        runtime_badges=session.model.badges,
        node_data=session.model.node_data,
    )
    if wanted <= debugger.steps:
        return batch(debugger, view, wanted)
    if debugger.state != "paused" or session.model.opened is None or debugger.plan.lacks_weights:
        return None
    scout, here = debugger, debugger.cursor.step
    if wanted <= LONGEST_SCOUT:
        if session.run.scout is None or session.run.scout.steps > wanted:
            model, changes = session.model.opened.model, session.run.changes
            session.run.scout = loopscope.Debugger(
                model,
                bindings(model, session.model.inputs),
                limits=limits(),
                changes=changes,
                seed=session.model.opened.seed,
            )
        scout = session.run.scout
        scout.seek(debugger.steps)
    made = batch(scout, view, wanted, further=True, breakpoints=debugger.breakpoints.on)
    if scout is debugger:
        debugger.seek(here)
    return made | ({"end": scout.steps} if scout.state != "paused" else {})
