"""Actions that move through the run, at once or in the background."""

from __future__ import annotations

from collections.abc import Callable

import loopscope
from loopscope.errors import EngineError
from loopscope.view import reveal
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.state.background_run import (
    Comparing,
    Differentiating,
    Onward,
    Preparing,
    Running,
)
from loopscope_app.state.user_session import PATIENCE, Message, UserSession, current

AT_ONCE = 0.05
"""Seconds by which the first picture may be delayed, so that it shows the whole of a short run."""
Move = Callable[[loopscope.Debugger], object]


@show_errors
def go(move: Move) -> None:
    """Move the debugger; a long move continues in the background."""
    session = current()
    debugger = session.run.debugger
    if debugger is None or not settled(session) or session.run.gave_up:
        return
    session.message = None
    session.run.running = Running(debugger, lambda: move(debugger))
    session.run.running.done(PATIENCE)
    settled(session)


def run_on() -> None:
    """Continue a run that a link reopened to its end; a short run ends at once."""
    session = current()
    if session.run.debugger is not None:
        session.run.onward = Onward(session.run.debugger)
        if session.run.running is None:
            session.run.onward.go_on(AT_ONCE)


def play() -> None:
    """Start or stop the canvas's playback."""
    session = current()
    session.canvas.plays += 1


def settled(session: UserSession) -> bool:
    """Return True if nothing runs in the background. Errors of a finished run become the
    message.
    """
    running = session.run.running
    if running is not None and running.done():
        session.run.running = None
        _unfold_failure(session)
        if isinstance(running, Preparing):
            _report_prepared(session, running)
        elif isinstance(running, Differentiating):
            _report_gradient(session, running)
        if isinstance(running.error, EngineError):
            session.message = Message(str(running.error))
        elif running.error is not None:
            raise running.error
    return session.run.running is None


def _report_prepared(session: UserSession, running: Preparing) -> None:
    session.model.unprepared = running.is_stopped
    if running.is_stopped:
        session.message = Message(
            "The check was stopped: this is the picture of a model that has no run yet", "info"
        )
    try:
        running.tell()
    except EngineError as error:
        session.message = Message(str(error))


def _report_gradient(session: UserSession, running: Differentiating) -> None:
    if running.is_stopped:
        session.message = Message(
            "The gradient was stopped: this is the model without its gradient", "info"
        )
    try:
        running.tell()
    except EngineError as error:
        session.message = Message(str(error))


def _unfold_failure(session: UserSession) -> None:
    """Open the folded bodies around a failed operation, so that the picture shows the operation
    itself.
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
    """Stop what the user waits for at the next iteration; a run keeps what it did."""
    session = current()
    if isinstance(session.run.running, Comparing):
        work = {"Comparing": "comparison", "Measuring": "measurement"}
        stopped = work.get(session.run.running.doing, "question to the runtime")
        session.message = Message(f"The {stopped} was stopped", "info")
    if session.run.running is not None:
        session.run.running.stop()


def stop_if_running(session: UserSession) -> None:
    """Stop the background work, because something else replaces it."""
    if not settled(session) and session.run.running is not None:
        session.run.running.stop()


@show_errors
def seek(place: str | int) -> None:
    """Seek to an address or a step number; the inspector follows the cursor again."""
    current().canvas.selected = ""
    go(lambda debugger: debugger.seek(place))


@show_errors
def run_to(pattern: str) -> None:
    """Run until an operation that the pattern matches is next."""
    go(lambda debugger: debugger.run_to(pattern))
