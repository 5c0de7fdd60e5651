"""Breakpoints and watches: the callbacks that set, switch and remove them, and the page's link that keeps them."""

from __future__ import annotations

import engine
from app.actions import refusals
from app.links.packing import packed, unpacked
from app.state.user_session import Message, Session, current, widget
from engine.debug.breakpoints import BreakpointKind
from engine.errors import EngineError, InputError, shorten
from engine.view.graph import GraphView
from engine.view.overlay import marked

MOST = 20
"""Breakpoints, and watches, that a link keeps."""


@refusals.afresh
def add_breakpoint(pattern: str, condition: str = "", kind: BreakpointKind = "address") -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.add(pattern, condition, kind)
        _pauses_elsewhere(session)


@refusals.afresh
def remove_breakpoint(number: int) -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.remove(number)
        _pauses_elsewhere(session)


@refusals.afresh
def switch_breakpoint(number: int, key: str) -> None:
    """On or off, as a widget holds it."""
    session = current()
    if session.run.debugger:
        session.run.debugger.breakpoints.switch(number, bool(widget(key)))
        _pauses_elsewhere(session)


@refusals.afresh
def switch_at(view: GraphView, address: str) -> None:
    """Those whose dot a box of the picture has: off when any of them pauses the run, else on."""
    session = current()
    if session.run.debugger:
        breakpoints = session.run.debugger.breakpoints
        found = [one for one in breakpoints if one.pattern and any(box.address == address for box in marked(view, [one.pattern]))]
        on = not any(one.on for one in found)
        for one in found:
            breakpoints.switch(one.id, on)
        _pauses_elsewhere(session)


def _pauses_elsewhere(session: Session) -> None:
    """What was sent ahead to be played says where it pauses: that is no longer so."""
    session.canvas.playing, session.canvas.ahead, session.canvas.batch = False, None, None


@refusals.afresh
def add_watch(expression: str) -> None:
    session = current()
    if session.run.debugger and expression.strip():
        session.run.debugger.watches.add(expression.strip())


@refusals.afresh
def remove_watch(number: int) -> None:
    session = current()
    if session.run.debugger:
        session.run.debugger.watches.remove(number)


def breakpoints_as_text(debugger: engine.Debugger) -> str:
    """The breakpoints for the page's address: as many as it holds."""
    return packed(_as_many_as_fit(_breakpoints(debugger)))


def watches_as_text(debugger: engine.Debugger) -> str:
    """The watches for the page's address: as many as it holds."""
    return packed(_as_many_as_fit(_watches(debugger)))


def beyond_breakpoints(debugger: engine.Debugger) -> str:
    """What is to be said of breakpoints that the page's address has no room for; empty where it holds all."""
    return _beyond(_breakpoints(debugger), "breakpoints")


def beyond_watches(debugger: engine.Debugger) -> str:
    """The same of watches."""
    return _beyond(_watches(debugger), "watches")


def _breakpoints(debugger: engine.Debugger) -> list[object]:
    return [[one.pattern, one.condition.text if one.condition else "", one.kind, one.on] for one in debugger.breakpoints.items()]


def _watches(debugger: engine.Debugger) -> list[object]:
    return [expression for _, expression in debugger.watches.items()]


def _as_many_as_fit(items: list[object]) -> list[object]:
    kept = items[:MOST]
    while kept and not packed(kept):
        kept.pop()
    return kept


def _beyond(items: list[object], what: str) -> str:
    kept = len(_as_many_as_fit(items))
    if kept == len(items):
        return ""
    room = f"the first {kept}" if kept else "none"
    return f"The page's link has room for {room} of these {len(items):,} {what}: who opens it gets no more."


def restore(session: Session, breakpoints: str, watches: str) -> None:
    """The breakpoints and watches that the page's address asks for, as if they were typed; what cannot be is told in one sentence."""
    debugger = session.run.debugger
    if debugger is None:
        return
    wanted = [*((_set_breakpoint, one) for one in _listed(breakpoints)), *((_set_watch, one) for one in _listed(watches))]
    refused: list[str] = []
    for put, one in wanted:
        try:
            put(debugger, one)
        except EngineError as error:
            refused.append(str(error))
    if refused:
        count = f"{len(refused)} of {len(wanted)}"
        session.message = Message(f"The link's breakpoints and watches are set without {count}: {shorten(refused[0], 300)}", "info")


def _listed(text: str) -> list[object]:
    found = unpacked(text) if text else []
    return found if isinstance(found, list) else [found]


def _set_breakpoint(debugger: engine.Debugger, one: object) -> None:
    if len(debugger.breakpoints) == MOST:
        raise InputError(f"a link keeps at most {MOST} breakpoints")
    match one:
        case [str(pattern), str(condition), "address" | "nan" | "shape" as kind, bool(on)]:
            debugger.breakpoints.add(pattern, condition, kind, on=on)
        case _:
            raise InputError("a breakpoint in a link is a list of its place, its condition, address, nan or shape, and whether it is on")


def _set_watch(debugger: engine.Debugger, one: object) -> None:
    if len(debugger.watches.items()) == MOST:
        raise InputError(f"a link keeps at most {MOST} watches")
    if not isinstance(one, str):
        raise InputError("a watch in a link is the text of an expression")
    debugger.watches.add(one)
