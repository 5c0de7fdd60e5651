"""The first screen: samples, and ways to open a model."""

from __future__ import annotations

from loopscope_app.parts.frame import notice
from loopscope_app.parts.panels import opener, recent_files, sample_cards
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    markup.show(
        "<h1>Loopscope</h1>"
        '<div class="lead">Run a neural network with loops and branches one operation at a time. '
        "See every value, every iteration, and why each loop stopped.</div>"
    )
    notice.show(session)
    opener.show()
    recent_files.show()
    sample_cards.show(session)
