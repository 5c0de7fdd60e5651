"""Changes by hand in a model with its gradient.

A value that is set in a loop is also set in the backward loop that computes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from loopscope.executor import Plan
from loopscope.explain import computed_again, copies_of, ties
from loopscope.ir import Address
from loopscope_app.actions.runs import new_run
from loopscope_app.describe.signatures import bindings
from loopscope_app.describe.wording import name_of
from loopscope_app.state.user_session import Message, UserSession

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


def is_on_the_way_back(plan: Plan, address: str) -> bool:
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
