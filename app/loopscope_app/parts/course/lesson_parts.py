"""Parts of a lesson beside its questions: the text, other inputs to try, and runtime pitfalls.

A lesson that opens is shown from its top. A new input begins a new prediction.
"""

from __future__ import annotations

import streamlit as st

from loopscope.errors import neutral
from loopscope_app.actions import lesson_actions, running_many
from loopscope_app.describe.lessons import Lesson
from loopscope_app.describe.signatures import signatures
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession

_TO_THE_TOP = """
export default function () {
  for (const scrolled of document.querySelectorAll(".st-key-lesson, [data-testid=stMain]"))
    scrolled.scrollTo(0, 0);
}
"""
"""Runs when its data changes. In a narrow window the page scrolls instead of the lesson."""
_top = st.components.v2.component("loopscope_lesson_top", js=_TO_THE_TOP)


def show_text(lesson: Lesson) -> None:
    with st.container(key="lesson_top"):
        _top(key="lesson_top_now", data=lesson.name, height=1)
    markup.show(
        "".join(f"<p>{markup.prose(paragraph)}</p>" for paragraph in lesson.text), "reading"
    )
    st.code(lesson.code, language="python")


def show_experiments(session: UserSession, lesson: Lesson) -> None:
    markup.show(markup.section("Try this"))
    if session.model.other is not None:
        st.button(
            "Compare the two recordings",
            key="trial_compare",
            icon=":material/compare_arrows:",
            on_click=lesson_actions.compare_recordings,
        )
        return
    with st.container(key="trials", gap="xsmall"):
        for position, trial in enumerate(lesson.trials):
            button, words = st.columns([1, 1.5], vertical_alignment="center", gap="small")
            button.button(
                trial.label,
                key=f"trial_{lesson.name}_{position}",
                on_click=lesson_actions.try_it,
                args=(trial,),
                width="stretch",
            )
            with words:
                markup.show(markup.prose(trial.text), "quiet")
        _own(session)
        _many(session)


def _many(session: UserSession) -> None:
    """Show the button that runs the data set beside the sample."""
    sample = session.model.opened.sample if session.model.opened else None
    if sample is not None and sample.data is not None:
        words = "Run all inputs of its data set"
        st.button(
            words,
            key="trial_many",
            icon=":material/stacked_bar_chart:",
            on_click=running_many.run_data_set,
        )


def _own(session: UserSession) -> None:
    if session.model.opened is None:
        return
    fields = {name: lesson_actions.typed(array) for name, array in session.model.inputs.items()}
    keys = {
        name: f"trial_own_{position}_{session.run.generation}"
        for position, name in enumerate(fields)
        if fields[name] is not None
    }
    with (
        st.popover("Inputs of your own", icon=":material/tune:"),
        st.form(f"trial_form_{session.run.generation}", border=False),
    ):
        for name, key in keys.items():
            signature = signatures(session.model.opened.model)[name]
            kind = f"{signature.element_type or 'any type'} {signature.shape}"
            st.text_input(
                f"{neutral(name, 60)} · {kind}".replace("[", "\\["),
                fields[name],
                key=key,
            )
        st.form_submit_button(
            "Use these", type="primary", on_click=lesson_actions.use_typed, args=(keys,)
        )


def show_pitfalls(lesson: Lesson) -> None:
    with st.expander("In real runtimes", icon=":material/warning:"):
        rows = "".join(
            f"<dt>{markup.text(pitfall.runtime)}</dt><dd>{markup.prose(pitfall.text)}</dd>"
            for pitfall in lesson.pitfalls
        )
        markup.show(f'<dl class="pitfalls">{rows}</dl>')
