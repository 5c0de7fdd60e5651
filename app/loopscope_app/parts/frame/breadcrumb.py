"""The place of the cursor: nested bodies with iteration numbers, the next operation, the number of
steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from loopscope.debug import Cursor, OpenGraph
from loopscope.ir import ROOT, decode, iteration_words
from loopscope.view import short_name
from loopscope_app.actions import selection
from loopscope_app.describe.wording import name_of
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession

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


def show(session: UserSession) -> None:
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
