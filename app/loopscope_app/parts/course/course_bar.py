"""The bar above a lesson: its number, the progress through the course, and links to other
lessons.
"""

from __future__ import annotations

import streamlit as st

from loopscope.explain import pattern
from loopscope.ir import IF, is_trace
from loopscope_app.actions import lesson_actions
from loopscope_app.describe import lessons
from loopscope_app.describe.lessons import Lesson
from loopscope_app.describe.node_index import places
from loopscope_app.parts.dock import drawer
from loopscope_app.parts.frame import style
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession

LARGE = "course_large"


def show(session: UserSession, lesson: Lesson) -> None:
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
        _list(session, lesson)
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


def _list(session: UserSession, lesson: Lesson) -> None:
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
