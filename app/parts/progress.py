"""A long run: how far it is, and a button that stops it."""

from __future__ import annotations

import time

import streamlit as st

from app import actions, markup
from app.session import current
from app.wording import times

EVERY = 0.3
"""Seconds between two pictures."""


@st.fragment(run_every=EVERY)
def show() -> None:
    """Until the run is done; then the whole page is drawn anew."""
    session = current()
    if actions.settled(session) or session.running is None:
        st.rerun()
    seconds = time.monotonic() - session.running.since
    with st.container(border=True, key="progress"):
        words, button = st.columns([5, 1], vertical_alignment="center")
        with words:
            done = session.running.debugger.machine.control.reached
            rate = f" · {done / seconds:,.0f} per second" if done and seconds > 1 else ""
            markup.show(f"<b>Running</b> &ensp;{times(done) if done else 'first iterations'}{rate} · {seconds:.0f} s")
        button.button("Stop", key="progress_stop", icon=":material/stop:", on_click=actions.stop, type="primary", shortcut="Escape")
