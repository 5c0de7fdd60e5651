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
from loopscope_app.state.freed_memory import give_back_freed_memory
from loopscope_app.state.launch import limits
from loopscope_app.state.memory_limit import machine_bytes
from loopscope_app.state.model_cache import KEPT
from loopscope_app.state.user_session import Message, UserSession, every

GAVE_UP = "The server needed the memory of this run for other users: the run is back at its beginning and computes its values again."
STOPPED = "This run was stopped because the server is out of memory: continue it in a minute."
NO_MEMORY = "the server is out of memory"
NO_ROOM = "There is not enough memory for this now: try again in a minute."
_SHARE = 0.5
"""Of the machine's memory: the rest is for what runs take while they compute, and for other
programs.
"""
LEFT_ALONE: tuple[float, ...] = (30.0, 3.0)
"""Seconds without use after which a run is idle. Idle runs lose their values first, then other
runs that do not compute.
"""
Made = TypeVar("Made")


def budget() -> int:
    """Bytes that all sessions of a server may hold together."""
    return int(machine_bytes() * _SHARE)


def held_bytes(session: UserSession) -> int:
    """Bytes of everything that a session's runs hold, and of what was uploaded in it: the files,
    and the models with their plans.
    """
    own = [
        one
        for one in (session.model.opened, session.model.other)
        if one is not None and one.uploaded_bytes
    ]
    uploaded = sum(one.uploaded_bytes + model_bytes(one.model) for one in own)
    given = (
        sum(array.nbytes for array in session.run.drifted.values.values())
        if session.run.drifted
        else 0
    )
    return (
        sum(run.held_bytes for run in _runs(session)) + uploaded + given + session.many.held_bytes
    )


def _runs(session: UserSession) -> set[loopscope.Debugger]:
    compared, drifted, running = session.run.compared, session.run.drifted, session.run.running
    found = {
        session.run.stepped,
        session.run.original,
        session.run.scout,
        *(running.debuggers if running else ()),
    }
    found |= {compared.one, compared.other} if compared else set()
    found |= {drifted.one, drifted.other} if drifted else set()
    return {run for run in found if run is not None}


def keep_within(most: int) -> bool:
    """Makes room until all sessions together, with the models that they share, hold so many bytes;
    False when the rest is in use.

    The largest run that computes just now is stopped then: its user can go on with it later.
    """
    most = max(0, most - KEPT.held_bytes)
    held = _within(most)
    if sum(held.values()) <= most:
        return True
    computing = [
        session
        for session in held
        if session.run.running is not None or session.many.under_way is not None
    ]
    if computing:
        _stop(max(computing, key=lambda one: held[one]))
    return False


def make_room() -> None:
    """Drops the values of all runs that do not compute."""
    _within(0)
    give_back_freed_memory()  # also where there was none: what failed is gone only now


def _within(most: int) -> dict[UserSession, int]:
    """The bytes that each session holds, after runs have given up their values, as far as that
    was needed and can be.
    """
    held = {session: held_bytes(session) for session in every()}
    before = sum(held.values())
    for seconds in LEFT_ALONE:
        for session in sorted(held, key=lambda one: one.touched):
            if sum(held.values()) > most and _give_up(session, seconds):
                held[session] = held_bytes(session)
    if sum(held.values()) < before:
        give_back_freed_memory()
    return held


def _give_up(session: UserSession, left_alone: float) -> bool:
    """Whether a session's run has given up its values: not one that computes, and only after so
    many seconds without anybody.
    """
    with session.touching:
        if (
            session.run.is_computing
            or session.run.gave_up
            or time.monotonic() - session.touched < left_alone
        ):
            return False
        if session.many.under_way is None:
            session.many.forget_comparison()
            session.many.sweeping = None
        opened, was = session.model.opened, session.run.stepped
        if (
            opened is None or was is None or was.plan.lacks_weights
        ):  # what was recorded of it cannot be computed again
            return False
        begun = [
            loopscope.Debugger(
                opened.model,
                bindings(opened.model, session.model.inputs),
                limits=limits(),
                changes=changes,
                seed=opened.seed,
            )
            for changes in ((session.run.changes, None) if session.run.changes else (None,))
        ]
        session.run.original = begun[1] if session.run.changes else None
        runs.put(session, begun[0])
        session.run.gave_up = True
        return True


def tell_who_gave_up(session: UserSession) -> None:
    """Tells a user, once, that their run has given up its values."""
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


def with_room(work: Callable[[], Made]) -> Made:
    """What some work gives that may be done twice: where memory is short, it is tried again once
    other sessions have made room.

    ``EngineError`` when that is not enough.
    """
    try:
        return work()
    except MemoryError:
        pass  # what failed is free again only here
    make_room()
    try:
        return work()
    except MemoryError:
        raise EngineError(NO_ROOM) from None
