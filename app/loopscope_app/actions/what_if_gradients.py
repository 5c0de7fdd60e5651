"""What if, in a model with its gradient: a value of a loop that is set by hand is set also where
the way back computes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

import loopscope
from loopscope.executor import Plan
from loopscope.explain import computed_again, copies_of, ties
from loopscope.ir import Address
from loopscope_app.describe.signatures import bindings
from loopscope_app.describe.wording import name_of
from loopscope_app.state.launch import limits
from loopscope_app.state.user_session import Message, UserSession

V = TypeVar("V")
"""A value that is set: an array, or what a link says of one, which the engine checks when a run
begins.
"""
_SECONDS = 5.0
"""Longest time of the run that finds which iteration of the way back computes a value again."""


def copies(plan: Plan, changes: Mapping[str, object]) -> Mapping[str, tuple[str, ...]]:
    """Of each value that was set on both ways, where it is computed again: these places stand
    directly behind their original.
    """
    found: dict[str, tuple[str, ...]] = {}
    original, expected = "", frozenset[str]()
    for address, value in changes.items():
        parsed = Address.parse(address)
        same_output = bool(original) and parsed.output == Address.parse(original).output
        if parsed.static in expected and same_output and _same(changes[original], value):
            found[original] = (*found.get(original, ()), address)
        else:
            original, expected = address, frozenset(copies_of(plan, address))
    return found


def by_hand(plan: Plan, changes: Mapping[str, V]) -> dict[str, V]:
    """The changes without copies: what a person set."""
    copied = {address for places in copies(plan, changes).values() for address in places}
    return {one: value for one, value in changes.items() if one not in copied}


def with_copies(session: UserSession, changes: Mapping[str, V]) -> dict[str, V]:
    """The changes, and behind each its copy on the way back.

    Which iteration that is depends on how often the loop runs with these changes, so that they are
    run once to find it.
    """
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return dict(changes)
    own = by_hand(debugger.plan, changes)
    walked = [one for one in own if copies_of(debugger.plan, one)]
    if not walked:
        return own
    bounds = replace(limits(), seconds=_SECONDS)
    scout = loopscope.Debugger(
        opened.model,
        bindings(opened.model, session.model.inputs),
        limits=bounds,
        changes=own,
        seed=opened.seed,
    )
    scout.run()
    if scout.state == "paused":
        session.message = Message(
            f"{name_of(walked[-1])} is set on the way there only: the run takes too long to find it on the way back"
        )
        return own
    made: dict[str, V] = {}
    for one, value in own.items():
        made |= {one: value} | {
            again: value for again in computed_again(scout, one) if again not in own
        }
    return made


def is_on_the_way_back(plan: Plan, address: str) -> bool:
    """Whether an address lies in a loop or branch that walks another one back."""
    static = Address.parse(address).static
    return any(static.startswith(f"{tie.backward_address}/") for tie in ties(plan))


def _same(one: object, other: object) -> bool:
    """Whether two values are the same, NaN for NaN; those of a link may be anything that JSON
    can say.
    """
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and one == other
