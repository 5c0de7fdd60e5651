"""Differences of real runtimes in the situation of a lesson."""

from __future__ import annotations

import streamlit as st

from loopscope_app.describe.lessons import Lesson
from loopscope_app.parts.widgets import markup


def show(lesson: Lesson) -> None:
    with st.expander("In real runtimes", icon=":material/warning:"):
        rows = "".join(
            f"<dt>{markup.text(pitfall.runtime)}</dt><dd>{markup.prose(pitfall.text)}</dd>"
            for pitfall in lesson.pitfalls
        )
        markup.show(f'<dl class="pitfalls">{rows}</dl>')
