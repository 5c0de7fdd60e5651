"""The view Gradients: what to differentiate, and how gradients change over the iterations."""

from __future__ import annotations

from loopscope_app.parts.frame import view_page
from loopscope_app.parts.panels import backward_panel
from loopscope_app.parts.run_views import adjoint_view
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    view_page.show(session, _content)


def _content(session: UserSession) -> None:
    if session.model.opened is None:
        return
    backward_panel.show(session, session.model.opened)
    loop = loop_in_focus(session)
    if loop is not None:
        adjoint_view.show(session, loop)
