"""The run at work: the canvas with place and transport on it, the strip below, the dock beside."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import streamlit as st

from loopscope.debug import Cursor, OpenGraph
from loopscope.ir import ROOT, decode, iteration_words
from loopscope.view import short_name
from loopscope_app.actions import moves, preparing, selection, what_if_changes
from loopscope_app.describe.controls import BY_NAME, MORE, TransportButton
from loopscope_app.describe.wording import name_of
from loopscope_app.parts.dock import iterations_tab
from loopscope_app.parts.frame import first_run, graph_canvas, notice, run_progress
from loopscope_app.parts.inspector import what_if
from loopscope_app.parts.run_views import whole_run
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_run import Preparing
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.user_session import UserSession
from loopscope_app.state.view_choices import HIDDEN, STRIP

HEAD_START = 0.02
"""Seconds that the browser has to paint the moment before the dock arrives. A key press is
answered in half the time.
"""


def show(session: UserSession, dock: Callable[[UserSession], None]) -> None:
    """Draw the stage. During a long run its progress replaces everything beside the canvas.

    ``dock`` draws the content of the dock. Each optional part has a container of its own: the
    browser shows the content of a container whose place another one takes until the run ends.
    """
    with st.container(key="canvas"):
        graph_canvas.show(session)
        corner = st.container(key="corner")
        controls = st.container(key="controls")
        messages = st.container(key="told")
    preparing.begin(session)
    beside = st.container(key="dock")
    strip, wide, card = st.container(), st.container(), st.container()
    if session.run.running is not None:
        with controls:
            run_progress.show()
        with beside:
            _announce_values(session)
        return
    time.sleep(HEAD_START)
    with corner:
        with st.container(key="place"):
            _show_place(session)
        way_out(session)
        what_if.show(session)
        onwards = st.container()
    with controls:
        _show_transport(session)
    with messages:
        notice.show(session)
    with beside:
        dock(session)
    with strip:
        _show_strip_lanes(session)
    with wide:
        iterations_tab.show_wide(session, loop_in_focus(session))
    with card:
        first_run.show(session)
    with onwards:
        run_progress.onward(session)
        run_progress.fitting(session)


def _announce_values(session: UserSession) -> None:
    """Say when values are shown, in place of the dock during a long run."""
    is_new = isinstance(session.run.running, Preparing)
    markup.show(
        "Values are shown when the model has been checked."
        if is_new
        else "Values are shown again when the run pauses.",
        "quiet",
    )


_STATES = {
    "paused": ("paused", "live"),
    "finished": ("finished", "good"),
    "failed": ("failed", "bad"),
    "limit": ("limit reached", "warn"),
    "endless": ("never ends", "warn"),
}

_SEPARATOR = ' <span class="sep">&rsaquo;</span> '
DEEP, OUTERMOST = 4, 2
"""A nest of more than DEEP open bodies is shortened to OUTERMOST of the outermost graphs and the
two innermost ones.
"""
LONGEST = 2000
"""Largest number of characters of the tooltip that shows the whole nest."""


def _show_place(session: UserSession) -> None:
    debugger = session.run.debugger
    if debugger is None:
        return
    cursor = debugger.cursor
    at_frontier = cursor.step == debugger.steps
    state, kind = (
        _STATES["endless" if debugger.endless else debugger.state]
        if at_frontier
        else ("earlier step", "")
    )
    steps = f"step {cursor.step:,}" + ("" if at_frontier else f" of {debugger.steps:,}")
    when = f'{markup.chip(state, kind)} <span class="quiet steps">{steps}</span>'
    next_step = _ahead(cursor)
    ahead = f'<span class="ahead">{next_step}</span>' if next_step else ""
    markup.show(f'<div class="crumbs">{when} {_nest(debugger.frames())} {ahead}</div>')


def _nest(frames: Sequence[OpenGraph]) -> str:
    """Return the open bodies as markup, outermost first. A tooltip shows the middle of a deep
    nest.
    """
    whole = [_words(frame) for frame in frames[1:]]
    tooltip = markup.text(" › ".join(f"{name} {where}" for name, where in whole), LONGEST)
    crumbs = ['<span class="name">main</span>']
    crumbs += [
        f'<span class="name">{markup.text(name, 40)}</span> {markup.chip(where, "live")}'
        for name, where in whole
    ]
    outer, inner = crumbs[:-1], crumbs[-1]
    if len(whole) > DEEP:
        outer[OUTERMOST:-1] = [
            f'<span class="quiet">&hellip; {len(outer) - OUTERMOST - 1:,} more</span>'
        ]
    around = (
        f'<span class="outer"><span>{_SEPARATOR.join(outer)}</span></span>{_SEPARATOR}'
        if outer
        else ""
    )
    kind = "nest shortened" if len(whole) > DEEP else "nest"
    return f'<span class="{kind}" title="{tooltip}">{around}{inner}</span>'


def _words(frame: OpenGraph) -> tuple[str, str]:
    """Return the name of the owner of a body, and its open branch or iteration."""
    owner, _, body = frame.address.rpartition("/")
    where = body if frame.iteration is None else iteration_words(frame.iteration, frame.bound)
    return decode(owner.rpartition("/")[2].partition("[")[0]), where


def way_out(session: UserSession) -> None:
    """Show links to the graphs around a body that fills the canvas."""
    if session.canvas.root == ROOT:
        return
    parts = session.canvas.root.split("/")
    with st.container(key="way_out", horizontal=True, vertical_alignment="center"):
        for end in range(1, len(parts) + 1, 2):
            words = (
                decode(parts[end - 2])
                + (f" · {parts[end - 1]}" if parts[end - 1] != "body" else "")
                if end > 1
                else ROOT
            )
            st.button(
                short_name(words).replace("_", "\\_"),
                key=f"way_out_{end}",
                disabled=end == len(parts),
                on_click=selection.open_body,
                args=("/".join(parts[:end]),),
            )


def _ahead(cursor: Cursor) -> str:
    """Return markup that says what the next step does."""
    match cursor.kind:
        case "finished":
            return ""
        case "end":
            return '<span class="quiet">at the</span> <span class="at">end of this body</span>'
        case "enter" | "operation":
            words = "about to enter" if cursor.kind == "enter" else "next"
            place = f'<span class="at">{markup.text(name_of(cursor.address), 60)}</span>'
            return f'<span class="quiet">{words}</span> {place}'


def _show_transport(session: UserSession) -> None:
    """Draw the buttons; for a model whose check was stopped, the button that checks it."""
    debugger = session.run.debugger
    if debugger is None:
        if session.model.unprepared:
            st.button(
                "Check and run", key="transport_prepare", on_click=preparing.again, type="primary"
            )
        return
    cursor = debugger.cursor
    has_failed = debugger.state == "failed" and cursor.step == debugger.steps
    at_start, at_end = cursor.step == 0, cursor.kind == "finished" or has_failed

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


def _show_strip_lanes(session: UserSession) -> None:
    """Draw the handle once a step was computed, and the lanes if they are open."""
    debugger = session.run.debugger
    if debugger is None or not debugger.steps:
        return
    shown = STRIP.shown()
    handle, lanes = st.container(), st.container()
    if shown == HIDDEN:
        with handle, st.container(key="strip_handle"):
            st.button(
                "Steps, matrix",
                key="strip_open",
                icon=":material/expand_less:",
                type="tertiary",
                on_click=STRIP.show,
                args=("Steps",),
                help="The whole run as lanes, and every value in every iteration",
            )
        return
    with lanes, st.container(key="strip_lanes"):
        with st.container(key="strip_head", horizontal=True, vertical_alignment="center"):
            for name in STRIP.options[1:]:
                st.button(
                    name,
                    key=f"strip_{name}",
                    type="secondary" if name == shown else "tertiary",
                    on_click=STRIP.show,
                    args=(name,),
                )
            bar = st.container()
            st.button(
                "Close the lanes",
                key="strip_close",
                icon=":material/expand_more:",
                type="tertiary",
                on_click=STRIP.show,
                args=(HIDDEN,),
                help="Close the lanes",
            )
        if shown == "Matrix":
            iterations_tab.show_matrix(session, loop_in_focus(session))
        else:
            whole_run.show(session, bar)
