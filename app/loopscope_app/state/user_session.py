"""The session of one user: one typed object, and the only access to Streamlit's session state.

Its parts are here, or in a module each: the view of the canvas, and the progress in the course.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal
from weakref import WeakSet

import streamlit as st
from streamlit.runtime.app_session import AppSession

from loopscope.ir import ROOT
from loopscope.view import VISIBLE_NODES, Folding, GraphView, Overlay
from loopscope_app.state.many_runs import ManyRuns
from loopscope_app.state.model_in_use import ModelInUse
from loopscope_app.state.run_in_view import RunInView


@dataclass(slots=True)
class CanvasView:
    """The canvas of a session."""

    selected: str = ""
    """Address that the inspector is pinned to, with its pinned iterations; empty if it follows the
    cursor.
    """
    root: str = ROOT
    """Static address of the drawn graph."""
    folding: Folding = field(default_factory=Folding)
    pictured: tuple[GraphView, Overlay] | None = None
    """Last picture of a moment, shown during a long run."""
    followed: int = -1
    """Step at which the windows of unrolled loops last moved to the cursor."""
    prefetch_from: int | None = None
    """First step that the canvas requests in advance; None without a request."""
    reported: int = 0
    """Number of the last report about playback."""
    picked: int = 0
    """Number of the last choice received from the finder."""
    moved: int = 0
    """Number of the last move that was made."""
    acted: int = 0
    """Number of the last event received from the canvas."""
    prefetched: dict[str, object] | None = None
    """Steps that were sent in advance."""
    boxes: int = VISIBLE_NODES
    """Approximate limit of the number of boxes."""
    previews: dict[str, str] = field(default_factory=dict[str, str])
    """Texts on wires by concrete address. A run's values never change."""
    playing: bool = False
    """True while the canvas plays, according to its last report."""
    plays: int = 0
    """Number of requests to start or stop playing."""


@dataclass(slots=True)
class Learning:
    """The course of a session. Only ``loopscope_app.actions.lesson_actions`` changes it."""

    lesson: str = ""
    """Name of the lesson on the screen; empty on other screens."""
    guesses: tuple[str, ...] = ()
    """Predictions about this run, one for each question; empty without predictions."""
    revealed: bool = False
    hint: str = ""
    """Reason why the predictions could not be checked."""
    done: set[str] = field(default_factory=set[str])
    """Names of the lessons with a checked prediction."""
    large: bool = False
    """True for text that is readable from the last row of a lecture hall."""
    first_run: bool = False
    """True while the card of the first steps is on the screen."""
    first_steps: int = 0
    """Number of first steps that were done in this session."""

    def restart(self) -> None:
        """Drop predictions and answers before another run."""
        self.guesses, self.revealed, self.hint = (), False, ""


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
    """The session of one user.

    ``loopscope_app.actions`` and, on arrival, a link change it; the parts of a screen read it.
    """

    model: ModelInUse = field(default_factory=ModelInUse)
    run: RunInView = field(default_factory=RunInView)
    canvas: CanvasView = field(default_factory=CanvasView)
    learning: Learning = field(default_factory=Learning)
    many: ManyRuns = field(default_factory=ManyRuns)
    view: str = ""
    """Word of the shown view, as in ``view_choices.VIEWS``; empty for the default."""
    arrived: bool = False
    """True once the page's address was read."""
    message: Message | None = None
    touched: float = field(default_factory=time.monotonic)
    """Time of the last drawing or action, by the monotonic clock."""
    touching: Lock = field(default_factory=Lock)
    """Lock for ``touched``, and for freeing the values of an unused session."""


_sessions: WeakSet[UserSession] = WeakSet()
_beginning = Lock()


def current() -> UserSession:
    """Return this user's session."""
    if _KEY not in st.session_state:
        with _beginning:
            st.session_state[_KEY] = created = UserSession()
            _sessions.add(created)
    session: UserSession = st.session_state[_KEY]
    with session.touching:
        session.touched = time.monotonic()
    return session


def every() -> tuple[UserSession, ...]:
    """Return the sessions of all users."""
    with _beginning:
        return tuple(_sessions)


def end(app_session: AppSession) -> None:
    """Free everything that the session of a closed page holds, and stop its background work."""
    state = app_session.session_state
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
    """Return the value of a widget; None if it is not on the screen."""
    return st.session_state.get(key)


def place(key: str, value: object) -> None:
    """Set the value of a widget before it is drawn."""
    st.session_state[key] = value


def keep(*keys: str) -> None:
    """Preserve the values of widgets that are not drawn this time; Streamlit would drop them."""
    for key in keys:
        if st.session_state.get(key) is not None:
            st.session_state[key] = st.session_state[key]
