"""The text of a lesson, and its model as code."""

from __future__ import annotations

import streamlit as st

from loopscope_app.describe.lessons import Lesson
from loopscope_app.parts.widgets import markup


def show(lesson: Lesson) -> None:
    markup.show(
        "".join(f"<p>{markup.prose(paragraph)}</p>" for paragraph in lesson.text), "reading"
    )
    st.code(lesson.code, language="python")
