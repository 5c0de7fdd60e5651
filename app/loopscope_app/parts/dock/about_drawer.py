"""About the open model: its format and size, and the lesson of a sample."""

from __future__ import annotations

from loopscope_app.describe.wording import model_size
from loopscope_app.parts.dock import sample_lesson
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, opened: Opened) -> None:
    card = opened.card
    rows = [("model", markup.text(opened.title)), ("format", markup.text(model_size(opened.model)))]
    markup.show((f"<p>{markup.text(card, 600)}</p>" if card else "") + markup.facts(rows))
    sample_lesson.show(session)
