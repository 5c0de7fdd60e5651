"""The view Gradients: what to differentiate, and how gradients change over the iterations."""

from __future__ import annotations

from loopscope_app.parts.frame import view_page
from loopscope_app.parts.run_views import gradients_view
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    view_page.show(session, _content)


def _content(session: UserSession) -> None:
    gradients_view.show(session, view_page.show_run_canvas)
