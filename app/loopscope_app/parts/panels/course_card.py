"""The card in the gallery that opens the course."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import lesson_actions
from loopscope_app.describe import lessons
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    done, whole = len(session.learning.done), len(lessons.lessons())
    with st.container(border=True, key="course_card"):
        words, button = st.columns([5, 1.2], vertical_alignment="center")
        with words:
            progress = f"{done} of {whole} lessons done" if done else f"{whole} lessons"
            markup.show(
                f"<b>Learn how loops and branches run</b>&ensp;{markup.chip(progress)}<br>"
                '<span class="quiet">Predict an iteration count, a branch or a value. Then run '
                "the model and see why.</span>"
            )
        button.button(
            "Continue" if done else "Start learning",
            key="course_start",
            icon=":material/school:",
            on_click=lesson_actions.go_on,
            width="stretch",
        )
