"""Arrival at the page: by a link, by the command line, or by a step in the browser's history."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from loopscope.errors import EngineError, InputError, ReadError, shorten
from loopscope_app.actions import (
    colouring,
    derived_models,
    gradients,
    lesson_actions,
    models,
    preparing,
    reopening,
    running_many,
)
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.describe.lessons import FIRST_SAMPLE
from loopscope_app.links.codec import SAMPLE, Link, Unreadable, read
from loopscope_app.state import recent
from loopscope_app.state.launch import LAUNCH, must_be_local
from loopscope_app.state.open_model import Opened, open_path, open_sample, with_inputs
from loopscope_app.state.user_session import Message, UserSession, place
from loopscope_app.state.view_choices import COMPARE_WITH, VIEWS


def arrive(session: UserSession) -> None:
    """Show what the page's address names on the first visit, else the model of the command line."""
    is_first, session.arrived = not session.arrived, True
    link = read(st.query_params.to_dict())
    if link.lesson:
        session.learning.large = link.large if is_first else session.learning.large
        lesson_actions.open_lesson(link.lesson, link.input_set)
    elif model := link.model or LAUNCH.link:
        try:
            _open(session, link, model)
        except EngineError as error:
            session.message = Message(str(error))
            _restore_when_prepared(session, link)
        return
    _restore_when_prepared(session, link)


def reload(session: UserSession, link: Link) -> None:
    """Open the launched model again at the moment of a link.

    The shown state remains if the file cannot be read.
    """
    try:
        _open(session, link, LAUNCH.link)
    except (EngineError, OSError) as error:
        session.message = Message(
            f"the file changed and cannot be read, so its last state is shown: {error}"
        )


def _open(session: UserSession, link: Link, model: str) -> None:
    """Open a model and restore the moment of a link. Raise ``EngineError`` if it cannot be read."""
    if isinstance(link.backward, Unreadable):
        raise InputError(link.backward.expected)
    if model == LAUNCH.link:
        session.model.note_file()
    opened = derived_models.with_linked_loops(with_room(partial(_opened, model)), link.opened)
    with_room(partial(models.show_model, opened, link.input_set))
    session.learning.first_run = LAUNCH.first_run and model == SAMPLE + FIRST_SAMPLE
    if link.backward is not None:
        gradients.begin(session, opened, link.backward, partial(_show_gradient, session, link))
    else:
        _restore_when_prepared(session, link)


def _show_gradient(session: UserSession, link: Link, gradient: Opened) -> None:
    """Show the gradient that a link names.

    It replaces its model, which is shown until the gradient is ready.
    """
    with_room(lambda: models.show_model(gradient, link.input_set))
    _restore_when_prepared(session, link)


def _restore_when_prepared(session: UserSession, link: Link) -> None:
    if session.model.opened is not None and session.model.opened.pending:
        session.model.once_prepared = partial(_restore, session, link)
    else:
        _restore(session, link)


def _restore(session: UserSession, link: Link) -> None:
    """Restore the moment of a link."""
    if session.model.opened is not None:
        if LAUNCH.overlay and not link.lesson and (link.model or LAUNCH.link) == LAUNCH.link:
            colouring.open_launched()
        if link.step:
            preparing.fit_now(session)
        if session.model.opened.saved is not None and not reopening.describes_moment(link):
            reopening.restore_saved(session)
        else:
            reopening.restore(session, link)
        _show_view(session, link)
        _report_missing_set(session, link.input_set)


def _opened(link: str) -> Opened:
    if link.startswith(SAMPLE):
        return open_sample(link.removeprefix(SAMPLE))
    if link == LAUNCH.link:
        return _launched()
    must_be_local()
    opened = open_path(link)
    recent.remember(opened.link)
    return opened


def _launched() -> Opened:
    """Open the model of the command line; a server's visitors do not learn its path."""
    try:
        opened = open_path(LAUNCH.model)
        if not LAUNCH.server:
            recent.remember(opened.link)
        opened = replace(opened, link=LAUNCH.link)
        return with_inputs(opened, LAUNCH.inputs) if LAUNCH.inputs else opened
    except EngineError as error:
        if not LAUNCH.server:
            raise
        raise ReadError(str(error).replace(LAUNCH.model, LAUNCH.link)) from None


def _report_missing_set(session: UserSession, name: str) -> None:
    """Report that the input set of a link does not exist.

    Input sets that a user named are lost when the page is closed.
    """
    if name and session.model.input_set != name and session.message is None:
        message = (
            f"the link names the input set {shorten(repr(name), 60)}, which does not exist: "
            "this run has other inputs"
        )
        session.message = Message(message, "info")


def _show_view(session: UserSession, link: Link) -> None:
    if link.view in VIEWS:
        session.view = link.view
    elif link.view and session.message is None:
        view = shorten(repr(link.view), 60)
        session.message = Message(
            f"the link names the view {view}, which does not exist: this is the view Debug", "info"
        )
    if link.view == "compare" and link.other_set:
        place(COMPARE_WITH, link.other_set)
    if link.view == "many" and link.runs:
        running_many.run_described(link.runs)


def follow(session: UserSession) -> None:
    """Show what the address names after a step in the browser's history.

    That is another model, another view of this model, or the gallery.
    """
    link, opened = read(st.query_params.to_dict()), session.model.opened
    same = (
        opened is not None
        and bool(opened.link)
        and (link.model, link.backward, link.opened)
        == (opened.link, opened.backward, opened.operators)
    )
    if same and not session.learning.lesson:
        session.view = link.view
    elif st.query_params.get("model") or st.query_params.get("lesson"):
        arrive(session)
    else:
        models.close()
