"""Loops that the canvas draws as copies of their body, in a window that follows the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.view import unrolling, without_iterations
from loopscope_app.describe.unrolled import at_window, unrolled
from loopscope_app.links.codec import Unreadable, Window
from loopscope_app.state.user_session import Message, UserSession


def unroll(session: UserSession, address: str) -> None:
    """Draw a loop as copies of its body, one for each iteration of a window; or fold it again."""
    if session.model.opened is None:
        return
    canvas = session.canvas
    canvas.folding = unrolled(
        session.model.opened.model, canvas.folding, canvas.root, address, session.run.at_rest
    )
    if session.canvas.folding.window(without_iterations(address)) is None:
        # The selection names a copy, which is not drawn any more.
        session.canvas.selected = without_iterations(session.canvas.selected)


def shift(session: UserSession, address: str, windows: int) -> None:
    """Move the window of an unrolled loop by a number of windows; negative means earlier."""
    session.canvas.folding = unrolling.shift(session.canvas.folding, address, windows)


def resize(session: UserSession, address: str, more: int) -> None:
    """Widen or narrow the window of an unrolled loop."""
    session.canvas.folding = unrolling.resize(session.canvas.folding, address, more)


def follow(session: UserSession) -> None:
    """Move the windows to the cursor, once after each move of the cursor."""
    debugger = session.run.at_rest
    if debugger is not None and debugger.cursor.step != session.canvas.followed:
        session.canvas.folding = unrolling.followed(session.canvas.folding, debugger)
        session.canvas.followed = debugger.cursor.step


def restore(session: UserSession, windows: Sequence[Window | Unreadable]) -> None:
    """Restore the windows of a link; they follow the cursor only after its next move."""
    if session.model.opened is None:
        return
    canvas, model, debugger = session.canvas, session.model.opened.model, session.run.at_rest
    for window in windows:
        before = canvas.folding
        if isinstance(window, Window):
            canvas.folding = at_window(
                debugger, model, before, canvas.root, (window.address, window.first, window.count)
            )
        if canvas.folding is before:
            session.message = Message(
                "The link's unrolled loops cannot be read: this picture is without some of them",
                "info",
            )
    if debugger is not None:
        canvas.followed = debugger.cursor.step
