"""The page of a view below the header: its fragment, its messages and content, and its canvas."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from loopscope_app.actions import preparing, views
from loopscope_app.parts.frame import (
    first_run,
    graph_canvas,
    header,
    notice,
    page_address,
    run_progress,
)
from loopscope_app.state.user_session import PATIENCE, UserSession, current, keep
from loopscope_app.state.view_choices import DEBUG, KEPT


def show(session: UserSession, content: Callable[[UserSession], None]) -> None:
    """Draw the header and the content of a view. A change of the run redraws only the content."""
    with st.container(key="header"):
        header.show(session)

    def page(session: UserSession) -> None:
        with st.container(key="view_page"):
            _page(session, content)
        page_address.show(session)

    show_moment(session, page)


def _page(session: UserSession, content: Callable[[UserSession], None]) -> None:
    preparing.begin(session)
    if session.run.running is not None:
        run_progress.show()
        return
    if session.run.fitting is not None and not session.run.fitting.over:
        session.run.fitting.done(PATIENCE)
        if not preparing.look_at_fit(session):
            run_progress.fitting(session)  # the content would run with inputs that may not fit
            return
    notice.show(session)
    content(session)
    first_run.show(session)


def show_moment(session: UserSession, draw: Callable[[UserSession], None]) -> None:
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


def show_run_canvas(session: UserSession) -> None:
    """Draw the run at its cursor, with a button that opens it in Debug."""
    with st.container(key="view_canvas"):
        graph_canvas.show(session)
        st.button(
            "Open in Debug",
            key="view_canvas_open",
            on_click=views.show,
            args=(DEBUG,),
            help="Show this moment in Debug",
        )
