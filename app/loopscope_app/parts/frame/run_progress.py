"""Long runs: their progress, a stop button, and runs that continue in the background."""

from __future__ import annotations

import time

import streamlit as st

from loopscope_app.actions import moves, preparing
from loopscope_app.describe.wording import times
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_run import Comparing, Differentiating, Preparing
from loopscope_app.state.user_session import UserSession, current

EVERY = 0.3
"""Seconds between two updates."""


@st.fragment(run_every=EVERY)
def show() -> None:
    """Show the progress until the run ends, then draw the whole page again."""
    session = current()
    if moves.settled(session) or session.run.running is None:
        st.rerun()
    seconds = time.monotonic() - session.run.running.since
    with st.container(key="progress", horizontal=True, vertical_alignment="center"):
        st.button(
            "Stop",
            key="progress_stop",
            icon=":material/stop:",
            on_click=moves.stop,
            type="primary",
            shortcut="Escape",
        )
        if isinstance(session.run.running, Preparing | Differentiating):
            markup.show(f"<b>{markup.text(session.run.running.phase, 40)}</b> · {seconds:.0f} s")
            return
        if (
            isinstance(session.run.running, Comparing)
            and session.run.running.debuggers
            and session.run.running.is_after
        ):
            words = f"<b>{session.run.running.doing}</b> &ensp;{session.run.running.after}"
            markup.show(f"{words} · {seconds:.0f} s")
            return
        done = session.run.running.iterations
        rate = f" · {done / seconds:,.0f} per second" if done and seconds > 1 else ""
        progress_text = (
            times(done) if done else "first iterations" if session.run.running.debuggers else ""
        )
        markup.show(
            f"<b>{session.run.running.doing}</b> &ensp;{progress_text}{rate} · {seconds:.0f} s"
        )


def onward(session: UserSession) -> None:
    """Show the run that continues in the background, if there is one."""
    if session.run.onward is not None and not session.run.onward.over:
        _onward()


@st.fragment(run_every=EVERY)
def _onward() -> None:
    """Show the progress until the run ends, then draw the whole page again."""
    going = current().run.onward
    if going is not None:
        going.go_on()
    if going is None or going.over:
        st.rerun()
    markup.show(markup.chip(f"running on · {times(going.debugger.machine.control.reached)}"))


def fitting(session: UserSession) -> None:
    """Show the search for inputs that fit, if there is one."""
    if session.run.fitting is not None and not session.run.fitting.over:
        _fitting()


@st.fragment(run_every=EVERY)
def _fitting() -> None:
    """Show the search until it ends, then draw the whole page again with the inputs that it
    found.
    """
    session = current()
    if preparing.look_at_fit(session) or session.run.fitting is None:
        st.rerun()
    with st.container(key="fitting", horizontal=True, vertical_alignment="center"):
        markup.show(
            markup.chip(f"looking for inputs that fit · length {session.run.fitting.trying}")
        )
        st.button(
            "Stop",
            key="fitting_stop",
            icon=":material/stop:",
            on_click=preparing.stop_fitting,
            type="tertiary",
        )
