"""The page of a lesson around its questions: the bar above it, its text, other inputs to try, and
runtime pitfalls.

A lesson that opens is shown from its top. A new input begins a new prediction.
"""

from __future__ import annotations

import streamlit as st

from loopscope.errors import neutral
from loopscope.explain import pattern
from loopscope.ir import IF, is_trace
from loopscope_app.actions import lesson_actions, running_many
from loopscope_app.describe import lessons
from loopscope_app.describe.lessons import Lesson
from loopscope_app.describe.node_index import places
from loopscope_app.describe.signatures import signatures
from loopscope_app.parts.dock import drawer
from loopscope_app.parts.frame import style
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession

LARGE = "course_large"


def show_bar(session: UserSession, lesson: Lesson) -> None:
    style.lessons(session.learning.large)
    large = session.learning.large
    back, title, way = st.columns(
        [1.2, 5, 4.6] if large else [1.1, 5.4, 5.2], vertical_alignment="center", gap="small"
    )
    back.button(
        "Gallery",
        key="course_leave",
        icon=":material/arrow_back:",
        on_click=lesson_actions.leave,
        type="tertiary",
        help="Back to the samples",
    )
    with title:
        number, whole = lessons.number(lesson.name), len(lessons.lessons())
        markup.show(
            f'<div class="lesson-title"><span class="quiet">Lesson {number} of {whole}</span>'
            f"<b>{markup.text(lesson.title)}</b>"
            f"{'' if large else _pattern(session, lesson)}</div>" + _track(session, lesson)
        )
    with (
        way,
        st.container(
            key="course_way",
            horizontal=True,
            horizontal_alignment="right",
            vertical_alignment="center",
            gap="small",
        ),
    ):
        st.toggle(
            "Large",
            session.learning.large,
            key=LARGE,
            on_change=lesson_actions.enlarge,
            args=(LARGE,),
            help="Large text, for a projector",
        )
        _lesson_menu(session, lesson)
        _beside(lesson, -1, "previous", "" if large else "Previous", "chevron_left")
        _beside(lesson, 1, "next", "" if large else "Next", "chevron_right")
        if not large:
            with st.popover(
                "Keys", key="keys_menu", icon=":material/keyboard:", help="Keys", type="tertiary"
            ):
                drawer.show_keys()


def _pattern(session: UserSession, lesson: Lesson) -> str:
    """Return a chip with the engine's name for the control flow that the lesson is about."""
    if (
        session.run.debugger is None
        or is_trace(session.run.debugger.model)
        or places(session.run.debugger.model)[lesson.address].node.type == IF
    ):
        return ""
    return markup.chip(pattern(session.run.debugger, lesson.address).name, "live")


def _track(session: UserSession, lesson: Lesson) -> str:
    """Return a dot per lesson: filled if its prediction was checked, ringed for the current
    lesson.
    """
    dots = []
    for entry in lessons.lessons():
        done = "done " if entry.name in session.learning.done else ""
        marks = f"{done}{'here' if entry is lesson else ''}"
        dots.append(f'<i class="{marks}" title="{markup.text(entry.title)}"></i>')
    return f'<div class="track">{"".join(dots)}</div>'


def _lesson_menu(session: UserSession, lesson: Lesson) -> None:
    """Draw the menu of lessons by topic. Its key closes it when another lesson opens."""
    with (
        st.popover("Lessons", icon=":material/menu_book:", key=f"course_menu_{lesson.name}"),
        st.container(key="course_list", gap=None),
    ):
        for topic, entries in lessons.topics().items():
            markup.show(markup.section(topic))
            for entry in entries:
                is_done = entry.name in session.learning.done
                st.button(
                    f"{lessons.number(entry.name)}. {entry.title}",
                    key=f"course_open_{entry.name}",
                    icon=":material/check_circle:" if is_done else ":material/circle:",
                    type="tertiary",
                    disabled=entry is lesson,
                    on_click=lesson_actions.open_lesson,
                    args=(entry.name,),
                )


def _beside(lesson: Lesson, distance: int, name: str, word: str, icon: str) -> None:
    other = lessons.beside(lesson.name, distance)
    st.button(
        word or name.capitalize(),
        key=f"course_{name}" if word else f"course_{name}_large",
        icon=f":material/{icon}:",
        icon_position="left" if distance < 0 else "right",
        help=other.title if other else None,
        disabled=other is None,
        on_click=lesson_actions.open_lesson,
        args=(other.name if other else "",),
    )


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
        _own_inputs(session)
        _data_set_button(session)


def _data_set_button(session: UserSession) -> None:
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


def _own_inputs(session: UserSession) -> None:
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
