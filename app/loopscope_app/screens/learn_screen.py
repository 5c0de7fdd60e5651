"""The course: a lesson with its prediction, beside the run that it is about."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import lesson_actions
from loopscope_app.parts.course import course_bar, experiments, pitfalls, prediction, reading
from loopscope_app.parts.frame import moment, page_address, stage
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    lesson = lesson_actions.opened_lesson(session)
    if lesson is None or session.model.opened is None:
        return
    course_bar.show(session, lesson)
    text, run = st.columns([1, 1.45] if session.learning.large else [1, 1.9], gap="medium")
    with text, st.container(key="lesson"):
        reading.show(lesson)
        prediction.show(session, lesson)
        experiments.show(session, lesson)
        pitfalls.show(lesson)
    with run:
        moment.show(session, _run)


def _run(session: UserSession) -> None:
    stage.show(session)
    page_address.show(session)
