"""The page of a visit: the choice of its screen, and each screen as a list of parts.

The screens are the gallery, a lesson of the course, and a screen for each view of a model. The
launched model may be watched: a changed file is opened again.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from loopscope_app import canvas
from loopscope_app.actions import lesson_actions, open_link, running_many
from loopscope_app.links.codec import Link
from loopscope_app.links.current_link import current_link
from loopscope_app.parts import gallery
from loopscope_app.parts.course import lesson_page, prediction
from loopscope_app.parts.dock import dock, iterations_tab
from loopscope_app.parts.frame import (
    header,
    notice,
    opener,
    page_address,
    stage,
    style,
    view_page,
)
from loopscope_app.parts.widgets import markup
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.launch import LAUNCH
from loopscope_app.state.user_session import UserSession, current, keep
from loopscope_app.state.view_choices import KEPT


def show() -> None:
    st.set_page_config(
        page_title="Loopscope",
        page_icon=style.ICON,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    style.apply()
    style.apply_theme()
    canvas.prepare()
    session = current()
    if not session.arrived:
        open_link.arrive(session)
    elif page_address.moved():
        page_address.forget()
        open_link.follow(session)
    elif LAUNCH.watch:
        _reopen_changed_file(session)
    opened = session.model.opened
    if opened is None:
        _show_gallery(session)
        return
    keep(*KEPT)
    if session.learning.lesson and not session.view:
        _show_lesson(session)
    else:
        _show_view(session, header.shown_view(session, opened))
    opener.show_drop_target()
    if LAUNCH.watch:
        _watch_file()


_FILE_INTERVAL = 0.7
"""Seconds between two looks at the launched file."""


def _reopen_changed_file(session: UserSession) -> None:
    """Open the launched model again, at the same moment and view, if its file changed.

    The screen is not drawn yet, so that values of its widgets may change.
    """
    link = _link_after_change(session)
    if link is not None:
        open_link.reload(session, link)


@st.fragment(run_every=_FILE_INTERVAL)
def _watch_file() -> None:
    """Draw the whole page again when the file has changed."""
    if _link_after_change(current()) is not None:
        st.rerun()


def _link_after_change(session: UserSession) -> Link | None:
    """Return the link to the shown moment if the file changed. A long run ends first."""
    opened = session.model.opened
    if opened is None or opened.link != LAUNCH.link or not session.model.file_has_changed():
        return None
    return current_link(session)


def _show_gallery(session: UserSession) -> None:
    markup.show(
        "<h1>Loopscope</h1>"
        '<div class="lead">Run a neural network with loops and branches one operation at a time. '
        "See every value, every iteration, and why each loop stopped.</div>"
    )
    notice.show(session)
    opener.show()
    opener.show_recent()
    gallery.show(session)


def _show_lesson(session: UserSession) -> None:
    lesson = lesson_actions.opened_lesson(session)
    if lesson is None or session.model.opened is None:
        return
    with st.container(key="header"):
        lesson_page.show_bar(session, lesson)
    with st.container(key="lesson"):
        lesson_page.show_text(lesson)
        prediction.show(session, lesson)
        lesson_page.show_experiments(session, lesson)
        lesson_page.show_pitfalls(lesson)
    view_page.show_moment(session, _lesson_run)


def _lesson_run(session: UserSession) -> None:
    stage.show(session, _below_the_text)
    page_address.show(session)


def _below_the_text(session: UserSession) -> None:
    """Draw the verdict and the iterations, which the lesson refers to."""
    dock.show_verdict(session)
    iterations_tab.show(session, loop_in_focus(session))


def _show_view(session: UserSession, view: str) -> None:
    """Show a view of the model.

    Parts of each view but Debug are imported when it is shown: the first picture does not wait for
    them.
    """
    match view:
        case "compare":
            from loopscope_app.parts.run_views import compare_view

            view_page.show(session, compare_view.show)
        case "many":
            _show_many_runs(session)
        case "gradients":
            from loopscope_app.parts.run_views import gradients_view

            view_page.show(session, partial(gradients_view.show, canvas=view_page.show_run_canvas))
        case "performance":
            from loopscope_app.parts.run_views import performance_view

            view_page.show(
                session, partial(performance_view.show, canvas=view_page.show_run_canvas)
            )
        case _:
            _show_debugger(session)


def _show_debugger(session: UserSession) -> None:
    with st.container(key="header"):
        header.show(session)
    view_page.show_moment(session, _debugger_moment)


def _debugger_moment(session: UserSession) -> None:
    """Draw everything that changes with a step, so that a step draws nothing else."""
    stage.show(session, dock.show)
    page_address.show(session)


def _show_many_runs(session: UserSession) -> None:
    from loopscope_app.parts.many_runs import inputs_choice, sweep_result

    opened = session.model.opened
    if opened is None:
        return
    with st.container(key="header"):
        header.show(session)
    with st.container(key="view_page"):
        inputs_choice.show(session, opened)
        over = running_many.is_over(session)
        notice.show(session)
        if not over:
            sweep_result.show_progress()
        elif session.many.sweeping is not None:
            sweep_result.show(session, session.many.sweeping)
    page_address.show(session)
