"""Callbacks of the what-if editor: set a value of the run by hand, and undo it.

In a model with its gradient, a value that is set in a loop is also set in the backward loop that
computes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.executor import Plan
from loopscope.explain import computed_again, copies_of, ties
from loopscope.ir import Address, ElementType
from loopscope.ops import is_tensor
from loopscope_app.actions import moves, report_errors
from loopscope_app.actions.runs import new_run, put
from loopscope_app.actions.side_by_side import run_beside
from loopscope_app.describe.input_parsing import parse_element
from loopscope_app.describe.node_index import moment_of
from loopscope_app.describe.signatures import bindings
from loopscope_app.describe.wording import name_of
from loopscope_app.links.codec import Unreadable
from loopscope_app.state.user_session import Message, UserSession, current, place, widget
from loopscope_app.state.view_choices import COMPARE_KIND, COMPARE_WITH, DOCK, INPUTS, UNCHANGED

MOST_CHANGES = 8
EDITABLE = 1024
"""Number of elements up to which a value can be set."""
COMPARE_SECONDS = 5.0
"""Time limit of each run of a comparison that starts by itself."""


def editor_key() -> str:
    """Return the key that opens the editor when it is set to True."""
    return f"what_if_at_{current().run.generation}"


def open_editor() -> None:
    """Show the node in view, with the editor of its value open."""
    DOCK.show("Node")
    place(editor_key(), True)


def refusal(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> str:
    """Return the reason why a value cannot be set here, or an empty text."""
    if not is_tensor(array) or not _is_number(array):
        return "Only numbers and truth values can be set here."
    if array.size > EDITABLE or not array.size:
        return (
            f"It has {array.size:,} elements: from 1 to {EDITABLE:,} can be set here, others in "
            "Python: loopscope.Debugger(…, changes=…)."
        )
    name = address.partition(":")[0].removeprefix("main/")
    if address.count("/") == 1 and name in _inputs(debugger):
        return "It is an input of the model: set it in the tab Setup."
    return ""


def _is_number(array: np.ndarray) -> bool:
    try:
        return ElementType.of(array) is not ElementType.STRING
    except KeyError:
        return False  # an element type that only ONNX has


def _inputs(debugger: loopscope.Debugger) -> set[str]:
    main = debugger.plan.main
    return {
        label
        for label, layer in main.layer_of_label.items()
        if main.slots.get((layer, 0)) in main.parameter_slots
    }


@report_errors.clear_and_show_errors
def set_value(address: str, key: str) -> None:
    """Start a run with the editor's value at an address, and seek to that address."""
    session = current()
    debugger = session.run.debugger
    if debugger is None or not moves.settled(session):
        return
    old_value = debugger.value(address)
    value = edited(old_value, widget(key), name_of(address))
    if value.tobytes() == old_value.tobytes():
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


def edited(old_value: np.ndarray, content: Any, name: str) -> np.ndarray:
    """Return the value in an editor: one element, or a table with edited cells.

    Raise ``InputError`` for a bad text.
    """
    element_type = ElementType.of(old_value)
    if not isinstance(content, Mapping):
        return (
            parse_element(content, element_type, name)
            .astype(old_value.dtype)
            .reshape(old_value.shape)
        )
    new_value = old_value.copy()
    table = as_table(new_value)
    for row, cells in content["edited_rows"].items():
        for column, cell in cells.items():
            if cell is not None:
                table[int(row), int(column)] = parse_element(cell, element_type, name).astype(
                    old_value.dtype
                )
    return new_value


def as_table(array: np.ndarray) -> np.ndarray:
    """Return a view of an array as rows; the columns are its last axis."""
    return array.reshape(-1, array.shape[-1])


@report_errors.clear_and_show_errors
def undo(address: str) -> None:
    """Undo one change. After the last one, return to the original run at its step.

    An original run that never began moves to the current step.
    """
    session = current()
    if session.run.debugger is None or not moves.settled(session):
        return
    by_address = by_hand(session.run.debugger.plan, session.run.changes)
    remaining = {place: value for place, value in by_address.items() if place != address}
    step = session.run.debugger.cursor.step
    if not remaining:
        assert session.run.original is not None
        put(session, session.run.original)
        session.run.changes, session.run.original = {}, None
        if not session.run.debugger.steps:  # the changes came from a link
            moves.go(lambda original: original.seek(step))
        return
    _run_with(session, with_copies(session, remaining))
    moves.go(lambda changed: changed.seek(step))
    show_outcome(session)


def _run_with(session: UserSession, changes: Mapping[str, Any], limit: int = MOST_CHANGES) -> None:
    """Start the session's run with other changes; the original run is stored."""
    if session.model.opened is None or session.run.debugger is None:
        return
    if len(by_hand(session.run.debugger.plan, changes)) > limit:
        raise InputError(f"at most {limit} values can be set by hand: undo one first")
    opened = session.model.opened
    inputs = bindings(opened.model, session.model.inputs)
    changed = new_run(opened, inputs, changes=changes)
    session.run.original = session.run.original or session.run.debugger
    session.run.changes = {change.address: change.value for change in changed.changes}
    put(session, changed)


def show_outcome(session: UserSession) -> None:
    """Compare the run with the run without changes, unless the run takes long."""
    place(COMPARE_KIND, INPUTS)
    place(COMPARE_WITH, UNCHANGED)
    if moves.settled(session):
        run_beside(UNCHANGED, COMPARE_SECONDS)


def restore(
    session: UserSession, changes: Mapping[str, Any] | Unreadable, limit: int = MOST_CHANGES
) -> None:
    """Set the changes of a link or of a saved run."""
    if isinstance(changes, Unreadable):
        session.message = Message(
            "The values of the link that were set by hand cannot be read: this is the run without "
            "them",
            "info",
        )
        return
    try:
        _run_with(session, changes, limit)
    except EngineError as error:
        session.message = Message(str(error))


V = TypeVar("V")
"""A value that is set: an array, or the form in which a link stores one.

The engine checks it when a run begins.
"""
_SECONDS = 5.0
"""Time limit of the run that finds the backward iteration of a value."""


def copies(plan: Plan, changes: Mapping[str, object]) -> Mapping[str, tuple[str, ...]]:
    """Map each changed value to the places where the backward pass computes it again.

    In ``changes``, these places follow directly after their original.
    """
    result: dict[str, tuple[str, ...]] = {}
    original, expected = "", frozenset[str]()
    for address, value in changes.items():
        parsed = Address.parse(address)
        same_output = bool(original) and parsed.output == Address.parse(original).output
        if parsed.static in expected and same_output and _same(changes[original], value):
            result[original] = (*result.get(original, ()), address)
        else:
            original, expected = address, frozenset(copies_of(plan, address))
    return result


def by_hand(plan: Plan, changes: Mapping[str, V]) -> dict[str, V]:
    """Return the changes that a person made, without copies."""
    copied = {address for places in copies(plan, changes).values() for address in places}
    return {address: value for address, value in changes.items() if address not in copied}


def with_copies(session: UserSession, changes: Mapping[str, V]) -> dict[str, V]:
    """Return the changes, each followed by its copies in the backward pass.

    The backward iteration depends on the trip count with these changes, so they are run once.
    """
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return dict(changes)
    own = by_hand(debugger.plan, changes)
    paired = [address for address in own if copies_of(debugger.plan, address)]
    if not paired:
        return own
    scout = new_run(
        opened,
        bindings(opened.model, session.model.inputs),
        seconds=_SECONDS,
        changes=own,
    )
    scout.run()
    if scout.state == "paused":
        session.message = Message(
            f"{name_of(paired[-1])} was changed in the forward pass only: finding the matching "
            "iteration in the backward pass takes too long."
        )
        return own
    result: dict[str, V] = {}
    for address, value in own.items():
        result |= {address: value} | {
            copy: value for copy in computed_again(scout, address) if copy not in own
        }
    return result


def is_in_backward_pass(plan: Plan, address: str) -> bool:
    """Return True if an address is inside a backward loop or branch."""
    static = Address.parse(address).static
    return any(static.startswith(f"{pair.backward_address}/") for pair in ties(plan))


def _same(left: object, right: object) -> bool:
    """Return True if two values are equal, with NaN equal to NaN.

    Values of a link may be of any JSON type.
    """
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.shape == right.shape and left.tobytes() == right.tobytes()
    return type(left) is type(right) and left == right
