"""What if: the callbacks that set a value of the run by hand, and that take it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.ir import ElementType
from loopscope.ops import is_tensor
from loopscope_app.actions import moves, report_errors
from loopscope_app.actions.runs import put
from loopscope_app.actions.side_by_side import compare_with
from loopscope_app.actions.what_if_gradients import by_hand, with_copies
from loopscope_app.describe.input_text import parse_element
from loopscope_app.describe.node_index import moment_of
from loopscope_app.describe.signatures import bindings
from loopscope_app.describe.wording import name_of
from loopscope_app.links.codec import Unreadable
from loopscope_app.state.compare_choice import CHOICE, UNCHANGED
from loopscope_app.state.launch import limits
from loopscope_app.state.user_session import Message, UserSession, current, place, widget
from loopscope_app.state.view_choices import LENS

MOST_CHANGES = 8
EDITABLE = 1024
"""Elements up to which a value can be set."""
COMPARE_SECONDS = 5.0
"""Longest time of each of the two runs that are compared without being asked for."""


def refusal(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> str:
    """Why a value cannot be set here; empty when it can."""
    if not is_tensor(array) or not _is_number(array):
        return "Only numbers and truth values can be set here."
    if array.size > EDITABLE or not array.size:
        return f"It has {array.size:,} elements: from 1 to {EDITABLE:,} can be set here, others in Python: loopscope.Debugger(…, changes=…)."
    if address.count("/") == 1 and address.partition(":")[0].removeprefix("main/") in _inputs(
        debugger
    ):
        return "It is an input of the model: set it in the panel Inputs."
    return ""


def _is_number(array: np.ndarray) -> bool:
    try:
        return ElementType.of(array) is not ElementType.STRING
    except KeyError:
        return False  # a type that only ONNX has


def _inputs(debugger: loopscope.Debugger) -> set[str]:
    main = debugger.plan.main
    return {
        label
        for label, layer in main.layer_of_label.items()
        if main.slots.get((layer, 0)) in main.parameter_slots
    }


@report_errors.afresh
def set_value(address: str, key: str) -> None:
    """Another run, in which the value at an address is what an editor holds: from the moment
    when it is there.
    """
    session = current()
    debugger = session.run.debugger
    if debugger is None or not moves.settled(session):
        return
    was = debugger.value(address)
    value = edited(was, widget(key), name_of(address))
    if value.tobytes() == was.tobytes():
        session.message = Message(
            f"This is the value that {name_of(address)} has: change it, then run from here", "info"
        )
        return
    _run_with(
        session,
        with_copies(session, {**by_hand(debugger.plan, session.run.changes), address: value}),
    )
    step = moment_of(debugger, address)
    moves.go(lambda changed: changed.seek(step))
    show_outcome(session)


def edited(was: np.ndarray, given: Any, name: str) -> np.ndarray:
    """The value that an editor holds: one element, or a table of which some cells were edited;
    ``InputError`` says what is wrong.
    """
    element_type = ElementType.of(was)
    if not isinstance(given, Mapping):
        return parse_element(given, element_type, name).astype(was.dtype).reshape(was.shape)
    made = was.copy()
    table = as_table(made)
    for row, cells in given["edited_rows"].items():
        for column, cell in cells.items():
            if cell is not None:
                table[int(row), int(column)] = parse_element(cell, element_type, name).astype(
                    was.dtype
                )
    return made


def as_table(array: np.ndarray) -> np.ndarray:
    """An array of at least one axis as rows and columns, which are its last axis; a view."""
    return array.reshape(-1, array.shape[-1])


@report_errors.afresh
def undo(address: str) -> None:
    """The run without one of the changes; without the last of them it is the original one, where
    it was left; if it never began, here.
    """
    session = current()
    if session.run.debugger is None or not moves.settled(session):
        return
    left = {
        one: value
        for one, value in by_hand(session.run.debugger.plan, session.run.changes).items()
        if one != address
    }
    step = session.run.debugger.cursor.step
    if not left:
        assert session.run.original is not None
        put(session, session.run.original)
        session.run.changes, session.run.original = {}, None
        if not session.run.debugger.steps:  # a link has brought the changes
            moves.go(lambda original: original.seek(step))
        return
    _run_with(session, with_copies(session, left))
    moves.go(lambda changed: changed.seek(step))
    show_outcome(session)


def _run_with(session: UserSession, changes: Mapping[str, Any], most: int = MOST_CHANGES) -> None:
    """The session's run with other changes, at its first moment; the original one is kept."""
    if session.model.opened is None or session.run.debugger is None:
        return
    if len(by_hand(session.run.debugger.plan, changes)) > most:
        raise InputError(f"{most} values are set by hand already: take one of them back first")
    model, seed = session.model.opened.model, session.model.opened.seed
    changed = loopscope.Debugger(
        model, bindings(model, session.model.inputs), limits=limits(), changes=changes, seed=seed
    )
    session.run.original = session.run.original or session.run.debugger
    session.run.changes = {one.address: one.value for one in changed.changes}
    put(session, changed)


def show_outcome(session: UserSession) -> None:
    """What came of the changes, compared with the run without them, unless the run itself takes
    long.
    """
    place(CHOICE, UNCHANGED)
    LENS.show("Compare")
    if moves.settled(session):
        compare_with(UNCHANGED, COMPARE_SECONDS)


def restore(
    session: UserSession, wanted: Mapping[str, Any] | Unreadable, most: int = MOST_CHANGES
) -> None:
    """The changes that the page's address, or a saved run, asks for."""
    if isinstance(wanted, Unreadable):
        session.message = Message(
            "The link's what-if cannot be read: this is the run without it", "info"
        )
        return
    try:
        _run_with(session, wanted, most)
    except EngineError as error:
        session.message = Message(str(error))
