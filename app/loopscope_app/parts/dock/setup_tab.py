"""The Setup tab: the inputs of the run, breakpoints and watches."""

from __future__ import annotations

from loopscope.ir import is_trace
from loopscope_app.parts.dock import breakpoints_section, inputs_section
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is not None and not is_trace(opened.model):
        markup.show(markup.section("Inputs"))
        inputs_section.show(session)
    breakpoints_section.show(session)
