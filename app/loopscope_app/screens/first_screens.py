"""Screens that are imported at once: the gallery, the view Debug, and a lesson of the course."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import lesson_actions
from loopscope_app.parts.course import course_bar, lesson_parts, prediction
from loopscope_app.parts.dock import dock, iterations_tab
from loopscope_app.parts.frame import header, notice, page_address, stage, view_page
from loopscope_app.parts.panels import opener, sample_cards
from loopscope_app.parts.widgets import markup
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.user_session import UserSession


def show_gallery(session: UserSession) -> None:
    markup.show(
        "<h1>Loopscope</h1>"
        '<div class="lead">Run a neural network with loops and branches one operation at a time. '
        "See every value, every iteration, and why each loop stopped.</div>"
    )
    notice.show(session)
    opener.show()
    opener.show_recent()
    sample_cards.show(session)


def show_debugger(session: UserSession) -> None:
    with st.container(key="header"):
        header.show(session)
    view_page.show_moment(session, _moment)


def _moment(session: UserSession) -> None:
    """Draw everything that changes with a step, so that a step draws nothing else."""
    stage.show(session, dock.show)
    page_address.show(session)


def show_lesson(session: UserSession) -> None:
    lesson = lesson_actions.opened_lesson(session)
    if lesson is None or session.model.opened is None:
        return
    with st.container(key="header"):
        course_bar.show(session, lesson)
    with st.container(key="lesson"):
        lesson_parts.show_text(lesson)
        prediction.show(session, lesson)
        lesson_parts.show_experiments(session, lesson)
        lesson_parts.show_pitfalls(lesson)
    view_page.show_moment(session, _run)


def _run(session: UserSession) -> None:
    stage.show(session, _below_the_text)
    page_address.show(session)


def _below_the_text(session: UserSession) -> None:
    """Draw the verdict and the iterations, which the lesson refers to."""
    dock.show_verdict(session)
    iterations_tab.show(session, loop_in_focus(session))
