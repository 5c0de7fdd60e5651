"""What one user looks at: one typed object, and the only door to Streamlit's session state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal
from weakref import WeakSet

import numpy as np
import streamlit as st
from streamlit.runtime.app_session import AppSession

import engine
from app.state.background_run import Onward, Running
from app.state.lesson_progress import Learning
from app.state.open_model import Opened
from app.state.uploads import Uploads
from engine.check.diagnostic import EVERYBODY, Runtime
from engine.ir.address import ROOT
from engine.peers import Report
from engine.view.folding import VISIBLE_NODES, Folding
from engine.view.graph import GraphView
from engine.view.overlay import Overlay
from engine.view.tracks import Track

_KEY = "loopscope"
PATIENCE = 0.25
"""Seconds that a click waits for a run before the screen shows its progress instead."""


@dataclass(slots=True)
class Message:
    """A sentence that the next picture of the screen shows once."""

    text: str
    kind: Literal["error", "info"] = "error"


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Two runs of one model side by side; neither is the one that the user steps through."""

    name: str
    """Input set of the other run; empty: the inputs before the present ones; ``UNCHANGED``: these inputs, without what was set by hand."""
    one: engine.Debugger
    other: engine.Debugger


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run was when it was last looked at."""

    run: str
    """Its name, which differs between runs."""
    step: int
    steps: int
    over: bool
    tracks: tuple[Track, ...]


@dataclass(slots=True, eq=False, weakref_slot=True)
class Session:
    """Written by ``app.actions`` and, on arrival, by a link; the parts of a screen read it."""

    arrived: bool = False
    """The page's address has been looked at."""
    opened: Opened | None = None
    checked_for: frozenset[Runtime] = EVERYBODY
    """The runtimes of which Problems tells what is only about them."""
    input_set: str = ""
    """Name of the set that is in use; empty when its values were edited."""
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    onward: Onward | None = None
    """A run that a link has reopened goes on to its end, as long as nobody looks at it."""
    stepped: engine.Debugger | None = None
    """The run that is stepped through; who looks at it or moves it takes it from ``debugger``."""
    changes: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Values that are set by hand in the debugger's run, by address."""
    original: engine.Debugger | None = None
    """The run without them."""
    running: Running | None = None
    selected: str = ""
    """Address that the inspector is pinned to, static but for iterations that it is pinned to as well; empty: it follows the cursor."""
    root: str = ROOT
    """Static address of the graph that the canvas shows."""
    folding: Folding = field(default_factory=Folding)
    pictured: tuple[GraphView, Overlay] | None = None
    """The last picture of a moment: it stays while a long run is under way."""
    standing: Standing | None = None
    followed: int = -1
    """Step at which the windows of unrolled loops were last moved to the cursor."""
    ahead: int | None = None
    """First step that the canvas wants to have sent ahead; None when it asks for nothing."""
    scout: engine.Debugger | None = None
    """Runs ahead of the debugger, so that the canvas can be told what comes without the user being told."""
    reported: int = 0
    """Number of the last report of the canvas on where it has come to by itself."""
    picked: int = 0
    """The choice in the finder, by number, that was heard last."""
    moved: int = 0
    """Number of the last move by key or button that was made."""
    acted: int = 0
    """Number of the last act on the canvas that was heard."""
    batch: dict[str, object] | None = None
    """What was sent ahead last."""
    boxes: int = VISIBLE_NODES
    """At most about so many boxes are drawn on the canvas."""
    previews: dict[str, str] = field(default_factory=dict[str, str])
    """Texts on wires by concrete address; a run's values never change."""
    playing: bool = False
    """The canvas steps by itself, as far as it has told."""
    plays: int = 0
    """How often it was asked to begin or to end that."""
    panels_gone: bool = False
    """A long run has taken the panels around the picture off the screen."""
    message: Message | None = None
    uploads: Uploads = field(default_factory=Uploads)
    before: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Inputs of the run before this one."""
    compared: Compared | None = None
    truth: Report | None = None
    """The same run in the runtime of its model, where somebody has asked for it."""
    asked: str = ""
    """The last question to the trace."""
    draft: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Inputs as the user is editing them."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """What is wrong with what stands in a field of an input, by its name: until it is mended there is nothing to run."""
    learning: Learning = field(default_factory=Learning)
    generation: int = 0
    """Part of the keys of widgets that must forget what they showed when another model or input set comes."""
    gave_up: bool = False
    """The run had to give up its values, and its user does not know yet."""
    touched: float = field(default_factory=time.monotonic)
    """When its page was last drawn, or its user last did something; in seconds of the clock."""
    touching: Lock = field(default_factory=Lock)
    """Held while that is noted, and while another thread takes values from a session that nobody touches."""

    @property
    def debugger(self) -> engine.Debugger | None:
        """To look at or to move: what goes on by itself halts for it."""
        if self.onward is not None:
            self.onward.halt()
        return self.stepped

    @debugger.setter
    def debugger(self, debugger: engine.Debugger | None) -> None:
        if self.onward is not None:
            self.onward.halt()
        self.onward, self.stepped = None, debugger

    @property
    def at_rest(self) -> engine.Debugger | None:
        """The debugger to look at; None while a long run has it under way."""
        return self.debugger if self.running is None else None

    @property
    def is_computing(self) -> bool:
        """Whether a run is under way in the background."""
        return self.running is not None or (self.onward is not None and not self.onward.over)


_sessions: WeakSet[Session] = WeakSet()
_beginning = Lock()


def current() -> Session:
    """This user's session."""
    if _KEY not in st.session_state:
        with _beginning:
            st.session_state[_KEY] = begun = Session()
            _sessions.add(begun)
    session: Session = st.session_state[_KEY]
    with session.touching:
        session.touched = time.monotonic()
    return session


def every() -> tuple[Session, ...]:
    """The sessions of all users."""
    with _beginning:
        return tuple(_sessions)


def end(ended: AppSession) -> None:
    """Lets go of everything that the session of a closed page holds; what it has under way in the background is stopped."""
    state = ended.session_state
    session = state.filtered_state.get(_KEY)
    state.clear()
    if isinstance(session, Session):
        with _beginning:
            _sessions.discard(session)
        if session.running is not None:
            session.running.stop()
        if session.onward is not None:
            session.onward.debugger.stop()
        session.stepped = session.original = session.scout = session.compared = session.running = session.onward = None


def widget(key: str) -> Any:
    """What a widget holds; None when it is not on the screen."""
    return st.session_state.get(key)


def place(key: str, value: object) -> None:
    """Sets what a widget will show; to be called before it is drawn."""
    st.session_state[key] = value


def keep(*keys: str) -> None:
    """Lets widgets that are not drawn this time show later what they held: Streamlit would forget it."""
    for key in keys:
        if st.session_state.get(key) is not None:
            st.session_state[key] = st.session_state[key]
