"""The transport bar: buttons that move through the run, each with a key."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import moves, preparing
from loopscope_app.describe.controls import CONTROLS
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    debugger = session.run.debugger
    if debugger is None:
        if session.model.unprepared:
            st.button(
                "Check and run",
                key="transport_prepare",
                icon=":material/play_arrow:",
                on_click=preparing.again,
                type="primary",
            )
        return
    at_start, at_end = debugger.cursor.step == 0, debugger.cursor.kind == "finished"
    with st.container(key="transport", horizontal=True, vertical_alignment="center"):
        for control in CONTROLS:
            st.button(
                control.label or control.meaning,
                key=f"transport_{control.name}",
                icon=f":material/{control.icon}:",
                help=control.meaning,
                shortcut=control.shortcut,
                type="primary" if control.name == "step" else "secondary",
                disabled=at_start if control.back else at_end,
                on_click=moves.go,
                args=(control.move,),
            )
        st.button(
            "Pause" if session.canvas.playing else "Play",
            key="transport_play",
            icon=f":material/{'pause' if session.canvas.playing else 'play'}_circle:",
            help="Stop stepping"
            if session.canvas.playing
            else "Step automatically, at the speed set below the picture",
            shortcut="P",
            on_click=moves.play,
        )
