"""The run that a session steps through: begun, put in place of another, and what is known of it
forgotten.
"""

from __future__ import annotations

import loopscope
from loopscope.errors import InputError
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.launch import limits
from loopscope_app.state.user_session import UserSession


def start(session: UserSession) -> None:
    """A debugger at the first moment of a run with the session's inputs; the inputs panel starts
    afresh.
    """
    opened = session.model.opened
    if opened is None:
        return
    _forget(session)
    session.model.draft, session.run.changes, session.run.original = (
        dict(session.model.inputs),
        {},
        None,
    )
    before, session.run.debugger = session.run.debugger, None
    if not opened.report.ok:
        return
    if len(session.model.inputs) < len(opened.model.inputs):
        raise InputError(
            "some inputs have no value yet: give them one in the inputs panel, then run"
        )
    session.run.debugger = loopscope.Debugger(
        opened.model,
        bindings(opened.model, session.model.inputs),
        limits=limits(),
        seed=opened.seed,
    )
    if before is not None:
        _hand_over(before, session.run.debugger)


def put(session: UserSession, debugger: loopscope.Debugger) -> None:
    """Another run of the same inputs in place of the one that is stepped through."""
    _forget(session)
    if session.run.debugger is not None:
        _hand_over(session.run.debugger, debugger)
    session.run.debugger = debugger


def _forget(session: UserSession) -> None:
    """What is known of the run that is stepped through, as another one comes."""
    session.run.generation += 1
    session.run.held_against_file = False
    session.canvas.playing, session.run.compared, session.run.other_runtime = False, None, None
    session.run.source = None
    session.run.drifted = session.run.spot = session.run.clock = None
    session.model.refused, session.canvas.previews = {}, {}
    session.canvas.prefetch_from = session.canvas.prefetched = session.run.scout = (
        session.canvas.pictured
    ) = session.run.standing = None


def _hand_over(before: loopscope.Debugger, debugger: loopscope.Debugger) -> None:
    """Breakpoints and watches stay from one run to the next."""
    debugger.breakpoints.clear()
    for one in before.breakpoints.items():
        debugger.breakpoints.restore(one.as_set)
    for number, _ in debugger.watches.items():
        debugger.watches.remove(number)
    for _, expression in before.watches.items():
        debugger.watches.add(expression)
