"""Actions on the canvas: selection, folding, the graph that is drawn, and unrolled loops.

A loop is drawn as copies of its body, in a window that follows the cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from loopscope.checks import Runtime
from loopscope.errors import AddressError, shorten
from loopscope.ir import ROOT, Address, graphs
from loopscope.view import (
    VISIBLE_NODES,
    default_folding,
    reveal,
    toggle,
    unrolling,
    without_iterations,
)
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.canvas import CanvasEvent
from loopscope_app.describe.canvas_boxes import at_window, unrolled
from loopscope_app.describe.node_index import places
from loopscope_app.links.codec import Unreadable, Window
from loopscope_app.state.user_session import Message, UserSession, current
from loopscope_app.state.view_choices import DOCK

FEWEST_BOXES = 20
"""Number of boxes up to which a picture is not folded further."""


@show_errors
def select(address: str) -> None:
    """Pin the inspector to an address with its iterations; an empty address unpins it."""
    current().canvas.selected = str(replace(Address.parse(address), output=0)) if address else ""


@show_errors
def open_body(address: str) -> None:
    """Draw only the body with this static address."""
    session = current()
    if session.model.opened is None:
        return
    if all(place.address != address for place in graphs(session.model.opened.model)):
        raise AddressError(f"the model has no body at {shorten(address)}")
    session.canvas.folding = default_folding(session.model.opened.model, address)
    session.canvas.root, session.canvas.boxes = address, VISIBLE_NODES


@show_errors
def fold(address: str) -> None:
    """Fold what is open at a static address, or open what is folded."""
    session = current()
    if session.model.opened:
        session.canvas.folding = toggle(session.model.opened.model, session.canvas.folding, address)


@show_errors
def reveal_place(address: str) -> None:
    """Select a place and open the folded bodies around it."""
    session = current()
    if session.model.opened:
        session.canvas.root = (
            ROOT if not f"{address}/".startswith(f"{session.canvas.root}/") else session.canvas.root
        )
        session.canvas.folding = reveal(session.model.opened.model, session.canvas.folding, address)
        select(address)


def reveal_loop(address: str) -> None:
    """Select a loop and draw its body open."""
    session = current()
    reveal_place(address)
    if session.model.opened:
        session.canvas.folding = reveal(
            session.model.opened.model, session.canvas.folding, f"{address}/body/next"
        )


@show_errors
def on_canvas(event: CanvasEvent) -> None:
    """Carry out an event of the canvas."""
    match event.kind:
        case "select":
            select(event.address)
            DOCK.show("Node")
        case "clear":
            select("")
        case "fold":
            fold(event.address)
        case "unroll":
            unroll(current(), event.address)
        case "earlier" | "later":
            shift_window(current(), event.address, 1 if event.kind == "later" else -1)
        case "fewer" | "wider":
            resize_window(current(), event.address, 1 if event.kind == "wider" else -1)
        case "open":
            open_body(event.root) if event.root else select(event.address)
        case "key":
            if event.key == "Backspace":
                go_up()
        case "too_dense":
            fold_more()


def is_new_act(session: UserSession, number: int) -> bool:
    """Return True if an event of the canvas is new.

    The browser repeats an event until it learns that the event was received.
    """
    new = number > session.canvas.acted
    session.canvas.acted = max(number, session.canvas.acted)
    return new


def show_found(address: str, number: int) -> None:
    """Show the node that was chosen in the finder.

    ``number`` distinguishes a new choice from a repeated message of the browser.
    """
    session = current()
    if (
        session.model.opened
        and number > session.canvas.picked
        and address in places(session.model.opened.model)
    ):
        session.canvas.picked = number
        reveal_place(address)
        DOCK.show("Node")


def set_checked_runtimes(titles: Iterable[str]) -> None:
    """Set the runtimes whose findings the tab Problems lists, by title."""
    current().model.checked_for = frozenset(
        runtime for runtime in Runtime if runtime.title in titles
    )


def go_up() -> None:
    """Draw the graph that contains the drawn one."""
    outer = current().canvas.root.rpartition("/")[0].rpartition("/")[0]
    if outer:
        open_body(outer)


@show_errors
def fold_more() -> None:
    """Halve the number of boxes, because the layout of the picture took too long."""
    session = current()
    if session.model.opened and session.canvas.boxes > FEWEST_BOXES:
        session.canvas.boxes //= 2
        session.canvas.folding = default_folding(
            session.model.opened.model, session.canvas.root, max_boxes=session.canvas.boxes
        )


def store_question(question: str) -> None:
    """Store the formula for the trace, as it was typed or chosen."""
    current().run.asked = question


def unroll(session: UserSession, address: str) -> None:
    """Draw a loop as copies of its body, one for each iteration of a window; or fold it again."""
    if session.model.opened is None:
        return
    canvas = session.canvas
    canvas.folding = unrolled(
        session.model.opened.model, canvas.folding, canvas.root, address, session.run.at_rest
    )
    if session.canvas.folding.window(without_iterations(address)) is None:
        # The selection names a copy of the body that is no longer drawn.
        session.canvas.selected = without_iterations(session.canvas.selected)


def shift_window(session: UserSession, address: str, windows: int) -> None:
    """Move the window of an unrolled loop by a number of windows; negative means earlier."""
    session.canvas.folding = unrolling.shift(session.canvas.folding, address, windows)


def resize_window(session: UserSession, address: str, more: int) -> None:
    """Widen or narrow the window of an unrolled loop."""
    session.canvas.folding = unrolling.resize(session.canvas.folding, address, more)


def follow_cursor(session: UserSession) -> None:
    """Move the windows to the cursor, once after each move of the cursor."""
    debugger = session.run.at_rest
    if debugger is not None and debugger.cursor.step != session.canvas.followed:
        session.canvas.folding = unrolling.followed(session.canvas.folding, debugger)
        session.canvas.followed = debugger.cursor.step


def restore_windows(session: UserSession, windows: Sequence[Window | Unreadable]) -> None:
    """Restore the windows of a link; they follow the cursor only after its next move."""
    if session.model.opened is None:
        return
    canvas, model, debugger = session.canvas, session.model.opened.model, session.run.at_rest
    for window in windows:
        before = canvas.folding
        if isinstance(window, Window):
            canvas.folding = at_window(
                debugger, model, before, canvas.root, (window.address, window.first, window.count)
            )
        if canvas.folding is before:
            session.message = Message(
                "The link's unrolled loops cannot be read: this picture is without some of them",
                "info",
            )
    if debugger is not None:
        canvas.followed = debugger.cursor.step
