"""Actions that open and close models and choose their inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from loopscope.checks import own_runtimes
from loopscope.ir import ROOT
from loopscope.view import VISIBLE_NODES, default_folding
from loopscope_app.actions import reopening
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.actions.moves import stop_if_running
from loopscope_app.actions.report_errors import clear_and_show_errors, show_errors
from loopscope_app.actions.runs import start
from loopscope_app.describe.lessons import ALL_STEPS, FIRST_SAMPLE
from loopscope_app.state import open_model as opening
from loopscope_app.state import recent
from loopscope_app.state.launch import must_be_local
from loopscope_app.state.open_model import Opened
from loopscope_app.state.uploads import has_model
from loopscope_app.state.user_session import Message, UserSession, current, widget
from loopscope_app.state.view_choices import DRAWER, HIDDEN


@show_errors
def open_sample(name: str) -> None:
    with_room(lambda: show_model(opening.open_sample(name)))
    session = current()
    session.learning.first_run = name == FIRST_SAMPLE and session.learning.first_steps < ALL_STEPS


@clear_and_show_errors
def open_path(key: str) -> None:
    """Open the path in the text field.

    A server for others has no such field, and refuses a path that is sent nevertheless.
    """
    if widget(key):
        _open_file(str(widget(key)))


@clear_and_show_errors
def open_recent(path: str) -> None:
    """Open a file of the list of recent files."""
    _open_file(path)


def _open_file(path: str) -> None:
    must_be_local()
    opened = with_room(lambda: opening.open_path(path))
    with_room(lambda: show_model(opened))
    recent.remember(opened.link)
    reopening.restore_saved(current())


@show_errors
def forget_recent() -> None:
    must_be_local()
    recent.forget()


@clear_and_show_errors
def open_upload(key: str) -> None:
    """Open the uploaded files if a model is among them."""
    files = current().model.uploads.latest(widget(key) or [])
    if has_model(files):
        with_room(lambda: show_model(opening.open_upload(files)))
        reopening.restore_saved(current())
    elif files:
        current().message = Message(
            f"{files[0][0]} contains weights: add the .xml or .onnx file that they belong to",
            "info",
        )


@clear_and_show_errors
def open_text(key: str) -> None:
    """Open the XML in a text field."""
    text = str(widget(key) or "")
    if text.strip():
        with_room(lambda: show_model(opening.open_upload([("pasted.xml", text.encode())])))
    else:
        current().message = Message(
            "the text field is empty: paste a <layer> into it first", "info"
        )


@show_errors
def close() -> None:
    """Go back to the gallery."""
    session = current()
    stop_if_running(session)
    session.model.opened = session.run.debugger = session.run.running = None
    session.canvas.playing = False
    session.many.forget()
    session.view = ""
    session.model.inputs, session.canvas.selected, session.canvas.root = {}, "", ROOT
    st.query_params.clear()


def show_model(opened: Opened, input_set: str = "") -> None:
    """Show another model on its first input set, or on the named one."""
    session = current()
    stop_if_running(session)
    session.learning.lesson = ""
    session.many.forget()
    session.view = ""
    session.model.opened, session.run.debugger, session.run.running = opened, None, None
    session.canvas.selected, session.canvas.root, session.message = "", ROOT, None
    session.canvas.folding, session.canvas.boxes = default_folding(opened.model), VISIBLE_NODES
    session.model.checked_for, session.model.fates, session.model.other = (
        own_runtimes(opened.model),
        None,
        opening.open_sample(opened.trace.other) if opened.trace else None,
    )
    session.model.node_data = session.model.agreement = None
    session.model.unprepared, session.model.once_prepared = False, None
    session.model.input_set, session.model.inputs, session.run.fitting = input_set, {}, None
    show_problems(opened)
    if not opened.pending:
        choose_first_set(session)
        start(session)


def show_problems(opened: Opened) -> None:
    """Open the list of problems for a model that has errors or is empty; else close the drawer."""
    is_usable = opened.report.ok and (opened.pending or opened.model.graph.nodes)
    DRAWER.show(HIDDEN if is_usable else "Problems")


def choose_first_set(session: UserSession) -> None:
    """Choose the requested input set, or the first one."""
    opened = session.model.opened
    if opened is not None:
        session.model.input_set = (
            session.model.input_set
            if session.model.input_set in opened.sets
            else next(iter(opened.sets), "")
        )
        session.model.inputs = opened.sets.get(session.model.input_set, {})


@show_errors
def choose_set(key: str) -> None:
    """Choose the input set that a widget names."""
    choose_set_named(str(widget(key)))


@show_errors
def choose_set_named(name: str) -> None:
    """Choose another of the model's input sets."""
    session = current()
    if (
        session.model.opened
        and name in session.model.opened.sets
        and (name != session.model.input_set or session.run.changes)
    ):
        use_inputs(session.model.opened.sets[name], name)


def use_inputs(inputs: Mapping[str, np.ndarray], name: str = "") -> None:
    session = current()
    stop_if_running(session)
    session.model.before = session.model.inputs
    session.model.inputs, session.model.input_set, session.message = dict(inputs), name, None
    start(session)
