"""The view Many runs: inputs, and the progress or the result of their runs."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import running_many
from loopscope_app.parts.frame import header, notice, page_address
from loopscope_app.parts.many_runs import inputs_choice, sweep_result
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None:
        return
    with st.container(key="header"):
        header.show(session)
    with st.container(key="view_page"):
        inputs_choice.show(session, opened)
        over = running_many.is_over(session)
        notice.show(session)
        if not over:
            sweep_result.show_progress()
        elif session.many.sweeping is not None:
            sweep_result.show(session, session.many.sweeping)
    page_address.show(session)
