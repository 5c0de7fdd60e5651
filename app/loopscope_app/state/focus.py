"""The node that the Node tab shows, and the loop or If in focus with its progress at the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import loopscope
from loopscope.debug import OpenGraph
from loopscope.ir import IF, ROOT, Address
from loopscope.timeline import ControlFlowRecord
from loopscope.view import walked_back_now, without_iterations
from loopscope_app.describe.node_index import IndexedNode, places, with_output
from loopscope_app.state.user_session import UserSession, widget


@dataclass(frozen=True, slots=True, eq=False)
class LoopInFocus:
    """One execution of a loop."""

    place: IndexedNode
    address: str
    """Concrete address, such as ``main/outer[1]/body/inner``."""
    iterations: int
    """Number of iterations that began so far."""
    current: int | None
    """Iteration number at the cursor; None if the cursor is outside of the loop."""
    record: ControlFlowRecord | None


def loop_in_focus(session: UserSession) -> LoopInFocus | None:
    """Return the loop in focus.

    That is the loop that is pinned or contains what is pinned, else the innermost loop around the
    cursor, else the last loop that ran.
    """
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return None
    by_address = places(opened.model)
    frames = {
        _owner(frame): frame for frame in debugger.frames()[1:] if frame.iteration is not None
    }
    address = (
        _pinned(session, debugger) or next(reversed(frames), "") or _latest(debugger, loops=True)
    )
    place = by_address.get(Address.parse(address).static) if address else None
    if place is None:
        return None
    record = debugger.record(address)
    frame = frames.get(address)
    iterations = record.iterations if record is not None and record.iterations is not None else 0
    current = frame.iteration if frame else None
    return LoopInFocus(
        place, address, max(iterations, (current or 0) + 1 if frame else 0), current, record
    )


def decided_in_focus(session: UserSession, loop: LoopInFocus | None) -> str | None:
    """Return the address of the execution whose reasons are shown.

    That is the pinned If, else the loop in focus, else the If that runs or ran last.
    """
    debugger = session.run.debugger
    if debugger is None:
        return None
    by_address = places(debugger.model)
    selected = session.canvas.selected
    pinned = by_address.get(without_iterations(selected)) if selected else None
    branched = debugger.resolve(selected) if pinned is not None and pinned.node.type == IF else None
    return branched or (
        loop.address if loop else _running_if(debugger) or _latest(debugger, loops=False) or None
    )


def _running_if(debugger: loopscope.Debugger) -> str:
    """Return the address of the innermost If around the cursor, or an empty text."""
    branches = (
        frame.address
        for frame in reversed(debugger.frames())
        if frame.address.endswith(("/then", "/else"))
    )
    return next(branches, "").rpartition("/")[0]


def _owner(frame: OpenGraph) -> str:
    """Return the concrete address of the loop that a frame of its body belongs to.

    >>> _owner(OpenGraph("main/a[1]/body/b[2]/body", "main/a/body/b/body", 2, None))
    'main/a[1]/body/b'
    """
    return frame.address.rpartition("/")[0].rpartition("[")[0]


def _pinned(session: UserSession, debugger: loopscope.Debugger) -> str:
    """Return the concrete address of the innermost loop at or around the pinned place, if it
    ran.
    """
    by_address = places(session.model.opened.model) if session.model.opened else {}
    path = session.canvas.selected
    while path:
        place = by_address.get(without_iterations(path))
        if place is not None and place.node.is_loop:
            return debugger.resolve(path) or ""
        path = path.rpartition("/")[0]
    return ""


def _latest(debugger: loopscope.Debugger, loops: bool) -> str:
    """Return the last loop or If before the cursor that ran in the main graph or in a function that
    it calls.
    """
    by_address = places(debugger.model)
    resolve = debugger.resolver()
    main = debugger.plan.main
    order = {main.instructions[number].label: number for number in main.regions}
    candidates = sorted(
        (
            node
            for node in reversed([*by_address.values()])
            if (node.node.is_loop if loops else node.node.type == IF)
        ),
        key=lambda node: order.get(Address.parse(node.address).segments[1].label, -1),
        reverse=True,
    )
    return next(
        (
            node.address
            for node in candidates
            if _runs_once(by_address, node) and resolve(node.address)
        ),
        "",
    )


def _runs_once(by_address: Mapping[str, IndexedNode], place: IndexedNode) -> bool:
    """Return True if a node is inside no loop and no branch."""
    while place.graph_address != ROOT:
        place = by_address[place.graph_address.rpartition("/")[0]]
        if not place.node.is_function:
            return False
    return True


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
