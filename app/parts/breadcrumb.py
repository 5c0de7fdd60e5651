"""Where the cursor stands: the nest of bodies with iteration numbers, what runs next, how far the run is."""

from __future__ import annotations

import streamlit as st

import engine
from app import actions, markup
from app.session import Session
from app.wording import name_of
from engine.ir.address import ROOT, decode
from engine.view.boxes import short_name

_STATES = {
    "paused": ("paused", "live"),
    "finished": ("finished", "good"),
    "failed": ("failed", "bad"),
    "limit": ("limit reached", "warn"),
    "endless": ("never ends", "warn"),
}


def show(session: Session) -> None:
    debugger = session.debugger
    if debugger is None:
        return
    cursor = debugger.cursor
    crumbs = ['<span class="name">main</span>']
    for frame in debugger.frames()[1:]:
        owner, _, body = frame.address.rpartition("/")
        name = decode(owner.rpartition("/")[2].partition("[")[0])
        where = body if frame.iteration is None else f"iteration {frame.iteration + 1:,}{_of(frame.bound)}"
        crumbs.append(f'<span class="name">{markup.text(name, 40)}</span> {markup.chip(where, "live")}')
    at_frontier = cursor.step == debugger.steps
    state, kind = _STATES["endless" if debugger.endless else debugger.state] if at_frontier else ("looking back", "")
    separator = ' <span class="sep">&rsaquo;</span> '
    steps = f"step {cursor.step:,}" + ("" if at_frontier else f" of {debugger.steps:,}")
    when = f'{markup.chip(state, kind)} <span class="quiet steps">{steps}</span>'
    markup.show(f'<div class="crumbs">{when} {separator.join(crumbs)} <span class="ahead">{_ahead(cursor)}</span></div>')


def way_out(session: Session) -> None:
    """While a body has the canvas for itself: the graphs around it, a click each."""
    if session.root == ROOT:
        return
    parts = session.root.split("/")
    with st.container(key="way_out", horizontal=True, vertical_alignment="center"):
        for end in range(1, len(parts) + 1, 2):
            words = decode(parts[end - 2]) + (f" · {parts[end - 1]}" if parts[end - 1] != "body" else "") if end > 1 else ROOT
            st.button(
                short_name(words).replace("_", "\\_"),
                key=f"way_out_{end}",
                disabled=end == len(parts),
                on_click=actions.open_body,
                args=("/".join(parts[:end]),),
            )


def _of(bound: int | None) -> str:
    return "" if bound is None else f" of {bound:,}"


def _ahead(cursor: engine.Cursor) -> str:
    """What happens with the next step."""
    match cursor.kind:
        case "finished":
            return '<span class="at">all outputs are there</span>'
        case "end":
            return '<span class="quiet">at the</span> <span class="at">end of this body</span>'
        case "enter" | "operation":
            words = "about to enter" if cursor.kind == "enter" else "next"
            return f'<span class="quiet">{words}</span> <span class="at">{markup.text(name_of(cursor.address), 60)}</span>'
