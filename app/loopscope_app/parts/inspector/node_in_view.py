"""The node that the Node tab shows: the selected one, else what ran last."""

from __future__ import annotations

import loopscope
from loopscope.ir import Address
from loopscope.view import walked_back_now, without_iterations
from loopscope_app.describe.node_index import IndexedNode, places, with_output
from loopscope_app.state.user_session import UserSession, widget

BODIES = ("body", "then", "else")


def static_place(session: UserSession) -> str:
    """Return the selected place, else what ran last; at the begin and end of a body, what runs
    next.
    """
    if session.canvas.selected or session.run.debugger is None:
        return without_iterations(session.canvas.selected)
    cursor = session.run.debugger.cursor
    before, ahead = (
        Address.parse(address).static if address else ""
        for address in (cursor.previous, cursor.address)
    )
    entered = bool(before) and ahead.startswith(f"{before}/")
    for static in (ahead, before) if entered else (before, ahead):
        if static and static.rpartition("/")[2] not in BODIES:
            return static
    return (before or ahead).rpartition("/")[0]


def concrete_place(session: UserSession, place: IndexedNode) -> str | None:
    """Return the execution of a place that the canvas shows at the cursor; None before it ran."""
    if session.run.debugger is None:
        return None
    cursor = session.run.debugger.cursor
    if (
        not session.canvas.selected
        and cursor.previous
        and Address.parse(cursor.previous).static == place.address
    ):
        return str(cursor.previous)
    return session.run.debugger.resolve(
        walked_back_now(session.run.debugger, session.canvas.selected or place.address)
    )


def shown_value(session: UserSession) -> str:
    """Return the concrete address of the value that is shown, or an empty text."""
    place = (
        places(session.model.opened.model).get(static_place(session))
        if session.model.opened
        else None
    )
    concrete = concrete_place(session, place) if place is not None else None
    return (
        with_output(concrete, widget(output_key(place)) or 0)
        if place is not None and concrete
        else ""
    )


def output_key(place: IndexedNode) -> str:
    """Return the key under which the chosen output of a node is stored."""
    return f"inspector_output_{place.address}"


def open_graph(debugger: loopscope.Debugger | None, place: IndexedNode) -> str:
    """Return the concrete address of the graph around a place, as open at the cursor."""
    opened = debugger.frames() if debugger else ()
    return next((frame.address for frame in opened if frame.static == place.graph_address), "")
