"""What clicks do: callbacks that move, open, fold, select; what serves one part alone is in a module of its own, as `changing`, `draft`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ParamSpec

import numpy as np
import streamlit as st

import engine
from app import opened as opening
from app import unrolled
from app.canvas import CanvasEvent
from app.launched import must_be_local
from app.opened import Opened
from app.running import Onward, Running
from app.runs import start
from app.session import PATIENCE, Message, Session, current, widget
from app.sharing import NO_ROOM, with_room
from app.uploaded import has_model
from engine.check.check import own_runtimes
from engine.check.diagnostic import Runtime
from engine.errors import AddressError, EngineError, shorten
from engine.ir.address import ROOT, Address
from engine.ir.walk import graphs
from engine.view.folding import VISIBLE_NODES, default_folding, reveal, toggle

AT_ONCE = 0.05
"""Seconds by which the first picture may come later, so that it has the whole of a short run."""
FEWEST_BOXES = 20
"""A picture with fewer boxes than this is not folded further."""
Arguments = ParamSpec("Arguments")
Move = Callable[[engine.Debugger], object]


def told(action: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The action, with the engine's refusals turned into a sentence on the screen."""

    @functools.wraps(action)
    def guarded(*given: Arguments.args, **named: Arguments.kwargs) -> None:
        try:
            action(*given, **named)
        except EngineError as error:
            current().message = Message(str(error))
        except MemoryError:
            current().message = Message(NO_ROOM)

    return guarded


def afresh(action: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The action, told, and what was said before it no longer on the screen."""

    @functools.wraps(action)
    def fresh(*given: Arguments.args, **named: Arguments.kwargs) -> None:
        current().message = None
        told(action)(*given, **named)

    return fresh


@told
def open_sample(name: str) -> None:
    with_room(lambda: show_model(opening.open_sample(name)))


@afresh
def open_path(key: str) -> None:
    """The path that a text field holds; on a server for others there is no such field, and whoever sends one is refused."""
    if widget(key):
        must_be_local()
        with_room(lambda: show_model(opening.open_path(str(widget(key)))))


@afresh
def open_upload(key: str) -> None:
    """The files of an uploader, once a model is among them."""
    files = current().uploads.latest(widget(key) or [])
    if has_model(files):
        with_room(lambda: show_model(opening.open_upload(files)))
    elif files:
        current().message = Message(f"{files[0][0]} holds weights: add the .xml or .onnx file that they belong to", "info")


@told
def close() -> None:
    """Back to the gallery."""
    session = current()
    _stop(session)
    session.opened = session.debugger = session.running = None
    session.playing = False
    session.inputs, session.selected, session.root = {}, "", ROOT
    st.query_params.clear()


def show_model(opened: Opened, input_set: str = "") -> None:
    """Another model: on its first input set, or the one named."""
    session = current()
    _stop(session)
    session.learning.lesson = ""
    session.opened, session.debugger, session.running = opened, None, None
    session.selected, session.root, session.message = "", ROOT, None
    session.folding, session.boxes = default_folding(opened.model), VISIBLE_NODES
    session.checked_for = own_runtimes(opened.model)
    session.input_set = input_set if input_set in opened.sets else next(iter(opened.sets), "")
    session.inputs = opened.sets.get(session.input_set, {})
    start(session)


@told
def choose_set(key: str) -> None:
    """The named input set that a widget holds."""
    choose_set_named(str(widget(key)))


@told
def choose_set_named(name: str) -> None:
    """Another of the model's named input sets."""
    session = current()
    if session.opened and name in session.opened.sets and (name != session.input_set or session.changes):
        use_inputs(session.opened.sets[name], name)


def use_inputs(inputs: Mapping[str, np.ndarray], name: str = "") -> None:
    session = current()
    _stop(session)
    session.before = session.inputs
    session.inputs, session.input_set, session.message = dict(inputs), name, None
    start(session)


@told
def go(move: Move) -> None:
    """Moves the debugger; what takes longer than a blink goes on in the background."""
    session = current()
    debugger = session.debugger
    if debugger is None or not settled(session) or session.gave_up:
        return
    session.message = None
    session.running = Running(debugger, lambda: move(debugger))
    session.running.done(PATIENCE)
    settled(session)


def run_on() -> None:
    """Lets the run that a link has reopened go on to its end, of which the link's moment is a part; a short one is over at once."""
    session = current()
    if session.debugger is not None:
        session.onward = Onward(session.debugger)
        if session.running is None:
            session.onward.go_on(AT_ONCE)


def play() -> None:
    """Has the canvas step by itself, or stop that."""
    session = current()
    session.plays += 1


def settled(session: Session) -> bool:
    """Whether nothing runs in the background any more; what a run had to say becomes the message."""
    running = session.running
    if running is not None and running.done():
        session.running = None
        _unfold_failure(session)
        if isinstance(running.error, EngineError):
            session.message = Message(str(running.error))
        elif running.error is not None:
            raise running.error
    return session.running is None


def _unfold_failure(session: Session) -> None:
    """Where an operation has failed inside something folded, that is opened: the picture shows it, not only the box around it."""
    debugger = session.debugger
    if session.opened and debugger is not None and debugger.failed_address and debugger.cursor.step == debugger.steps:
        session.folding = reveal(session.opened.model, session.folding, debugger.failed_address)


def stop() -> None:
    """Stops what runs in the background at the next iteration; what it did is kept."""
    session = current()
    if session.running is not None:
        session.running.stop()


def _stop(session: Session) -> None:
    if not settled(session):
        stop()


@told
def seek(place: str | int) -> None:
    """To an address or a step number, and there the inspector follows the cursor again."""
    current().selected = ""
    go(lambda debugger: debugger.seek(place))


@told
def run_to(pattern: str) -> None:
    """Until something that the pattern names is next."""
    go(lambda debugger: debugger.run_to(pattern))


@told
def select(address: str) -> None:
    """Pins the inspector to a place, in the iterations that its address names; an empty one lets it follow the cursor."""
    current().selected = str(replace(Address.parse(address), output=0)) if address else ""


@told
def open_body(address: str) -> None:
    """Makes a body the canvas, by its static address."""
    session = current()
    if session.opened is None:
        return
    if all(place.address != address for place in graphs(session.opened.model)):
        raise AddressError(f"the model has no body at {shorten(address)}")
    session.folding = default_folding(session.opened.model, address)
    session.root, session.boxes = address, VISIBLE_NODES


@told
def fold(address: str) -> None:
    """Folds what is open at a static address and opens what is folded."""
    session = current()
    if session.opened:
        session.folding = toggle(session.opened.model, session.folding, address)


@told
def reveal_place(address: str) -> None:
    """Selects a place and opens what is folded around it."""
    session = current()
    if session.opened:
        session.root = ROOT if not f"{address}/".startswith(f"{session.root}/") else session.root
        session.folding = reveal(session.opened.model, session.folding, address)
        select(address)


@told
def on_canvas(event: CanvasEvent) -> None:
    """What was done on the canvas."""
    match event.kind:
        case "select":
            select(event.address)
        case "clear":
            select("")
        case "fold":
            fold(event.address)
        case "unroll":
            unrolled.unroll(current(), event.address)
        case "earlier" | "later":
            unrolled.shift(current(), event.address, 1 if event.kind == "later" else -1)
        case "fewer" | "wider":
            unrolled.resize(current(), event.address, 1 if event.kind == "wider" else -1)
        case "open":
            open_body(event.root) if event.root else select(event.address)
        case "key":
            if event.key == "Backspace":
                go_up()
        case "too_dense":
            fold_more()


def check_for(titles: Iterable[str]) -> None:
    """Problems tells what is only about these runtimes, too."""
    current().checked_for = frozenset(one for one in Runtime if one.title in titles)


def go_up() -> None:
    """The canvas one level further out: the graph that holds the one shown."""
    outer = current().root.rpartition("/")[0].rpartition("/")[0]
    if outer:
        open_body(outer)


@told
def fold_more() -> None:
    """Half as many boxes: the picture was too dense to be laid out in time."""
    session = current()
    if session.opened and session.boxes > FEWEST_BOXES:
        session.boxes //= 2
        session.folding = default_folding(session.opened.model, session.root, most=session.boxes)


def ask(question: str) -> None:
    """A question to the trace, as somebody has typed or chosen it."""
    current().asked = question
