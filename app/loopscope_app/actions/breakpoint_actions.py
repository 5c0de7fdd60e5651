"""Actions that set, switch, remove and restore breakpoints and watches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import loopscope
from loopscope.debug import BreakpointKind, Pause
from loopscope.errors import EngineError, InputError
from loopscope.view import GraphView
from loopscope_app.actions import report_errors
from loopscope_app.describe import canvas_boxes, input_parsing
from loopscope_app.links.codec import MOST, Unreadable
from loopscope_app.state.user_session import Message, UserSession, current, widget


@report_errors.clear_and_show_errors
def add_breakpoint(pattern: str, condition: str = "", kind: BreakpointKind = "address") -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.add(
            input_parsing.typed_place(session.run.debugger.model, pattern), condition, kind
        )
        _discard_prefetched(session)


@report_errors.clear_and_show_errors
def toggle_breakpoint(kind: BreakpointKind) -> None:
    """Set a breakpoint of a kind that stops everywhere, or remove it if it is set."""
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.toggle(kind)
        _discard_prefetched(session)


@report_errors.clear_and_show_errors
def remove_breakpoint(number: int) -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.remove(number)
        _discard_prefetched(session)


@report_errors.clear_and_show_errors
def switch_breakpoint(number: int, key: str) -> None:
    """Switch a breakpoint on or off, as the widget with this key shows."""
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.switch(number, bool(widget(key)))
        _discard_prefetched(session)


@report_errors.clear_and_show_errors
def switch_at(view: GraphView, address: str) -> None:
    """Switch the breakpoints of a box's dot: off if any of them pauses the run, else on."""
    session = current()
    if session.run.debugger:
        canvas_boxes.switch_at(session.run.debugger, view, address)
        _discard_prefetched(session)


def _discard_prefetched(session: UserSession) -> None:
    """Discard prefetched steps, because they pause at the old breakpoints."""
    session.canvas.playing = False
    session.canvas.prefetch_from = None
    session.canvas.prefetched = None


@report_errors.clear_and_show_errors
def add_watch(expression: str) -> None:
    session = current()
    if session.run.debugger and expression.strip():
        session.run.debugger.watches.add(
            input_parsing.typed_expression(session.run.debugger.model, expression)
        )


@report_errors.clear_and_show_errors
def remove_watch(number: int) -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.watches.remove(number)


def restore(
    session: UserSession,
    pauses: Sequence[Pause | Unreadable],
    watches: Sequence[str | Unreadable],
    limit: int = MOST,
) -> None:
    """Set the breakpoints and watches of a link or a saved run as if they were typed.

    ``limit`` bounds the breakpoints and the watches of the run. Refused ones become a message.
    """
    debugger = session.run.debugger
    if debugger is None:
        return
    setters = [
        *(partial(_set_breakpoint, debugger, pause, limit) for pause in pauses),
        *(partial(_set_watch, debugger, watch, limit) for watch in watches),
    ]
    refused: list[str] = []
    for set_pause in setters:
        try:
            set_pause()
        except EngineError as error:
            refused.append(str(error))
    if refused:
        count = f"{len(refused)} of {len(setters)}"
        session.message = Message(
            f"The breakpoints and watches are set without {count}: {refused[0]}", "info"
        )


def _set_breakpoint(debugger: loopscope.Debugger, pause: Pause | Unreadable, limit: int) -> None:
    if isinstance(pause, Unreadable):
        raise InputError(pause.expected)
    if len(debugger.breakpoints) >= limit:
        raise InputError(f"at most {limit} breakpoints are restored")
    debugger.breakpoints.restore(pause)


def _set_watch(debugger: loopscope.Debugger, watch: str | Unreadable, limit: int) -> None:
    if isinstance(watch, Unreadable):
        raise InputError(watch.expected)
    if len(debugger.watches.items()) >= limit:
        raise InputError(f"at most {limit} watches are restored")
    debugger.watches.add(watch)
