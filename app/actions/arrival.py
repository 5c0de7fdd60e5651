"""Coming to the page: by a link, by the command, or by a step in the browser's history."""

from __future__ import annotations

import streamlit as st

from app.actions import changing, models, moves, pausing, selection, teaching, unrolled_loops
from app.actions.memory_budget import with_room
from app.links.codec import SAMPLE, Link, read
from app.state import looks
from app.state.launch import LAUNCH, must_be_local
from app.state.open_model import Opened, open_path, open_sample, with_inputs
from app.state.user_session import Message, Session, widget
from engine.errors import EngineError, shorten
from engine.ir import ROOT


def arrive(session: Session) -> None:
    """On the first visit: what the page's address asks for, else the model that the command was started with."""
    session.arrived = True
    wanted = read(st.query_params.to_dict())
    if wanted.lesson:
        session.learning.large = wanted.large
        teaching.open_lesson(wanted.lesson, wanted.input_set)
    elif model := wanted.model or LAUNCH.model:
        try:
            with_room(lambda: models.show_model(_opened(model), wanted.input_set))
        except EngineError as error:
            session.message = Message(str(error))
    if session.model.opened is not None:
        if wanted.changes:
            changing.restore(session, wanted.changes)
        _restore(session, wanted)
        looks.choose(wanted.looks)
        if session.run.changes and widget(looks.LENS.key) == "Compare":
            changing.show_outcome(session)
        session.run.asked = wanted.question
        _say_other_set(session, wanted.input_set)


def _opened(link: str) -> Opened:
    if link.startswith(SAMPLE):
        return open_sample(link.removeprefix(SAMPLE))
    if link == LAUNCH.model:
        opened = open_path(link)
        return with_inputs(opened, LAUNCH.inputs) if LAUNCH.inputs else opened
    must_be_local()
    return open_path(link)


def _say_other_set(session: Session, wanted: str) -> None:
    """Sets that a user named are gone when the page is left."""
    if wanted and session.model.input_set != wanted and session.message is None:
        words = f"the link names the input set {shorten(repr(wanted), 60)}, which is not here: this run is on another"
        session.message = Message(words, "info")


def _restore(session: Session, wanted: Link) -> None:
    if wanted.body and wanted.body != ROOT:
        selection.open_body(wanted.body)
    if wanted.step:
        moves.seek(int(wanted.step) if wanted.step.isdecimal() and len(wanted.step) < 16 else wanted.step)
    if not session.learning.lesson:  # in a lesson a breakpoint would hide what is to be predicted, and a run would show the answer
        pausing.restore(session, wanted.breakpoints, wanted.watches)
        if wanted.step:
            moves.run_on()
    if wanted.node:
        selection.select(wanted.node)
    if wanted.unrolled:
        unrolled_loops.restore(session, wanted.unrolled)


def follow(session: Session) -> None:
    """After a step back or forth in the browser's history: the model that the address names now, or the gallery."""
    if st.query_params.get("model") or st.query_params.get("lesson"):
        arrive(session)
    else:
        models.close()
