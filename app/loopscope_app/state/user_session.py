"""What one user looks at: one typed object, and the only door to Streamlit's session state."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal
from weakref import WeakSet

import streamlit as st
from streamlit.runtime.app_session import AppSession

from loopscope_app.state.canvas_view import CanvasView
from loopscope_app.state.lesson_progress import Learning
from loopscope_app.state.many_runs import ManyRuns
from loopscope_app.state.model_in_use import ModelInUse
from loopscope_app.state.run_in_view import RunInView

_KEY = "loopscope"
PATIENCE = 0.25
"""Seconds that a click waits for a run before the screen shows its progress instead."""


@dataclass(slots=True)
class Message:
    """A sentence that the next picture of the screen shows once."""

    text: str
    kind: Literal["error", "info"] = "error"


@dataclass(slots=True, eq=False, weakref_slot=True)
class UserSession:
    """Written by ``loopscope_app.actions`` and, on arrival, by a link; the parts of a screen
    read it.
    """

    model: ModelInUse = field(default_factory=ModelInUse)
    run: RunInView = field(default_factory=RunInView)
    canvas: CanvasView = field(default_factory=CanvasView)
    learning: Learning = field(default_factory=Learning)
    many: ManyRuns = field(default_factory=ManyRuns)
    arrived: bool = False
    """The page's address has been looked at."""
    message: Message | None = None
    touched: float = field(default_factory=time.monotonic)
    """When its page was last drawn, or its user last did something; in seconds of the clock."""
    touching: Lock = field(default_factory=Lock)
    """Held while the time of use is noted, and while another thread frees the values of an
    unused session.
    """


_sessions: WeakSet[UserSession] = WeakSet()
_beginning = Lock()


def current() -> UserSession:
    """This user's session."""
    if _KEY not in st.session_state:
        with _beginning:
            st.session_state[_KEY] = begun = UserSession()
            _sessions.add(begun)
    session: UserSession = st.session_state[_KEY]
    with session.touching:
        session.touched = time.monotonic()
    return session


def every() -> tuple[UserSession, ...]:
    """The sessions of all users."""
    with _beginning:
        return tuple(_sessions)


def end(ended: AppSession) -> None:
    """Lets go of everything that the session of a closed page holds; what it has under way in
    the background is stopped.
    """
    state = ended.session_state
    session = state.filtered_state.get(_KEY)
    state.clear()
    if isinstance(session, UserSession):
        with _beginning:
            _sessions.discard(session)
        if session.run.running is not None:
            session.run.running.stop()
        if session.run.onward is not None:
            session.run.onward.debugger.stop()
        session.many.forget()
        session.run = RunInView()


def widget(key: str) -> Any:
    """What a widget holds; None when it is not on the screen."""
    return st.session_state.get(key)


def place(key: str, value: object) -> None:
    """Sets what a widget will show; to be called before it is drawn."""
    st.session_state[key] = value


def keep(*keys: str) -> None:
    """Lets widgets that are not drawn this time show later what they held: Streamlit would
    forget it.
    """
    for key in keys:
        if st.session_state.get(key) is not None:
            st.session_state[key] = st.session_state[key]
