"""The first screen: samples, and ways to open a model."""

from __future__ import annotations

from loopscope_app.parts.course import course_card
from loopscope_app.parts.frame import notice
from loopscope_app.parts.panels import opener, recent_files, sample_cards
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    markup.show(
        "<h1>Loopscope</h1>"
        '<div class="lead">Watch a neural network with loops and branches run, one operation at '
        "a time: every value on its wire, "
        "every iteration, and why the loop stopped.</div>"
    )
    notice.show(session)
    opener.show()
    recent_files.show()
    course_card.show(session)
    sample_cards.show()
