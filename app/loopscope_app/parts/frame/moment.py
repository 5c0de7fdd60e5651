"""The fragment of a screen that changes with each step."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from loopscope_app.state.user_session import UserSession, current, keep
from loopscope_app.state.view_choices import KEPT


def show(session: UserSession, draw: Callable[[UserSession], None]) -> None:
    """Draw ``draw`` again with every step, and nothing else of the page."""
    st.fragment(_moment)(draw, _around(session))


def _around(session: UserSession) -> tuple[object, ...]:
    """Return the state that the rest of the page depends on: view, inputs, model, and whether a
    long run is shown.
    """
    is_running = session.run.running is not None
    return session.view, session.model.input_set, session.model.opened, is_running


def _moment(draw: Callable[[UserSession], None], around: tuple[object, ...]) -> None:
    session = current()
    if _around(session) != around:
        st.rerun()  # the whole page
    keep(*KEPT)  # all views are the same fragment, which drops the widgets of the others
    draw(session)
