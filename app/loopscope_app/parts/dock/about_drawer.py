"""About the open model: what its file states, its size, and the lesson of a sample."""

from __future__ import annotations

from loopscope_app.parts.dock import sample_lesson
from loopscope_app.parts.inspector import model_facts
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, opened: Opened) -> None:
    if opened.card:
        markup.show(f"<p>{markup.text(opened.card, 600)}</p>")
    model_facts.show(opened)
    sample_lesson.show(session)
