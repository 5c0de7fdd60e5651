"""What is selected, folded and shown on the canvas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from loopscope.checks import Runtime
from loopscope.errors import AddressError, shorten
from loopscope.ir import ROOT, Address, graphs
from loopscope.view import VISIBLE_NODES, default_folding, reveal, toggle
from loopscope_app.actions import unrolled_loops
from loopscope_app.actions.report_errors import told
from loopscope_app.canvas import CanvasEvent
from loopscope_app.describe.node_index import places
from loopscope_app.state.user_session import UserSession, current

FEWEST_BOXES = 20
"""A picture with fewer boxes than this is not folded further."""


@told
def select(address: str) -> None:
    """Pins the inspector to a place, in the iterations that its address names; an empty one lets
    it follow the cursor.
    """
    current().canvas.selected = str(replace(Address.parse(address), output=0)) if address else ""


@told
def open_body(address: str) -> None:
    """Makes a body the canvas, by its static address."""
    session = current()
    if session.model.opened is None:
        return
    if all(place.address != address for place in graphs(session.model.opened.model)):
        raise AddressError(f"the model has no body at {shorten(address)}")
    session.canvas.folding = default_folding(session.model.opened.model, address)
    session.canvas.root, session.canvas.boxes = address, VISIBLE_NODES


@told
def fold(address: str) -> None:
    """Folds what is open at a static address and opens what is folded."""
    session = current()
    if session.model.opened:
        session.canvas.folding = toggle(session.model.opened.model, session.canvas.folding, address)


@told
def reveal_place(address: str) -> None:
    """Selects a place and opens what is folded around it."""
    session = current()
    if session.model.opened:
        session.canvas.root = (
            ROOT if not f"{address}/".startswith(f"{session.canvas.root}/") else session.canvas.root
        )
        session.canvas.folding = reveal(session.model.opened.model, session.canvas.folding, address)
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
            unrolled_loops.unroll(current(), event.address)
        case "earlier" | "later":
            unrolled_loops.shift(current(), event.address, 1 if event.kind == "later" else -1)
        case "fewer" | "wider":
            unrolled_loops.resize(current(), event.address, 1 if event.kind == "wider" else -1)
        case "open":
            open_body(event.root) if event.root else select(event.address)
        case "key":
            if event.key == "Backspace":
                go_up()
        case "too_dense":
            fold_more()


def is_new_act(session: UserSession, number: int) -> bool:
    """Whether an act on the canvas is heard for the first time; the browser repeats it while it
    does not know that it was heard.
    """
    new = number > session.canvas.acted
    session.canvas.acted = max(number, session.canvas.acted)
    return new


def choose_found(address: str, number: int) -> None:
    """A choice in the finder, by its number: the browser repeats it while it does not know that
    it was heard.
    """
    session = current()
    if (
        session.model.opened
        and number > session.canvas.picked
        and address in places(session.model.opened.model)
    ):
        session.canvas.picked = number
        reveal_place(address)


def check_for(titles: Iterable[str]) -> None:
    """Sets the runtimes whose findings Problems lists."""
    current().model.checked_for = frozenset(one for one in Runtime if one.title in titles)


def go_up() -> None:
    """The canvas one level further out: the graph that holds the one shown."""
    outer = current().canvas.root.rpartition("/")[0].rpartition("/")[0]
    if outer:
        open_body(outer)


@told
def fold_more() -> None:
    """Half as many boxes: the picture was too dense to be laid out in time."""
    session = current()
    if session.model.opened and session.canvas.boxes > FEWEST_BOXES:
        session.canvas.boxes //= 2
        session.canvas.folding = default_folding(
            session.model.opened.model, session.canvas.root, max_boxes=session.canvas.boxes
        )


def ask(question: str) -> None:
    """Sets the question to the trace, as it was typed or chosen."""
    current().run.asked = question
