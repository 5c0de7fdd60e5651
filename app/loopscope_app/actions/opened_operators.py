"""Operators such as LSTM: open one as the loop that it is, and fold it to the operator again."""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.errors import InputError
from loopscope.view import reveal
from loopscope_app.actions import models, moves
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
        _show(session, (*session.model.opened.operators, address))
        session.canvas.selected = address
        _reveal_body(session, address)


@show_errors
def fold(address: str) -> None:
    """Show the model with an opened operator as one box again."""
    session = current()
    if session.model.opened is not None:
        remaining = [item for item in session.model.opened.operators if item != address]
        _show(session, remaining)
        session.canvas.selected = address


def as_linked(opened: Opened, operators: Sequence[str | Unreadable]) -> Opened:
    """Return the model of a link with the operators that the link opens."""
    addresses = [item for item in operators if isinstance(item, str)]
    for item in operators:
        if isinstance(item, Unreadable):
            raise InputError(item.expected)
    return with_loops(opened, addresses) if addresses else opened


def _show(session: UserSession, operators: Sequence[str]) -> None:
    """Show the model with these operators opened, on the same inputs, run as before."""
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is None:
        return
    ended = debugger is not None and debugger.state == "finished"
    name, inputs = session.model.input_set, session.model.inputs
    changed = with_loops(opened, operators)
    with_room(lambda: models.show_model(changed, name))
    if inputs and not name:
        models.use_inputs(inputs)
    if ended:
        moves.go(lambda run: run.run())


def _reveal_body(session: UserSession, address: str) -> None:
    """Unfold the body of an opened operator."""
    opened = session.model.opened
    if opened is not None:
        session.canvas.folding = reveal(
            opened.model, session.canvas.folding, f"{address}/body/next"
        )
