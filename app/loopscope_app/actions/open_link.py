"""Coming to the page: by a link, by the command, or by a step in the browser's history."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from loopscope.errors import EngineError, InputError, ReadError, shorten
from loopscope_app.actions import (
    colouring,
    gradients,
    lesson_actions,
    models,
    preparing,
    reopening,
    running_many,
)
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.links.codec import SAMPLE, Link, Unreadable, read
from loopscope_app.state import recent
from loopscope_app.state.launch import LAUNCH, must_be_local
from loopscope_app.state.open_model import Opened, open_path, open_sample, with_inputs
from loopscope_app.state.user_session import Message, UserSession


def arrive(session: UserSession) -> None:
    """On the first visit: what the page's address asks for, else the model that the command was
    started with.
    """
    session.arrived = True
    wanted = read(st.query_params.to_dict())
    if wanted.lesson:
        session.learning.large = wanted.large
        lesson_actions.open_lesson(wanted.lesson, wanted.input_set)
    elif model := wanted.model or LAUNCH.link:
        try:
            if isinstance(wanted.backward, Unreadable):
                raise InputError(wanted.backward.expected)
            came = with_room(partial(_opened, model))
            with_room(partial(models.show_model, came, wanted.input_set))
            if wanted.backward is not None:
                return gradients.begin(
                    session, came, wanted.backward, partial(_walked_back, session, wanted)
                )
        except EngineError as error:
            session.message = Message(str(error))
    _put_back_when_prepared(session, wanted)


def _walked_back(session: UserSession, wanted: Link, made: Opened) -> None:
    """The gradient that a link asks for, in place of its model, whose picture was shown
    meanwhile.
    """
    with_room(lambda: models.show_model(made, wanted.input_set))
    _put_back_when_prepared(session, wanted)


def _put_back_when_prepared(session: UserSession, wanted: Link) -> None:
    if session.model.opened is not None and session.model.opened.pending:
        session.model.once_prepared = partial(_put_back, session, wanted)
    else:
        _put_back(session, wanted)


def _put_back(session: UserSession, wanted: Link) -> None:
    """The moment that a link says."""
    if session.model.opened is not None:
        if LAUNCH.overlay and not wanted.lesson and (wanted.model or LAUNCH.link) == LAUNCH.link:
            colouring.open_launched()
        if wanted.step:
            preparing.fit_now(session)
        if session.model.opened.saved is not None and not reopening.says_more(wanted):
            reopening.restore_saved(session)
        else:
            reopening.restore(session, wanted)
        _many(session, wanted)
        _say_other_set(session, wanted.input_set)


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
    """The model that the command was started with; a server's visitors do not learn where it
    lies.
    """
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


def _say_other_set(session: UserSession, wanted: str) -> None:
    """Sets that a user named are gone when the page is left."""
    if wanted and session.model.input_set != wanted and session.message is None:
        words = f"the link names the input set {shorten(repr(wanted), 60)}, which is not here: this run is on another"
        session.message = Message(words, "info")


def _many(session: UserSession, wanted: Link) -> None:
    if wanted.many:
        session.many.shown = True
        if wanted.runs:
            running_many.run_said(wanted.runs)


def follow(session: UserSession) -> None:
    """After a step back or forth in the browser's history: the model that the address names now,
    another screen of it, or the gallery.
    """
    wanted, opened = read(st.query_params.to_dict()), session.model.opened
    same = (
        opened is not None
        and bool(opened.link)
        and (wanted.model, wanted.backward) == (opened.link, opened.backward)
    )
    if same and not session.learning.lesson:
        session.many.shown = wanted.many
    elif st.query_params.get("model") or st.query_params.get("lesson"):
        arrive(session)
    else:
        models.close()
