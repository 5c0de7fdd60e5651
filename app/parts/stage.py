"""The run at work: transport and place, canvas, and below it what is known of the run."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from app.parts import breadcrumb, graph, lenses, notice, transport, what_if
from app.session import Session

HEAD_START = 0.02
"""Seconds in which the browser paints the moment before the panels reach it: so the picture answers a key in half the time."""


def show(session: Session, beside: Callable[[Session], None] | None = None) -> None:
    """``beside``: what stands at the right of the canvas, if anything does."""
    controls, told = st.container(key="controls"), st.container(key="told")
    picture, side = st.columns([1.75, 1], gap="small") if beside else (st.container(), None)
    with picture, st.container(key="canvas"):
        graph.show(session)
        way_out = st.container(key="way_out_slot")
    time.sleep(HEAD_START)
    with controls:
        transport.show(session)
        with st.container(key="place"):
            breadcrumb.show(session)
    with way_out:
        breadcrumb.way_out(session)
    with told:
        what_if.show(session)
        notice.show(session)
    with st.container(key="loops"):
        lenses.show(session)
    if side is not None and beside is not None:
        with side, st.container(key="side"):
            beside(session)
