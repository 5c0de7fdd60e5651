"""The row of views in the header."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import views
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, place, widget
from loopscope_app.state.view_choices import DEBUG, VIEWS, offered_views


def shown_view(session: UserSession, opened: Opened) -> str:
    """Return the word of the shown view; the default if the model cannot have the chosen one."""
    return session.view if session.view in offered_views(opened) else DEBUG


def show(session: UserSession, opened: Opened) -> None:
    """Draw the views that the model can have, unless there is only one."""
    offered = offered_views(opened)
    if len(offered) < 2:
        return
    view = shown_view(session, opened)
    if widget(views.BAR) != view:  # a value that arrives again would undo a click meanwhile
        place(views.BAR, view)
    st.segmented_control(
        "View",
        offered,
        key=views.BAR,
        required=True,
        format_func=VIEWS.__getitem__,
        label_visibility="collapsed",
        width="content",
        on_change=views.show_chosen,
    )
