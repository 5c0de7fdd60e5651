"""The page of a view below the header: messages and content, or the progress of a long run."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from loopscope_app.actions import preparing
from loopscope_app.parts.frame import header, moment, notice, page_address, run_progress
from loopscope_app.parts.panels import first_run
from loopscope_app.state.user_session import UserSession


def show(session: UserSession, content: Callable[[UserSession], None]) -> None:
    """Draw the header and the content of a view. A change of the run redraws only the content."""
    with st.container(key="header"):
        header.show(session)

    def page(session: UserSession) -> None:
        with st.container(key="view_page"):
            _page(session, content)
        page_address.show(session)

    moment.show(session, page)


def _page(session: UserSession, content: Callable[[UserSession], None]) -> None:
    preparing.begin(session)
    if session.run.running is not None:
        run_progress.show()
        return
    notice.show(session)
    content(session)
    first_run.show(session)
