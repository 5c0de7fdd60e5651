"""The view Compare: this run beside another one."""

from __future__ import annotations

from loopscope_app.parts.frame import view_page
from loopscope_app.parts.run_views import compare_view
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    view_page.show(session, compare_view.show)
