"""The view Debug: the graph at the cursor, the strip of iterations, and the dock."""

from __future__ import annotations

import streamlit as st

from loopscope_app.parts.dock import dock
from loopscope_app.parts.frame import header, moment, page_address, stage
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    with st.container(key="header"):
        header.show(session)
    moment.show(session, _moment)


def _moment(session: UserSession) -> None:
    """Draw everything that changes with a step, so that a step draws nothing else."""
    stage.show(session, dock.show)
    page_address.show(session)
