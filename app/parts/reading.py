"""What a lesson says before anything runs: the text, and the same thing as code."""

from __future__ import annotations

import streamlit as st

from app import markup
from app.lessons import Lesson


def show(lesson: Lesson) -> None:
    markup.show("".join(f"<p>{markup.prose(paragraph)}</p>" for paragraph in lesson.text), "reading")
    st.code(lesson.code, language="python")
