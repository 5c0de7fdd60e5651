"""The memory of all sessions: above a budget, the runs that were idle for the longest time lose
their values.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import loopscope
from loopscope.debug import model_bytes
from loopscope.errors import EngineError
from loopscope_app.actions import runs
from loopscope_app.describe.signatures import bindings
from loopscope_app.state.model_cache import MODEL_CACHE
from loopscope_app.state.process_memory import machine_bytes, return_freed_memory
from loopscope_app.state.user_session import Message, UserSession, every

GAVE_UP = (
    "The server needed the memory of this run for other users: the run is back at its beginning "
    "and computes its values again."
)
STOPPED = "This run was stopped because the server is out of memory: continue it in a minute."
NO_MEMORY = "the server is out of memory"
NO_ROOM = "There is not enough memory for this now: try again in a minute."
_SHARE = 0.5
"""Fraction of the machine's memory; the rest is for computations and other programs."""
LEFT_ALONE: tuple[float, ...] = (30.0, 3.0)
"""Seconds since the last use after which a run may lose its values, tried in this order: runs
unused for the longer time lose their values first. A run used more recently is never dropped.
"""
Result = TypeVar("Result")


def budget() -> int:
    """Return the number of bytes that all sessions of a server may use together."""
    return int(machine_bytes() * _SHARE)


def held_bytes(session: UserSession) -> int:
    """Return the memory of a session: its runs, and its uploads with their models and plans."""
    uploads = [
        opened
        for opened in (session.model.opened, session.model.other)
        if opened is not None and opened.uploaded_bytes
    ]
    uploaded = sum(opened.uploaded_bytes + model_bytes(opened.model) for opened in uploads)
    compared = (
        sum(array.nbytes for array in session.run.drifted.values.values())
        if session.run.drifted
        else 0
    )
    return (
        sum(run.held_bytes for run in _runs(session))
        + uploaded
        + compared
        + session.many.held_bytes
    )


def _runs(session: UserSession) -> set[loopscope.Debugger]:
    compared, drifted, running = session.run.compared, session.run.drifted, session.run.running
    debuggers = {
        session.run.stepped,
        session.run.original,
        session.run.scout,
        session.run.compared_run,
        *(running.debuggers if running else ()),
    }
    debuggers |= {compared.run, compared.other} if compared else set()
    debuggers |= {drifted.run, drifted.other} if drifted else set()
    return {run for run in debuggers if run is not None}


def keep_within(limit: int) -> bool:
    """Free memory until all sessions and their shared models use at most ``limit`` bytes.

    Return False if the remaining values are in use. In that case the run or sweep of the session
    with the most memory is stopped, and its user can continue it later.
    """
    limit = max(0, limit - MODEL_CACHE.held_bytes)
    sizes = _within(limit)
    if sum(sizes.values()) <= limit:
        return True
    computing = [
        session
        for session in sizes
        if session.run.running is not None or session.many.under_way is not None
    ]
    if computing:
        _stop(max(computing, key=lambda session: sizes[session]))
    return False


def make_room() -> None:
    """Drop the values of all runs that do not compute and were not used for 3 seconds."""
    _within(0)
    # Also if no run lost values: the memory of the failed work is free only now.
    return_freed_memory()


def _within(limit: int) -> dict[UserSession, int]:
    """Drop the values of runs until the limit is met, and return the memory of each session."""
    sizes = {session: held_bytes(session) for session in every()}
    before = sum(sizes.values())
    for seconds in LEFT_ALONE:
        for session in sorted(sizes, key=lambda session: session.touched):
            if sum(sizes.values()) > limit and _drop_values(session, seconds):
                sizes[session] = held_bytes(session)
    if sum(sizes.values()) < before:
        return_freed_memory()
    return sizes


def _drop_values(session: UserSession, idle_seconds: float) -> bool:
    """Drop the values of a session's run and return True; False if that is not possible.

    A run keeps its values while it computes, and for ``idle_seconds`` seconds after its user's last
    action.
    """
    with session.touching:
        if (
            session.run.is_computing
            or session.run.gave_up
            or time.monotonic() - session.touched < idle_seconds
        ):
            return False
        if session.many.under_way is None:
            session.many.forget_comparison()
            session.many.sweeping = None
        opened, stepped = session.model.opened, session.run.stepped
        # Values recorded without weights cannot be computed again.
        if opened is None or stepped is None or stepped.plan.lacks_weights:
            return False
        inputs = bindings(opened.model, session.model.inputs)
        new_runs = [
            runs.new_run(opened, inputs, changes=changes)
            for changes in ((session.run.changes, None) if session.run.changes else (None,))
        ]
        session.run.original = new_runs[1] if session.run.changes else None
        runs.put(session, new_runs[0])
        session.run.gave_up = True
        return True


def report_dropped_values(session: UserSession) -> None:
    """Report once that the values of the run were dropped."""
    if session.run.gave_up:
        session.run.gave_up, session.message = False, Message(GAVE_UP, "info")


def _stop(session: UserSession) -> None:
    running = session.run.running
    if running is not None:
        session.message = Message(STOPPED, "info")
        running.stop()
    sweeping = session.many.under_way
    if sweeping is not None:
        sweeping.end(NO_MEMORY)


def with_room(work: Callable[[], Result]) -> Result:
    """Return the result of some work that may be repeated.

    If memory is short, other sessions free theirs and the work is tried again. Raise
    ``EngineError`` if memory is still short.
    """
    try:
        return work()
    except MemoryError:
        pass  # the memory of the failed work is free only after this block
    make_room()
    try:
        return work()
    except MemoryError:
        raise EngineError(NO_ROOM) from None
