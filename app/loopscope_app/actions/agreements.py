"""Actions of the badge that says what the model's runtime computes."""

from __future__ import annotations

from loopscope_app.actions import views
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.actions.side_by_side import compare_with
from loopscope_app.state.agreement import Agreement
from loopscope_app.state.compare_choice import KIND, RUNTIME
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.user_session import UserSession, place


def begin(session: UserSession) -> None:
    """Start the comparison of the open model, once, on a user's own machine."""
    opened = session.model.opened
    if opened is None or not LAUNCH.compares or LAUNCH.server:
        return
    if opened.pending or len(session.model.inputs) != len(opened.model.inputs):
        return
    known = session.model.agreement
    if (
        known is not None
        and known.opened.model is opened.model
        and not known.failed_before(session.model.inputs)
    ):
        return
    session.model.agreement = Agreement(opened, session.model.inputs)
    session.model.agreement.begin()


@show_errors
def show_comparison() -> None:
    """Show the view Compare with the model's runtime."""
    place(KIND, RUNTIME)
    views.show("compare")
    compare_with(RUNTIME)
