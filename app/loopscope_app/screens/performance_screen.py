"""The view Performance: steps as lanes, a parallel schedule, the time of each operation."""

from __future__ import annotations

from loopscope_app.parts.frame import view_page
from loopscope_app.parts.run_views import performance_view
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    view_page.show(session, performance_view.show)
