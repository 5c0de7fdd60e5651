"""The view Performance: steps as lanes, a parallel schedule, the time of each operation."""

from __future__ import annotations

from loopscope_app.parts.frame import view_page
from loopscope_app.parts.run_views import performance_view
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    view_page.show(session, _content)


def _content(session: UserSession) -> None:
    performance_view.show(session, view_page.show_run_canvas)
