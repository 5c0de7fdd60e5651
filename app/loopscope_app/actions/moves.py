"""Moves through the run, at once or in the background."""

from __future__ import annotations

from collections.abc import Callable

import loopscope
from loopscope.errors import EngineError
from loopscope.view import reveal
from loopscope_app.actions.report_errors import told
from loopscope_app.state.background_run import (
    Comparing,
    Differentiating,
    Onward,
    Preparing,
    Running,
)
from loopscope_app.state.user_session import PATIENCE, Message, UserSession, current

AT_ONCE = 0.05
"""Seconds by which the first picture may come later, so that it has the whole of a short run."""
Move = Callable[[loopscope.Debugger], object]


@told
def go(move: Move) -> None:
    """Moves the debugger; a move that takes longer than a blink continues in the background."""
    session = current()
    debugger = session.run.debugger
    if debugger is None or not settled(session) or session.run.gave_up:
        return
    session.message = None
    session.run.running = Running(debugger, lambda: move(debugger))
    session.run.running.done(PATIENCE)
    settled(session)


def run_on() -> None:
    """Lets the run that a link has reopened go on to its end, of which the link's moment is a
    part; a short one is over at once.
    """
    session = current()
    if session.run.debugger is not None:
        session.run.onward = Onward(session.run.debugger)
        if session.run.running is None:
            session.run.onward.go_on(AT_ONCE)


def play() -> None:
    """Has the canvas step by itself, or stop that."""
    session = current()
    session.canvas.plays += 1


def settled(session: UserSession) -> bool:
    """Whether nothing runs in the background any more; what a run had to say becomes the
    message.
    """
    running = session.run.running
    if running is not None and running.done():
        session.run.running = None
        _unfold_failure(session)
        if isinstance(running, Preparing):
            _tell_prepared(session, running)
        elif isinstance(running, Differentiating):
            _tell_made(session, running)
        if isinstance(running.error, EngineError):
            session.message = Message(str(running.error))
        elif running.error is not None:
            raise running.error
    return session.run.running is None


def _tell_prepared(session: UserSession, running: Preparing) -> None:
    session.model.unprepared = running.is_stopped
    if running.is_stopped:
        session.message = Message(
            "The check was stopped: this is the picture of a model that has no run yet", "info"
        )
    try:
        running.tell()
    except EngineError as error:
        session.message = Message(str(error))


def _tell_made(session: UserSession, running: Differentiating) -> None:
    if running.is_stopped:
        session.message = Message(
            "The way back was stopped: this is the model without its gradient", "info"
        )
    try:
        running.tell()
    except EngineError as error:
        session.message = Message(str(error))


def _unfold_failure(session: UserSession) -> None:
    """Where an operation has failed inside something folded, that is opened: the picture shows
    it, not only the box around it.
    """
    debugger = session.run.debugger
    if (
        session.model.opened
        and debugger is not None
        and debugger.failed_address
        and debugger.cursor.step == debugger.steps
    ):
        session.canvas.folding = reveal(
            session.model.opened.model, session.canvas.folding, debugger.failed_address
        )


def stop() -> None:
    """A person stops what they wait for, at the next iteration; what a run did is kept."""
    session = current()
    if isinstance(session.run.running, Comparing):
        what = {"Comparing": "comparison", "Measuring": "measurement"}[session.run.running.doing]
        session.message = Message(f"The {what} was stopped", "info")
    if session.run.running is not None:
        session.run.running.stop()


def stop_if_running(session: UserSession) -> None:
    """Before something else comes in its place."""
    if not settled(session) and session.run.running is not None:
        session.run.running.stop()


def note_panels(session: UserSession) -> None:
    """A long run takes the panels around the picture off the screen."""
    session.canvas.panels_gone = session.run.running is not None


@told
def seek(place: str | int) -> None:
    """To an address or a step number, and there the inspector follows the cursor again."""
    current().canvas.selected = ""
    go(lambda debugger: debugger.seek(place))


@told
def run_to(pattern: str) -> None:
    """Until something that the pattern names is next."""
    go(lambda debugger: debugger.run_to(pattern))
