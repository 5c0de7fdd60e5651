"""Operators such as LSTM: open one as the loop that it is, and fold it to the operator again."""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.errors import InputError
from loopscope.ir import Model, graphs
from loopscope.view import GraphView, without_iterations
from loopscope_app.actions import models, moves, selection
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.actions.report_errors import show_errors
from loopscope_app.links.codec import Unreadable
from loopscope_app.state.open_model import Opened, with_loops
from loopscope_app.state.user_session import UserSession, current


@show_errors
def open_loop(address: str) -> None:
    """Show the model with an operator opened as a loop, its body drawn open."""
    session = current()
    if session.model.opened is not None:
        _show(session, (*session.model.opened.operators, address), address)
        selection.reveal_loop(address)


@show_errors
def fold(address: str) -> None:
    """Show the model with an opened operator as one box again."""
    session = current()
    if session.model.opened is not None:
        remaining = [item for item in session.model.opened.operators if item != address]
        _show(session, remaining, address)
        session.canvas.selected = address


def has_handle(view: GraphView, address: str) -> bool:
    """Return True if the handle at an address opens an operator, or folds an opened one."""
    opened = current().model.opened
    box = view.node_of.get(address)
    is_open = opened is not None and without_iterations(address) in opened.operators
    return is_open or (box is not None and box.handle is not None)


def switch(address: str) -> None:
    """Open the operator at an address, or fold it if it is open."""
    opened = current().model.opened
    static = without_iterations(address)
    if opened is not None:
        (fold if static in opened.operators else open_loop)(static)


def as_linked(opened: Opened, operators: Sequence[str | Unreadable]) -> Opened:
    """Return the model of a link with the operators that the link opens."""
    addresses = [item for item in operators if isinstance(item, str)]
    for item in operators:
        if isinstance(item, Unreadable):
            raise InputError(item.expected)
    return with_loops(opened, addresses) if addresses else opened


def _show(session: UserSession, operators: Sequence[str], switched: str) -> None:
    """Show the model with these operators opened, on the same inputs, at the same moment.

    The rest of the picture remains as it was. ``switched``: the operator that was opened or folded.
    """
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is None:
        return
    is_computed = debugger is not None and debugger.state == "finished"
    moment = debugger.cursor.address if debugger is not None and debugger.cursor.step else ""
    is_at_end = debugger is not None and debugger.cursor.kind == "finished"
    name, inputs = session.model.input_set, session.model.inputs
    folding, root, boxes = session.canvas.folding, session.canvas.root, session.canvas.boxes
    changed = with_loops(opened, operators)
    with_room(lambda: models.show_model(changed, name))
    if any(place.address == root for place in graphs(changed.model)):
        session.canvas.folding, session.canvas.root, session.canvas.boxes = folding, root, boxes
    if inputs and not name:
        models.use_inputs(inputs)
    if is_at_end:
        moves.go(lambda run: run.run())
        return
    if moment:
        remaining = _around(changed.model, moment, switched)
        moves.go(lambda run: run.seek(remaining))
    if is_computed:
        moves.run_on()


def _around(model: Model, moment: str, operator: str) -> str:
    """Return the address of a moment, or that of the operator if the model lacks the moment."""
    known = {
        address
        for place in graphs(model)
        for address in (
            place.address,
            *(f"{place.address}/{label}" for label in place.labels.values()),
        )
    }
    if without_iterations(moment) in known:
        return moment
    around = moment.split("/")[: operator.count("/")]
    return "/".join((*around, operator.rpartition("/")[2]))
