"""Text of the views of a loop before a loop has run."""

from __future__ import annotations

from loopscope.ir import Model
from loopscope_app.describe.node_index import IndexedNode, places
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def first_loop(model: Model) -> IndexedNode | None:
    return next((entry for entry in places(model).values() if entry.node.is_loop), None)


def show(session: UserSession, what: str) -> None:
    """Show the text. ``what`` is the rest of a sentence that begins with "Once a loop runs"."""
    opened = session.model.opened
    if opened is not None and first_loop(opened.model) is None:
        markup.show("This model has no loop: its steps are under Performance.", "quiet")
    else:
        markup.show(f"Once a loop runs, {what}", "quiet")
