"""The transport over the canvas: buttons that move through the run. Each has a key."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import moves, preparing, what_if_changes
from loopscope_app.describe.controls import BY_NAME, MORE, TransportButton
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    """Draw the buttons; for a model whose check was stopped, the button that checks it."""
    debugger = session.run.debugger
    if debugger is None:
        if session.model.unprepared:
            st.button(
                "Check and run", key="transport_prepare", on_click=preparing.again, type="primary"
            )
        return
    at_start, at_end = debugger.cursor.step == 0, debugger.cursor.kind == "finished"

    def button(control: TransportButton) -> None:
        st.button(
            control.label or control.meaning,
            key=f"transport_{control.name}",
            icon=f":material/{control.icon}:" if control.icon else None,
            help=control.meaning,
            shortcut=control.shortcut,
            type="primary" if control.name == "step" else "tertiary",
            disabled=at_start if control.back else at_end,
            on_click=moves.go,
            args=(control.move,),
        )

    with st.container(key="transport", horizontal=True, vertical_alignment="center"):
        for name in ("restart", "back", "step", "next", "run"):
            button(BY_NAME[name])
        st.button(
            "Pause" if session.canvas.playing else "Play",
            key="transport_play",
            icon=f":material/{'pause' if session.canvas.playing else 'play_arrow'}:",
            type="tertiary",
            help="Stop stepping"
            if session.canvas.playing
            else "Step automatically, at the speed set in the strip",
            shortcut="P",
            on_click=moves.play,
        )
        # Not drawn: the editor's own button cannot have a key.
        st.button(
            "What if",
            key="transport_what_if",
            shortcut="W",
            on_click=what_if_changes.open_editor,
        )
        with st.popover("More moves", key="transport_more", type="tertiary", help="More moves"):
            for name in MORE:
                button(BY_NAME[name])
