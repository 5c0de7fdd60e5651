"""Breakpoints and watches: set, switched, removed, and set again from a link."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import loopscope
from loopscope.debug import BreakpointKind, Pause
from loopscope.errors import EngineError, InputError
from loopscope.view import GraphView
from loopscope_app.actions import report_errors
from loopscope_app.describe import breakpoint_dots, typed
from loopscope_app.links.codec import MOST, Unreadable
from loopscope_app.state.user_session import Message, UserSession, current, widget


@report_errors.afresh
def add_breakpoint(pattern: str, condition: str = "", kind: BreakpointKind = "address") -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.add(
            typed.place(session.run.debugger.model, pattern), condition, kind
        )
        _pauses_elsewhere(session)


@report_errors.afresh
def toggle_breakpoint(kind: BreakpointKind) -> None:
    """Set a breakpoint of a kind that stops everywhere, or remove it if it is set."""
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.toggle(kind)
        _pauses_elsewhere(session)


@report_errors.afresh
def remove_breakpoint(number: int) -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.remove(number)
        _pauses_elsewhere(session)


@report_errors.afresh
def switch_breakpoint(number: int, key: str) -> None:
    """On or off, as a widget holds it."""
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.switch(number, bool(widget(key)))
        _pauses_elsewhere(session)


@report_errors.afresh
def switch_at(view: GraphView, address: str) -> None:
    """Those whose dot a box of the picture has: off when any of them pauses the run, else on."""
    session = current()
    if session.run.debugger:
        breakpoint_dots.switch_at(session.run.debugger, view, address)
        _pauses_elsewhere(session)


def _pauses_elsewhere(session: UserSession) -> None:
    """Discards the steps that were sent ahead to be played: they pause where the old breakpoints
    were.
    """
    session.canvas.playing, session.canvas.prefetch_from, session.canvas.prefetched = (
        False,
        None,
        None,
    )


@report_errors.afresh
def add_watch(expression: str) -> None:
    session = current()
    if session.run.debugger and expression.strip():
        session.run.debugger.watches.add(typed.expression(session.run.debugger.model, expression))


@report_errors.afresh
def remove_watch(number: int) -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.watches.remove(number)


def restore(
    session: UserSession,
    pauses: Sequence[Pause | Unreadable],
    watches: Sequence[str | Unreadable],
    most: int = MOST,
) -> None:
    """The breakpoints and watches that the page's address asks for, as if they were typed; one
    sentence lists those that are refused.
    """
    debugger = session.run.debugger
    if debugger is None:
        return
    wanted = [
        *(partial(_set_breakpoint, debugger, one, most) for one in pauses),
        *(partial(_set_watch, debugger, one, most) for one in watches),
    ]
    refused: list[str] = []
    for put in wanted:
        try:
            put()
        except EngineError as error:
            refused.append(str(error))
    if refused:
        count = f"{len(refused)} of {len(wanted)}"
        session.message = Message(
            f"The link's breakpoints and watches are set without {count}: {refused[0]}", "info"
        )


def _set_breakpoint(debugger: loopscope.Debugger, one: Pause | Unreadable, most: int) -> None:
    if isinstance(one, Unreadable):
        raise InputError(one.expected)
    if len(debugger.breakpoints) == most:
        raise InputError(f"a link keeps at most {most} breakpoints")
    debugger.breakpoints.restore(one)


def _set_watch(debugger: loopscope.Debugger, one: str | Unreadable, most: int) -> None:
    if isinstance(one, Unreadable):
        raise InputError(one.expected)
    if len(debugger.watches.items()) == most:
        raise InputError(f"a link keeps at most {most} watches")
    debugger.watches.add(one)
