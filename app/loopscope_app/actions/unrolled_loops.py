"""Loops that the canvas draws as copies of their body: switched on and off, and kept round the
cursor.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.view import unrolling, without_iterations
from loopscope_app.describe.unrolled import at_window, unrolled
from loopscope_app.links.codec import Unreadable, Window
from loopscope_app.state.user_session import Message, UserSession


def unroll(session: UserSession, address: str) -> None:
    """Draws a loop as copies of its body, one for each iteration of a window; or once again."""
    if session.model.opened is None:
        return
    canvas = session.canvas
    canvas.folding = unrolled(
        session.model.opened.model, canvas.folding, canvas.root, address, session.run.at_rest
    )
    if session.canvas.folding.window(without_iterations(address)) is None:
        session.canvas.selected = without_iterations(
            session.canvas.selected
        )  # which copy it was cannot be seen any more


def shift(session: UserSession, address: str, windows: int) -> None:
    """Other iterations of an unrolled loop: so many windows later, or earlier."""
    session.canvas.folding = unrolling.shift(session.canvas.folding, address, windows)


def resize(session: UserSession, address: str, more: int) -> None:
    """More iterations of an unrolled loop side by side, or fewer."""
    session.canvas.folding = unrolling.resize(session.canvas.folding, address, more)


def follow(session: UserSession) -> None:
    """Windows come after the cursor, once for each time that it moves."""
    debugger = session.run.at_rest
    if debugger is not None and debugger.cursor.step != session.canvas.followed:
        session.canvas.folding = unrolling.followed(session.canvas.folding, debugger)
        session.canvas.followed = debugger.cursor.step


def restore(session: UserSession, wanted: Sequence[Window | Unreadable]) -> None:
    """The windows that the page's address asks for: they come after the cursor only when it
    moves again.
    """
    if session.model.opened is None:
        return
    canvas, model, debugger = session.canvas, session.model.opened.model, session.run.at_rest
    for one in wanted:
        before = canvas.folding
        if isinstance(one, Window):
            canvas.folding = at_window(
                debugger, model, before, canvas.root, (one.address, one.first, one.count)
            )
        if canvas.folding is before:
            session.message = Message(
                "The link's unrolled loops cannot be read: this picture is without some of them",
                "info",
            )
    if debugger is not None:
        canvas.followed = debugger.cursor.step
