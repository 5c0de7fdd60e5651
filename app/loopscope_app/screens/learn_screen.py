"""The course: a lesson with its prediction, beside the run that it is about."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import lesson_actions
from loopscope_app.parts.course import course_bar, experiments, pitfalls, prediction, reading
from loopscope_app.parts.dock import dock, iterations_tab
from loopscope_app.parts.frame import moment, page_address, stage
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    lesson = lesson_actions.opened_lesson(session)
    if lesson is None or session.model.opened is None:
        return
    with st.container(key="header"):
        course_bar.show(session, lesson)
    with st.container(key="lesson"):
        reading.show(lesson)
        prediction.show(session, lesson)
        experiments.show(session, lesson)
        pitfalls.show(lesson)
    moment.show(session, _run)


def _run(session: UserSession) -> None:
    stage.show(session, _below_the_text)
    page_address.show(session)


def _below_the_text(session: UserSession) -> None:
    """Draw the verdict and the iterations, which the lesson refers to."""
    dock.show_verdict(session)
    iterations_tab.show(session, loop_in_focus(session))
