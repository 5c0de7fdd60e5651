"""The run at work: transport, place, canvas, and below it what is known of the run."""

from __future__ import annotations

import time

import streamlit as st

from app.parts import breadcrumb, graph, lenses, notice, transport
from app.session import Session

HEAD_START = 0.02
"""Seconds in which the browser paints the moment before the panels reach it: so the picture answers a key in half the time."""


def show(session: Session) -> None:
    controls, place = st.container(key="controls"), st.container(key="place")
    with st.container(key="canvas"):
        graph.show(session)
    time.sleep(HEAD_START)
    with controls:
        transport.show(session)
    with place:
        notice.show(session)
        breadcrumb.show(session)
    with st.container(key="loops"):
        lenses.show(session)
