"""Action that shows another view of the open model."""

from __future__ import annotations

from loopscope_app.actions.report_errors import show_errors
from loopscope_app.state.user_session import current, widget
from loopscope_app.state.view_choices import DEBUG, VIEWS

BAR = "view_bar"
"""The widget with the row of views."""


@show_errors
def show(view: str) -> None:
    """Show a view by its name in links. Its state is that of the last visit."""
    session = current()
    session.canvas.playing, session.message = False, None
    session.view = view if view in VIEWS and view != DEBUG else ""


def show_chosen() -> None:
    """Show the view that is chosen in the row of views."""
    show(str(widget(BAR) or DEBUG))
