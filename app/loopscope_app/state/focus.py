"""Which loop or If the user is looking at, and how far it has got at the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import loopscope
from loopscope.debug import OpenGraph
from loopscope.ir import IF, ROOT, Address
from loopscope.timeline import ControlFlowRecord
from loopscope.view import without_iterations
from loopscope_app.describe.node_index import IndexedNode, places
from loopscope_app.state.user_session import UserSession


@dataclass(frozen=True, slots=True, eq=False)
class LoopInFocus:
    """One execution of a loop."""

    place: IndexedNode
    address: str
    """Concrete, such as ``main/outer[1]/body/inner``."""
    iterations: int
    """Iterations that have begun, in what has been run so far."""
    current: int | None
    """0-based iteration that the cursor is in; None when it is outside."""
    record: ControlFlowRecord | None


def loop_in_focus(session: UserSession) -> LoopInFocus | None:
    """The loop that is pinned or holds what is pinned, else the innermost round the cursor, else
    the last that ran.
    """
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return None
    at = places(opened.model)
    frames = {
        _owner(frame): frame for frame in debugger.frames()[1:] if frame.iteration is not None
    }
    address = (
        _pinned(session, debugger) or next(reversed(frames), "") or _latest(debugger, loops=True)
    )
    place = at.get(Address.parse(address).static) if address else None
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
    """The execution whose reasons are shown: the pinned If, else the loop in focus, else the If
    that runs or ran last.
    """
    debugger = session.run.debugger
    if debugger is None:
        return None
    at = places(debugger.model)
    selected = session.canvas.selected
    pinned = at.get(without_iterations(selected)) if selected else None
    branched = debugger.resolve(selected) if pinned is not None and pinned.node.type == IF else None
    return branched or (
        loop.address if loop else _running_if(debugger) or _latest(debugger, loops=False) or None
    )


def _running_if(debugger: loopscope.Debugger) -> str:
    """The innermost If that the cursor is in; empty when it is in none."""
    branches = (
        frame.address
        for frame in reversed(debugger.frames())
        if frame.address.endswith(("/then", "/else"))
    )
    return next(branches, "").rpartition("/")[0]


def _owner(frame: OpenGraph) -> str:
    """The concrete address of the loop whose body a frame is: without its own iteration number.

    >>> _owner(OpenGraph("main/a[1]/body/b[2]/body", "main/a/body/b/body", 2, None))
    'main/a[1]/body/b'
    """
    return frame.address.rpartition("/")[0].rpartition("[")[0]


def _pinned(session: UserSession, debugger: loopscope.Debugger) -> str:
    """The concrete address of the innermost loop at or round the pinned place, where it has run."""
    at = places(session.model.opened.model) if session.model.opened else {}
    path = session.canvas.selected
    while path:
        place = at.get(without_iterations(path))
        if place is not None and place.node.is_loop:
            return debugger.resolve(path) or ""
        path = path.rpartition("/")[0]
    return ""


def _latest(debugger: loopscope.Debugger, loops: bool) -> str:
    """The last loop, or If, of the outermost graph and of what it calls that ran before the
    cursor.
    """
    at = places(debugger.model)
    resolve = debugger.resolver()
    wanted = (
        one
        for one in reversed([*at.values()])
        if (one.node.is_loop if loops else one.node.type == IF)
    )
    return next((one.address for one in wanted if _runs_once(at, one) and resolve(one.address)), "")


def _runs_once(at: Mapping[str, IndexedNode], place: IndexedNode) -> bool:
    """Whether it is in no loop and no branch."""
    while place.graph_address != ROOT:
        place = at[place.graph_address.rpartition("/")[0]]
        if not place.node.is_function:
            return False
    return True
