"""Loops that the canvas draws as copies of their body: switched on and off, and kept round the cursor."""

from __future__ import annotations

from app.session import Session
from engine.view import unrolling
from engine.view.build import graph_view
from engine.view.folding import COPIES
from engine.view.graph import without_iterations

MOST_BOXES = 420
"""Fewer copies are drawn where there would be more boxes than this."""


def unroll(session: Session, address: str) -> None:
    """Draws a loop as copies of its body, one for each iteration of a window; or once again."""
    if session.opened is None:
        return
    model, before = session.opened.model, session.folding
    for count in range(COPIES, 0, -1):
        session.folding = unrolling.unroll(model, before, address, session.debugger, count)
        if len(graph_view(model, session.folding, session.root).nodes) <= MOST_BOXES:
            break
    if session.folding.window(without_iterations(address)) is None:
        session.selected = without_iterations(session.selected)  # which copy it was cannot be seen any more


def shift(session: Session, address: str, windows: int) -> None:
    """Other iterations of an unrolled loop: so many windows later, or earlier."""
    session.folding = unrolling.shift(session.folding, address, windows)


def resize(session: Session, address: str, more: int) -> None:
    """More iterations of an unrolled loop side by side, or fewer."""
    session.folding = unrolling.resize(session.folding, address, more)


def follow(session: Session) -> None:
    """Windows come after the cursor, once for each time that it moves."""
    step = session.debugger.cursor.step if session.debugger else -1
    if session.debugger and step != session.followed:
        session.folding = unrolling.followed(session.folding, session.debugger)
    session.followed = step
