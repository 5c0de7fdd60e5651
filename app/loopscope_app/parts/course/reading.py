"""The text of a lesson, and its model as code. A lesson that opens is shown from its top."""

from __future__ import annotations

import streamlit as st

from loopscope_app.describe.lessons import Lesson
from loopscope_app.parts.widgets import markup

_TO_THE_TOP = """
export default function () {
  for (const scrolled of document.querySelectorAll(".st-key-lesson, [data-testid=stMain]"))
    scrolled.scrollTo(0, 0);
}
"""
"""Runs when its data changes. In a narrow window the page scrolls instead of the lesson."""
_top = st.components.v2.component("loopscope_lesson_top", js=_TO_THE_TOP)


def show(lesson: Lesson) -> None:
    with st.container(key="lesson_top"):
        _top(key="lesson_top_now", data=lesson.name, height=1)
    markup.show(
        "".join(f"<p>{markup.prose(paragraph)}</p>" for paragraph in lesson.text), "reading"
    )
    st.code(lesson.code, language="python")
